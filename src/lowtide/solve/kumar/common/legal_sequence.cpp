// One pass along the schedule.
#include "lowtide/solve/kumar/common/legal_sequence.h"

#include <cstdint>

namespace lowtide::solve::kumar {

namespace {

class Legal {
 public:
  explicit Legal(const Problem& problem)
      : graph_(problem.graph),
        given_(problem.order == Order::given),
        seen_(problem.graph.op_count(), 0),
        closed_(problem.graph.op_count(), 0) {}

  void compute(OpId op) {
    if (seen_[op.index()] == 0)
      first(op);
    else if (graph_.recomputable(op) && closed_[op.index()] == 0)
      sequence.push_back(op);
  }
  void first(OpId op) {
    if (seen_[op.index()] != 0) return;
    if (given_) {
      while (next_ <= graph_.position(op)) append(graph_.order()[next_++]);
      return;
    }
    struct Frame {
      OpId op;
      std::size_t next = 0;
    };
    std::vector<Frame> frames{{op}};
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const auto before = graph_.predecessors(frame.op);
      while (frame.next < before.size() && seen_[before[frame.next].index()] != 0) ++frame.next;
      if (frame.next < before.size()) {
        frames.push_back({before[frame.next]});
        continue;
      }
      append(frame.op);
      frames.pop_back();
    }
  }

  std::vector<OpId> sequence;

 private:
  void append(OpId op) {
    seen_[op.index()] = 1;
    sequence.push_back(op);
    for (TensorId changed : graph_.mutates(op)) {
      for (OpId reader : graph_.consumers(changed)) closed_[reader.index()] = 1;
      if (graph_.is_output(changed) && !graph_.is_input(changed))
        closed_[graph_.producer(changed).index()] = 1;
    }
  }

  const Graph& graph_;
  bool given_;
  std::size_t next_ = 0;
  std::vector<std::uint8_t> seen_, closed_;
};

}  // namespace

std::vector<OpId> legal_sequence(const Problem& problem, std::span<const OpId> schedule) {
  Legal legal(problem);
  for (OpId op : schedule) legal.compute(op);
  for (OpId op : problem.graph.order()) legal.first(op);
  return std::move(legal.sequence);
}

}  // namespace lowtide::solve::kumar
