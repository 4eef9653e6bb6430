// Problem: a cut selects the tensors kept across one cut point. How are the others restored?
//
// Idea: just in time: before an op runs, its missing inputs are recomputed, recursively.
//
// Invariant: a tensor is recomputed at most once, so the sequence is at most twice as long.
//
// Loses: memory away from the cut point is ignored; a restored tensor stays live until its last
// use.
#include "lowtide/solve/sequence/just_in_time.h"

#include <cstdint>

#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve {

namespace {

class JustInTime {
 public:
  explicit JustInTime(const Graph& graph)
      : graph_(graph),
        deadline_(rerun_deadlines(graph, graph.order())),
        live_(graph.tensor_count(), 0) {
    for (std::size_t i = 0; i < graph.tensor_count(); ++i) live_[i] = graph.is_input(TensorId(i));
  }

  void drop(TensorId id) { live_[id.index()] = 0; }
  bool live(TensorId id) const { return live_[id.index()] != 0; }

  // Computes the op with its missing inputs. Returns false if that requires an op that may not run
  // again.
  bool run(OpId op) {
    stack_.assign(1, op);
    while (!stack_.empty()) {
      const OpId top = stack_.back();
      bool ready = true;
      for (TensorId input : graph_.inputs(top)) {
        if (live(input)) continue;
        const OpId producer = graph_.producer(input);
        if (!producer.valid() || !graph_.recomputable(producer) ||
            deadline_[producer.index()] <= now_)
          return false;
        stack_.push_back(producer);
        ready = false;
        break;
      }
      if (!ready) continue;
      stack_.pop_back();
      sequence.push_back(top);
      for (TensorId made : graph_.outputs(top)) live_[made.index()] = 1;
    }
    return true;
  }
  bool first(std::size_t position) {
    now_ = position;
    return run(graph_.order()[position]);
  }
  bool again(TensorId id) {
    now_ = graph_.op_count() - 1;
    const OpId producer = graph_.producer(id);
    return producer.valid() && graph_.recomputable(producer) &&
           deadline_[producer.index()] > now_ && run(producer);
  }

  std::vector<OpId> sequence;

 private:
  const Graph& graph_;
  std::vector<std::size_t> deadline_;
  std::vector<std::uint8_t> live_;
  std::vector<OpId> stack_;
  std::size_t now_ = 0;
};

}  // namespace

std::optional<std::vector<OpId>> sequence_without(const Problem& problem, OpId op,
                                                  std::span<const TensorId> dropped) {
  const Graph& graph = problem.graph;
  JustInTime plan(graph);
  for (std::size_t at = 0; at < graph.op_count(); ++at) {
    if (!plan.first(at)) return std::nullopt;
    if (graph.order()[at] != op) continue;
    for (TensorId id : dropped)
      if (!graph.is_input(id) && graph.position(graph.producer(id)) <= at) plan.drop(id);
  }
  for (TensorId id : graph.outputs())
    if (!plan.live(id) && !plan.again(id)) return std::nullopt;
  return without_unread(problem, plan.sequence);
}

}  // namespace lowtide::solve
