// Problem: run a training graph in less memory by computing parts of its forward again.
//
// Idea: the forward part of many networks is a chain of segments joined by single tensors. Keep
// these cut tensors, drop what lies between, and compute a segment again when the backward first
// needs something of it. With sqrt(n) segments a chain of n equal ops needs about 2 sqrt(n) tensors
// and one more forward.
//
// Source: T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training Deep Nets with Sublinear Memory Cost",
// 2016. Their Algorithm 3 walks the forward and cuts where the bytes since the last cut pass a
// limit; the limit is searched over here as there. As there, what follows the last cut is kept,
// since the backward begins with it. Two things are ours. Beyond the last, as many segments are
// kept as the budget allows, by bisection. And where tensors run beside the chain (masks, an
// encoder's result, skip connections) a segment may end where several tensors cross, all of them
// kept: near the place where it is full, where the fewest bytes do. The option `cuts` says which.
//
// The forward ends at the barrier, else before the first op of phase "backward", else where the
// order has most bytes in use. Dropping is not written down anywhere: an op that is computed again
// serves all uses after that, so what it made at first ends with its last use in the forward.
//
// Invariant: what is offered computes a topological order with repetitions put in between, none
// before what it reads nor after an op that changes it, so it is legal in both orders.
//
// Loses: where the budget is large, since a segment is dropped whole, dear ops with cheap ones; and
// where much crosses every position, as in the upper half of a U-Net, since all that is kept.
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

// The best number of segments to drop for one division of the forward.
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

  // The fewest, from the first segment on, with which the budget is kept: each more lowers what is
  // kept over the turn. None that cost more than the best plan known.
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
  // Says whether it is kept, which with less time than the best is whether it fits.
  bool fits(std::size_t dropped) {
    const auto sequence =
        without_unread(context_.problem(), segments_.sequence(division_, dropped));
    // Another look at the clock before the plan is priced, which on huge graphs takes a while.
    if (context_.limits().spend(static_cast<std::int64_t>(sequence.size()))) return false;
    return context_.offer_sequence(sequence);
  }

  Context& context_;
  const Segments& segments_;
  const Segmentation& division_;
  std::vector<Ticks> time_;  // of the plan, for each number of segments dropped
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
