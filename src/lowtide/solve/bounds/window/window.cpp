// Each network grows backwards from what is read inside its window, the last windows first.
#include "lowtide/solve/bounds/window/window.h"

#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::bounds {

namespace {

class Maker {
 public:
  Maker(const Graph& graph, std::span<const std::size_t> positions)
      : graph_(graph),
        positions_(positions),
        deadlines_(rerun_deadlines(graph, graph.order())),
        held_(positions.size() + 1, std::vector<std::uint8_t>(graph.tensor_count(), 0)) {}

  Window make(std::size_t from, std::size_t to, std::span<const std::uint8_t> in_use) {
    Window window;
    window.from = from;
    window.to = to;
    const std::size_t begin = positions_[from];
    const std::size_t last = to < positions_.size() ? positions_[to] : graph_.op_count() - 1;
    std::vector<std::int32_t> item(graph_.tensor_count(), -1), op_index(graph_.op_count(), -1);
    const auto take = [&](TensorId id, bool needed) {
      const OpId producer = graph_.producer(id);
      if (item[id.index()] >= 0 || in_use[id.index()] != 0 || graph_.bytes(id) == Bytes(0)) return;
      if (producer.valid() && graph_.position(producer) > begin) return;
      item[id.index()] = static_cast<std::int32_t>(window.items.size());
      window.items.push_back({id, needed, -1, -1});
    };
    for (std::size_t at = begin + 1; at <= last; ++at)
      for (TensorId id : graph_.inputs(graph_.order()[at])) take(id, true);
    if (to == positions_.size())
      for (TensorId id : graph_.outputs()) take(id, true);
    for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
      if (held_[to][i] != 0) take(TensorId(i), false);
    for (std::size_t i = 0; i < window.items.size(); ++i) {
      const TensorId id = window.items[i].tensor;
      held_[from][id.index()] = 1;
      const OpId producer = graph_.producer(id);
      if (!producer.valid() || !graph_.recomputable(producer) ||
          deadlines_[producer.index()] <= begin)
        continue;
      std::int32_t& index = op_index[producer.index()];
      if (index < 0) {
        index = static_cast<std::int32_t>(window.ops.size());
        window.ops.push_back(producer);
        for (TensorId input : graph_.inputs(producer)) take(input, false);
      }
      window.items[i].producer = index;
    }
    connect(window, item);
    return window;
  }

 private:
  void connect(Window& window, std::span<const std::int32_t> item) const {
    for (std::size_t i = 0; i < window.ops.size() + window.items.size(); ++i)
      window.flow.add_node();
    for (std::size_t i = 0; i < window.ops.size(); ++i) {
      for (TensorId id : graph_.inputs(window.ops[i]))
        if (const std::int32_t read = item[id.index()]; read >= 0) {
          window.reads.push(read);
          window.unbounded.push_back(window.flow.add_arc(
              static_cast<std::int32_t>(i), window.node(static_cast<std::size_t>(read))));
        }
      window.reads.end_row();
    }
    for (std::size_t i = 0; i < window.items.size(); ++i)
      if (window.items[i].producer >= 0)
        window.items[i].arc = window.flow.add_arc(window.node(i), window.items[i].producer);
    window.flow.build();
  }

  const Graph& graph_;
  std::span<const std::size_t> positions_;
  std::vector<std::size_t> deadlines_;
  std::vector<std::vector<std::uint8_t>> held_;  // by windows that begin at the position
};

}  // namespace

std::vector<std::uint8_t> in_use_at(const Graph& graph, std::size_t position) {
  std::vector<std::uint8_t> in_use(graph.tensor_count(), 0);
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) in_use[i] = !graph.freeable(TensorId(i));
  for (TensorId id : graph.inputs(graph.order()[position])) in_use[id.index()] = 1;
  for (TensorId id : graph.outputs(graph.order()[position])) in_use[id.index()] = 1;
  return in_use;
}

std::vector<Window> make_windows(const Problem& problem, std::span<const std::size_t> positions) {
  const Graph& graph = problem.graph;
  Maker maker(graph, positions);
  std::vector<Window> windows;
  for (std::size_t from = positions.size(); from-- > 0;) {
    const std::vector<std::uint8_t> in_use = in_use_at(graph, positions[from]);
    windows.push_back(maker.make(from, from + 1, in_use));
    if (from + 1 < positions.size()) windows.push_back(maker.make(from, positions.size(), in_use));
  }
  return windows;
}

}  // namespace lowtide::solve::bounds
