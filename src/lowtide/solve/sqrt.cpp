// Problem: run a training graph in less memory by computing parts of its forward again.
//
// Idea: the forward part of many networks is a chain of segments joined by single tensors, the cuts.
// Keep the cut tensors, drop what lies between, and compute a segment again when the backward first
// needs something of it. With about sqrt(n) segments a chain of n ops needs memory for about
// 2 sqrt(n) tensors and one more forward. This is Chen et al., Training Deep Nets with Sublinear
// Memory Cost, 2016: Algorithm 3 walks the chain and cuts where the bytes since the last cut pass a
// limit; the limit is searched over. As there, the last segment is kept, since the backward begins
// with it; beyond that, as many of the segments before it are kept as the budget allows.
//
// The forward part ends at the barrier, else before the first op of phase "backward", else where the
// given order has most bytes in use. Dropping is not written down anywhere: an op that is computed
// again serves all uses after that, so its first result ends at its last use in the forward.
//
// Invariant: every sequence offered computes the given order with segments put in between, so it is
// legal in both orders.
//
// Loses: where no single tensor cuts the forward. A U-Net's skip connections pass over every cut, so
// it has none but in its bottom, and the plan saves nearly nothing.
#include "lowtide/solve/sqrt.h"

#include <algorithm>
#include <numeric>

#include "lowtide/graph/cuts.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/rerun.h"

namespace lowtide {

namespace {

// Where the forward part ends in the given order.
std::size_t turning_point(const Graph& graph) {
  const auto order = graph.order();
  const auto first = [&](auto holds) {
    return static_cast<std::size_t>(std::find_if(order.begin(), order.end(), holds) -
                                    order.begin());
  };
  std::size_t at = first([&](OpId op) { return graph.is_barrier(op); });
  if (at == order.size()) at = first([&](OpId op) { return graph.op(op).phase == "backward"; });
  if (at < order.size()) return at;
  const Plan plan = own_plan(graph);
  const Timeline timeline = simulate(graph, plan);
  const std::size_t peak = std::min(timeline.peak_step(), plan.steps.size());
  return static_cast<std::size_t>(
      std::count_if(plan.steps.begin(), plan.steps.begin() + static_cast<std::ptrdiff_t>(peak),
                    [](const Step& step) { return step.is_compute(); }));
}

class Segments {
 public:
  explicit Segments(const Graph& graph)
      : graph_(graph),
        turn_(turning_point(graph)),
        rerunnable_(rerunnable_ops(graph)),
        cuts_(tensor_cuts(graph, 0, turn_)) {
    // Bytes that the backward reads of what each op of the forward made.
    saved_.resize(turn_, 0);
    for (std::size_t at = 0; at < turn_; ++at)
      for (TensorId made : graph.outputs(graph.order()[at]))
        if (read_later(made)) saved_[at] += graph.bytes(made).count();
  }

  bool has_cuts() const { return !cuts_.empty(); }
  std::int64_t saved_bytes() const {
    return std::accumulate(saved_.begin(), saved_.end(), std::int64_t{0});
  }

  // Chen's Algorithm 3: the cuts that end a segment of more than `limit` bytes.
  std::vector<TensorCut> choose(std::int64_t limit) const {
    std::vector<TensorCut> chosen;
    std::size_t at = 0;
    std::int64_t bytes = 0;
    for (const TensorCut& cut : cuts_) {
      for (; at < cut.position; ++at) bytes += saved_[at];
      if (bytes <= limit) continue;
      chosen.push_back(cut);
      bytes = 0;
    }
    return chosen;
  }

  // The given order, with the first `dropped` segments computed again where they are needed.
  std::vector<OpId> sequence(const std::vector<TensorCut>& chosen, std::size_t dropped) const {
    const auto again = reruns(chosen, dropped);
    std::vector<std::size_t> segment_of(graph_.tensor_count(), chosen.size());
    for (std::size_t s = 0; s < again.size(); ++s)
      for (OpId op : again[s])
        for (TensorId made : graph_.outputs(op)) segment_of[made.index()] = s;
    std::vector<std::uint8_t> done(again.size(), 0);
    std::vector<OpId> sequence;
    for (std::size_t at = 0; at < graph_.op_count(); ++at) {
      const OpId op = graph_.order()[at];
      if (at >= turn_)
        for (TensorId input : graph_.inputs(op)) {
          const std::size_t segment = segment_of[input.index()];
          if (segment >= again.size() || done[segment] != 0) continue;
          done[segment] = 1;
          sequence.insert(sequence.end(), again[segment].begin(), again[segment].end());
        }
      sequence.push_back(op);
    }
    return sequence;
  }

