// Which transforms are worth a run of a solver: estimates of milliseconds each, on graphs that are
// never made. See transform_ideas.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/device/part_price.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/rewrite/candidate.h"
#include "lowtide/rewrite/substitutions.h"
#include "lowtide/rewrite/survey.h"
#include "lowtide/solve/sequence/peak_floor.h"
#include "lowtide/transforms/transform.h"

namespace lowtide::driver {

using Transforms = std::vector<Transform>;

using rewrite::kMostMadeOps;
using solve::always_live;

// Transforms, and the graph that they make, on which regions are looked for.
struct Base {
  Base(const Question& question, const Transforms& given)
      : applied(apply_cached(question, given)),
        pricer(applied->now.graph, question.prices.device_or_default(),
               question.prices.table.get()) {}

  const Transforms& transforms() const { return applied->transforms; }
  const TransformedGraph& now() const { return applied->now; }

  const std::shared_ptr<const Applied> applied;
  const PartPricer pricer;
};

// The hoist of the backward, or nothing where it is not allowed or not possible.
Transforms with_hoist(const Question& question);
// These and substitutions behind them, where they are allowed. Takes a small part of the limits.
std::shared_ptr<const Applied> with_substitutes(const Question& question, Limits& limits,
                                                const Transforms& given, rewrite::Taken taken);
// The same but for the last, a split: into half and twice as many parts, one less and one more;
// those that are legal.
std::vector<Transforms> with_other_parts(const Question& question, const Transforms& transforms);

struct Idea {
  using Kind = std::tuple<bool, rewrite::Candidate::Kind, bool>;  // fits; the region's, with sums

  bool fits = false;                 // it was taken for keeping the budget in the own order
  std::shared_ptr<const Base> base;  // on whose graph the region is
  rewrite::Candidate region;
  std::int64_t parts = 0;
  Transforms transforms;  // the base's and this split, once it is chosen
  Bytes missing;          // that nothing gives
  Ticks time;             // with what is computed again, as estimated
  Ticks least;            // without
  Bytes peak;             // of the own order
  Bytes above_floor;      // that nothing gives of what is beyond what is always live

  auto rank() const { return std::tie(missing, time); }
  std::int64_t made_ops() const {
    return static_cast<std::int64_t>(base->now().graph.op_count()) +
           (parts - 1) * static_cast<std::int64_t>(region.ops.size());
  }
  // Estimates err alike for ideas of one kind, so the best of each is tried.
  Kind kind() const { return fits ? Kind{true, {}, {}} : Kind{false, region.kind, region.sums}; }
};

class TransformIdeas {
 public:
  // Both must outlive it.
  TransformIdeas(const Question& question, Limits& limits)
      : question_(question), problem_(question.problem), limits_(limits) {}

  // What one place of the order says of computing again is far from what a plan loses, and about as
  // far on graphs that are alike: the graph as it is, planned, tells by how much.
  void calibrate(Ticks planned);
  // What to plan next, best first, on the graphs that the transforms in `begun` make: of each
  // region the best number of parts, and the best that fits into the budget as it is, which needs
  // no luck. The best of each kind goes first, since estimates of one kind err alike. `to_beat`:
  // the time of the best plan; the largest where there is none.
  std::vector<Idea> best(const std::vector<Transforms>& begun, Ticks to_beat);
  // Fills in its transforms, and the time of the graph that they make; false where they are refused
  // as a whole.
  bool complete(Idea& idea);

 private:
  struct Lowest;

  Ticks estimated(Ticks time, Ticks again) const;
  std::shared_ptr<const Base> base_of(const Transforms& transforms);
  std::vector<Idea> few_of(std::vector<Idea> all);
  // Nothing where the region does not go into so many parts.
  std::optional<Idea> estimate(const std::shared_ptr<const Base>& base,
                               const rewrite::Candidate& region, std::int64_t parts) const;
  void best_parts(const std::shared_ptr<const Base>& base, const rewrite::Candidate& region,
                  std::vector<Idea>& found, Lowest& lowest);

  const Question& question_;
  const Problem& problem_;  // the question's
  Limits& limits_;
  Ticks to_beat_;
  double factor_ = 1;
  bool promising_ = true;  // estimates see what is lost, so they can see what would win it back
};

}  // namespace lowtide::driver
