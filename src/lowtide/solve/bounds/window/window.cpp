// Each network is built backwards from the tensors that its window reads, the last windows first.
#include "lowtide/solve/bounds/window/window.h"

namespace lowtide::solve::bounds {

namespace {

class Maker {
 public:
  Maker(const Graph& graph, std::span<const CutPoint> moments)
      : graph_(graph),
        moments_(moments),
        held_(moments.size() + 1, std::vector<std::uint8_t>(graph.tensor_count(), 0)) {}

  // `in_use` and `after`: those of the cut point `from`.
  Window make(std::size_t from, std::size_t to, std::span<const std::uint8_t> in_use,
              const AfterCut& after) {
    Window window;
    window.from = from;
    window.to = to;
    const std::vector<Side>& begin = moments_[from].side;
    std::vector<std::int32_t> item(graph_.tensor_count(), -1), op_index(graph_.op_count(), -1);
    const auto take = [&](TensorId id, bool needed) {
      const OpId producer = graph_.producer(id);
      if (item[id.index()] >= 0 || in_use[id.index()] != 0 || graph_.bytes(id) == Bytes(0)) return;
      if (producer.valid() && begin[producer.index()] == Side::after) return;
      item[id.index()] = static_cast<std::int32_t>(window.items.size());
      window.items.push_back({id, needed, -1, -1});
    };
    for (const OpId op : graph_.order()) {
      if (begin[op.index()] != Side::after || !ends_by(op, to)) continue;
      for (TensorId id : graph_.inputs(op)) take(id, true);
    }
    if (to == moments_.size())
      for (TensorId id : graph_.outputs()) take(id, true);
    for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
      if (held_[to][i] != 0) take(TensorId(i), false);
    for (std::size_t i = 0; i < window.items.size(); ++i) {
      const TensorId id = window.items[i].tensor;
      held_[from][id.index()] = 1;
      const OpId producer = graph_.producer(id);
      if (!after.can_run(producer)) continue;
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
  // Whether the first computation comes at or before the cut point, or the end.
  bool ends_by(OpId op, std::size_t to) const {
    if (to == moments_.size()) return true;
    const Side side = moments_[to].side[op.index()];
    return side == Side::before || side == Side::at;
  }

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
  std::span<const CutPoint> moments_;
  std::vector<std::vector<std::uint8_t>> held_;  // by windows that begin at the cut point
};

}  // namespace

std::vector<std::uint8_t> in_use_at(const Graph& graph, OpId op) {
  std::vector<std::uint8_t> in_use(graph.tensor_count(), 0);
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) in_use[i] = !graph.freeable(TensorId(i));
  for (TensorId id : graph.inputs(op)) in_use[id.index()] = 1;
  for (TensorId id : graph.outputs(op)) in_use[id.index()] = 1;
  return in_use;
}

std::size_t size_of(const Graph& graph) {
  return graph.op_count() + graph.tensor_count() + graph.link_count();
}

std::int64_t work_of_windows(const Graph& graph, std::size_t moments) {
  constexpr std::size_t kSizePerUnit = 16;
  return static_cast<std::int64_t>(moments * (moments + 1) / 2 * size_of(graph) / kSizePerUnit);
}

std::vector<Window> make_windows(const Problem& problem, std::span<const CutPoint> moments,
                                 WindowSet set) {
  const Graph& graph = problem.graph;
  Maker maker(graph, moments);
  std::vector<Window> windows;
  for (std::size_t from = moments.size(); from-- > 0;) {
    const std::vector<std::uint8_t> in_use = in_use_at(graph, moments[from].op);
    const AfterCut after(graph, moments[from]);
    windows.push_back(maker.make(from, from + 1, in_use, after));
    for (std::size_t to = from + 2; set == WindowSet::all && to < moments.size(); ++to)
      windows.push_back(maker.make(from, to, in_use, after));
    if (from + 1 < moments.size())
      windows.push_back(maker.make(from, moments.size(), in_use, after));
  }
  return windows;
}

}  // namespace lowtide::solve::bounds
