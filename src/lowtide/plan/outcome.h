// What may be answered.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/base/units.h"
#include "lowtide/plan/plan.h"

namespace lowtide {

// optimal: a plan, and no plan of the problem is better. feasible: a plan. infeasible: proven that
// there is none. unknown: none was found.
enum class Status : std::uint8_t { optimal, feasible, infeasible, unknown };

struct Cost {
  Ticks duration;
  Bytes peak;
  Bytes host_peak;
  bool operator==(const Cost&) const = default;
};

// What is proven of every plan for the problem, whatever the number of recomputations.
struct Bound {
  Ticks duration;  // none is shorter
  Bytes peak;      // none needs less, whatever its duration
};

struct Incumbent {
  double seconds = 0;  // since the solve began
  std::int64_t work = 0;
  Cost cost;
};

// What a solver of a portfolio took, over all of its calls, and what came of it.
struct PortfolioPart {
  std::string name;
  double seconds = 0;  // summed over threads
  std::int64_t work = 0;
  std::int64_t plans = 0;  // how often its plan became the best
  Ticks won = {};          // by which those were shorter than the best before; the first wins none
  Ticks bound = {};        // by which it raised the bound on the duration
  std::string failure = {};  // what it threw first, if it failed
};

// What is proven of a narrower question than the problem, such as at most so many computations of
// each op: never a claim about the problem.
struct ModelClaim {
  std::string name = {};    // which solver's model, and what it leaves out
  Ticks bound = {};         // none of its plans is shorter
  bool optimal = false;     // the best of them was found
  bool infeasible = false;  // it has none within the budget
};

struct Outcome {
  Status status = Status::unknown;
  StopReason stopped_by = StopReason::finished;  // without a plan only if infeasible
  std::optional<Plan> plan;                      // there if status is optimal or feasible
  Cost cost;  // of `plan`; otherwise of the plan with the smallest peak seen
  std::optional<Bytes> smallest_peak;  // of any plan seen, within the budget or not
  Bound bound;
  // With a machine: by how many per cent the bound on the duration falls, about, if transfers take
  // one per cent less time. 0: they are no bottleneck. Absent where no solver has said it.
  std::optional<double> link_price = std::nullopt;
  std::vector<Incumbent> history;    // each better than the one before
  std::string found_by;              // the solver whose plan this is
  std::vector<PortfolioPart> parts;  // of a portfolio, in the order of their first calls
  std::optional<ModelClaim> model;   // if its solver has one
  std::string note;                  // a sentence for people: why there is no plan, what was tried
};

std::string_view to_string(Status status);
// Adds up what both say of parts of the same names.
void add_parts(std::vector<PortfolioPart>& parts, const std::vector<PortfolioPart>& more);
// A sentence about the parts that failed; empty if none did.
std::string failures_text(const std::vector<PortfolioPart>& parts);
// Adds a sentence to the note, if it does not say that already.
void add_note(Outcome& outcome, const std::string& sentence);
// Of the model: optimal, infeasible, or feasible for anything else.
Status status_of(const ModelClaim& model);

// 100 x (duration / base - 1); 0 if base is 0.
double overhead_percent(Ticks duration, Ticks base);
// 100 x (duration - bound) / bound; 0 if equal, infinite if the bound alone is 0.
double gap_percent(Ticks duration, Ticks bound);
// Whether something is proven of how long plans take; `base`: the graph's own time. Not of plans
// that there are none of, nor where any transforms may be used.
bool is_bounded(const Outcome& outcome, Ticks base);

}  // namespace lowtide
