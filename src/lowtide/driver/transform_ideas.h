// Selects transforms that are worth a run of a solver, by estimates that take milliseconds and
// build no graph. See transform_ideas.cpp.
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

// Transforms with their transformed graph, in which regions are searched.
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

// The hoist of the backward; empty if it is not allowed or not possible.
Transforms with_hoist(const Question& question);
// Applies the given list, and substitutions after it if they are allowed. Takes a small share of
// the limits.
std::shared_ptr<const Applied> with_substitutes(const Question& question, Limits& limits,
                                                const Transforms& given, rewrite::Taken taken);
// The same list with another number of parts in its last split: half and twice as many, one less
// and one more; only legal ones.
std::vector<Transforms> with_other_parts(const Question& question, const Transforms& transforms);

struct Idea {
  using Kind = std::tuple<bool, rewrite::Candidate::Kind, bool>;  // fits; kind of region; with sums

  bool fits = false;                 // estimated to keep the budget without recomputation
  std::shared_ptr<const Base> base;  // the region is in its graph
  rewrite::Candidate region;
  std::int64_t parts = 0;
  Transforms transforms;  // those of the base and this split, once chosen
  Bytes missing;          // bytes over the budget that cannot be saved
  Ticks time;             // with the estimated recomputation
  Ticks least;            // without it
  Bytes peak;             // of the given order
  Bytes above_floor;      // that cannot be saved, of the bytes above those that are always live

  auto rank() const { return std::tie(missing, time); }
  std::int64_t made_ops() const {
    return static_cast<std::int64_t>(base->now().graph.op_count()) +
           (parts - 1) * static_cast<std::int64_t>(region.ops.size());
  }
  // Estimates of one kind have similar errors, so the best of each kind is tried.
  Kind kind() const { return fits ? Kind{true, {}, {}} : Kind{false, region.kind, region.sums}; }
};

class TransformIdeas {
 public:
  // Both must outlive this object.
  TransformIdeas(const Question& question, Limits& limits)
      : question_(question), problem_(question.problem), limits_(limits) {}

  // Calibrates the estimates by the plan of the original graph: the ratio of overhead to estimate
  // is similar for similar graphs.
  void calibrate(Ticks planned);
  // The candidates to plan next, best first, on the graphs of the transforms in `begun`. Of each
  // region: the best number of parts, and the best one that fits without recomputation. The best of
  // each kind comes first, since estimates of one kind have similar errors. `to_beat`: the duration
  // of the best plan; the maximum if there is none.
  std::vector<Idea> best(const std::vector<Transforms>& begun, Ticks to_beat);
  // Fills in the transforms of a candidate, and the time of the transformed graph; returns false if
  // they are refused.
  bool complete(Idea& idea);

 private:
  struct Lowest;

  Ticks estimated(Ticks time, Ticks again) const;
  std::shared_ptr<const Base> base_of(const Transforms& transforms);
  std::vector<Idea> few_of(std::vector<Idea> all);
  // nullopt if the region cannot be split into so many parts.
  std::optional<Idea> estimate(const std::shared_ptr<const Base>& base,
                               const rewrite::Candidate& region, std::int64_t parts) const;
  void best_parts(const std::shared_ptr<const Base>& base, const rewrite::Candidate& region,
                  std::vector<Idea>& found, Lowest& lowest);

  const Question& question_;
  const Problem& problem_;  // the question's
  Limits& limits_;
  Ticks to_beat_;
  double factor_ = 1;
  bool promising_ = true;  // whether estimates see the overhead, and so can see a gain
};

}  // namespace lowtide::driver
