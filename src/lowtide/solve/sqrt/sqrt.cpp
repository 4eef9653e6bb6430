// Problem: run a training graph in less memory by recomputing segments of its forward.
//
// Idea: the forward of many networks is a chain of segments joined by single tensors. Keep these
// cut tensors, free the others, and recompute a segment when the backward first needs one of its
// tensors. With sqrt(n) segments a chain of n equal ops needs about 2 sqrt(n) tensors and one more
// forward.
//
// Source: T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training Deep Nets with Sublinear Memory Cost",
// 2016. Their Algorithm 3 walks the forward and cuts when the bytes since the last cut exceed a
// limit; as there, the limit is searched over, and the ops after the last cut are kept, since the
// backward begins with them. Two things are not in the paper. Besides the last segment, as many
// segments are kept as the budget allows, by bisection. And if tensors run beside the chain (masks,
// an encoder's result, skip connections), a segment may end where several tensors cross, which are
// all kept: near the position at which it is full, where the fewest bytes cross. The option `cuts`
// selects this.
//
// The forward ends at the barrier, else before the first op of phase "backward", else where the
// order has most bytes in use. Frees are implicit: a recomputed op serves all later uses, so its
// first outputs end with their last use in the forward.
//
// Invariant: sequences are a topological order with recomputations inserted after their inputs and
// before ops that mutate these, so they are legal in both orders.
//
// Loses: at large budgets, since a segment is recomputed as a whole, expensive ops included; and if
// many tensors cross every position, as in the upper half of a U-Net, since all of them are kept.
#include "lowtide/solve/sqrt/sqrt.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "lowtide/solve/interface/starts.h"
#include "lowtide/solve/sequence/sequence.h"
#include "lowtide/solve/sqrt/sqrt_segments.h"

namespace lowtide::solve::sqrt {

namespace {

constexpr std::array<std::pair<std::string_view, SqrtCuts>, 2> kCuts = {
    {{"single", SqrtCuts::single}, {"narrow", SqrtCuts::narrow}}};

const std::array<OptionSpec, 1>& specs() {
  static const std::array<OptionSpec, 1> table = {{
      {.name = "cuts",
       .usage = "where a segment may end: where a single tensor crosses (Chen et al.), where few "
                "bytes cross, or both in turn",
       .default_choice = "both",
       .choices = {"both", "single", "narrow"}},
  }};
  return table;
}

// The best number of recomputed segments for one division of the forward.
class Dropping {
 public:
  Dropping(Context& context, const Segments& segments, const Segmentation& division)
      : context_(context), segments_(segments), division_(division) {
    const Graph& graph = context.problem().graph;
    time_.push_back(graph.total_time());
    for (const auto& again : division.again) {
      Ticks time = time_.back();
      for (OpId op : again) time = checked_add(time, graph.time(op));
      time_.push_back(time);
    }
  }

  // The fewest segments, from the first on, with which the budget is kept: each more lowers the
  // bytes kept at the turn. Never a number that costs more than the best known plan.
  void search() {
    std::size_t low = 0, high = division_.again.size();
    while (high > 1 && !promising(high)) --high;
    if (high == 0 || !fits(high)) return;
    while (high - low > 1 && !context_.done()) {
      const std::size_t middle = low + (high - low) / 2;
      (fits(middle) ? high : low) = middle;
    }
  }

 private:
  bool promising(std::size_t dropped) const {
    return !context_.has_plan() || time_[dropped] < context_.best_cost().duration;
  }
  // Returns whether the plan is kept; with less time than the best plan, that is whether it fits.
  bool fits(std::size_t dropped) {
    const auto sequence =
        without_unread(context_.problem(), segments_.sequence(division_, dropped));
    // Poll again before the plan is priced, which takes a while on huge graphs.
    if (context_.limits().spend(static_cast<std::int64_t>(sequence.size()))) return false;
    return context_.offer_sequence(sequence);
  }

  Context& context_;
  const Segments& segments_;
  const Segmentation& division_;
  std::vector<Ticks> time_;  // of the plan, by number of recomputed segments
};

class Sqrt final : public Solver {
 public:
  std::string_view name() const override { return "sqrt"; }
  std::string_view summary() const override {
    return "Chen et al.: about sqrt(n) segments between cut tensors; cut tensors are kept, the "
           "others recomputed";
  }
  std::span<const OptionSpec> options() const override { return specs(); }
  Support supports(const Problem& problem) const override { return least_time_only(problem); }

  Outcome solve(const Problem& problem, Context& context) const override {
    const std::string_view chosen = context.options().choice("cuts");
    bool has_single = false;
    for (const auto& order : orders_to_try(context)) {
      context.offer_sequence(order);
      context.limits().spend(static_cast<std::int64_t>(problem.graph.op_count()));
      if (context.done()) return context.finish();
      const Segments segments(problem.graph, order);
      has_single |= segments.has_single_cuts();
      for (const auto& [word, cuts] : kCuts)
        if (chosen == "both" || chosen == word) divide(segments, cuts, context);
    }
    if (!has_single)
      context.set_note("sqrt: no single tensor cuts the forward of this graph" +
                       std::string(chosen == "single" ? "" : "; it was cut where few bytes cross"));
    return context.finish();
  }

 private:
  static constexpr std::int64_t kMostParts = 4096;

  static void divide(const Segments& segments, SqrtCuts cuts, Context& context) {
    std::vector<std::size_t> before;
    for (std::int64_t parts = 2; parts < kMostParts && !context.done(); parts += 1 + parts / 6) {
      const auto division = segments.divide(Bytes(segments.saved().count() / parts), cuts);
      context.limits().spend(static_cast<std::int64_t>(context.problem().graph.op_count() / 4));
      if (division.ends == before) continue;
      before = division.ends;
      Dropping(context, segments, division).search();
    }
  }
};

}  // namespace

std::unique_ptr<Solver> make_sqrt() { return std::make_unique<Sqrt>(); }

}  // namespace lowtide::solve::sqrt