 private:
  bool read_later(TensorId id) const {
    const auto readers = graph_.consumers(id);
    return std::any_of(readers.begin(), readers.end(),
                       [&](OpId reader) { return graph_.position(reader) >= turn_; });
  }

  // For each dropped segment the ops to compute again: those that make what the backward reads, and
  // what these need of the segment, short of the cut tensors and of what may not run again.
  std::vector<std::vector<OpId>> reruns(const std::vector<TensorCut>& chosen,
                                        std::size_t dropped) const {
    std::vector<std::uint8_t> wanted(graph_.op_count(), 0);
    std::vector<std::uint8_t> is_cut(graph_.tensor_count(), 0);
    for (const TensorCut& cut : chosen) is_cut[cut.tensor.index()] = 1;
    std::vector<std::vector<OpId>> again(dropped);
    for (std::size_t s = dropped; s > 0; --s) {
      const std::size_t begin = s > 1 ? chosen[s - 2].position : 0;
      for (std::size_t at = chosen[s - 1].position; at > begin; --at) {
        const OpId op = graph_.order()[at - 1];
        const auto made = graph_.outputs(op);
        const bool keeps = std::any_of(made.begin(), made.end(),
                                       [&](TensorId id) { return is_cut[id.index()] != 0; });
        if (rerunnable_[op.index()] == 0 || keeps) continue;
        if (saved_[at - 1] == 0 && wanted[op.index()] == 0) continue;
        again[s - 1].push_back(op);
        for (TensorId input : graph_.inputs(op))
          if (const OpId producer = graph_.producer(input); producer.valid())
            wanted[producer.index()] = 1;
      }
      std::reverse(again[s - 1].begin(), again[s - 1].end());
    }
    return again;
  }

  const Graph& graph_;
  std::size_t turn_;
  std::vector<std::uint8_t> rerunnable_;
  std::vector<TensorCut> cuts_;
  std::vector<std::int64_t> saved_;  // for each position of the forward
};

class Sqrt final : public Solver {
 public:
  std::string_view name() const override { return "sqrt"; }
  std::string_view summary() const override {
    return "Chen's segments between cut tensors: about sqrt(n) kept, the rest computed again";
  }
  Support supports(const Problem& problem) const override {
    if (problem.objective != Objective::least_time)
      return Support::no("it fits a plan into a budget and cannot minimise memory");
    return {};
  }

  Outcome solve(const Problem& problem, Context& context) const override {
    context.offer_sequence(problem.graph.order());
    context.limits().spend(static_cast<std::int64_t>(problem.graph.op_count()));
    if (context.done()) return context.finish();
    const Segments segments(problem.graph);
    if (!segments.has_cuts()) {
      context.set_note("sqrt: no single tensor cuts the forward part of this graph");
      return context.finish();
    }
    std::size_t before = 0;
    for (std::int64_t parts = 2; parts < kMostParts && !context.done(); parts += 1 + parts / 6) {
      const auto chosen = segments.choose(segments.saved_bytes() / parts);
      if (chosen.size() <= before) continue;
      before = chosen.size();
      drop_few(segments, chosen, context);
    }
    return context.finish();
  }

 private:
  static constexpr std::int64_t kMostParts = 4096;

  // Drops the fewest segments, from the first on, with which the budget is kept: by bisection, since
  // each one more lowers what is kept over the turn.
  static void drop_few(const Segments& segments, const std::vector<TensorCut>& chosen,
                       Context& context) {
    const auto fits = [&](std::size_t dropped) {
      const auto sequence = segments.sequence(chosen, dropped);
      context.limits().spend(static_cast<std::int64_t>(sequence.size()));
      const Plan plan = plan_from_sequence(context.problem().graph, sequence);
      const Bytes peak = simulate(context.problem().graph, plan).cost.peak;
      context.offer(plan);
      return peak <= context.problem().budget;
    };
    std::size_t low = 0, high = chosen.size();
    if (!fits(high)) return;
    while (high - low > 1 && !context.done()) {
      const std::size_t middle = low + (high - low) / 2;
      (fits(middle) ? high : low) = middle;
    }
  }
};

}  // namespace

std::unique_ptr<Solver> make_sqrt() { return std::make_unique<Sqrt>(); }

}  // namespace lowtide
