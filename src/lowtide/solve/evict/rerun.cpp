// Two sweeps over the links.
#include "lowtide/solve/evict/rerun.h"

#include <algorithm>

#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::evict {

std::vector<std::uint8_t> rerunnable_ops(const Graph& graph, std::span<const OpId> order) {
  const auto deadlines = rerun_deadlines(graph, order);
  std::vector<std::uint8_t> rerunnable(graph.op_count());
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    rerunnable[i] = graph.recomputable(OpId(i)) && deadlines[i] == order.size();
  return rerunnable;
}

std::vector<std::size_t> last_needs(const Graph& graph, std::span<const OpId> order,
                                    std::span<const std::uint8_t> rerunnable) {
  std::vector<std::size_t> position(graph.op_count());
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i].index()] = i;
  std::vector<std::size_t> direct(graph.tensor_count(), 0), through(graph.tensor_count(), 0);
  const auto settle = [&](TensorId id) {
    std::size_t& last = direct[id.index()];
    if (graph.producer(id).valid()) last = position[graph.producer(id).index()];
    for (OpId reader : graph.consumers(id)) last = std::max(last, position[reader.index()]);
    if (graph.is_output(id)) last = order.size();
    through[id.index()] = std::max(through[id.index()], last);
  };
  // In reverse order, so that the outputs of an op are decided before its inputs.
  for (std::size_t i = order.size(); i > 0; --i) {
    const OpId op = order[i - 1];
    std::size_t wanted = 0;
    for (TensorId made : graph.outputs(op)) {
      settle(made);
      wanted = std::max(wanted, through[made.index()]);
    }
    if (rerunnable[op.index()] == 0) continue;
    for (TensorId input : graph.inputs(op))
      through[input.index()] = std::max(through[input.index()], wanted);
  }
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const OpId producer = graph.producer(TensorId(i));
    if (!producer.valid()) settle(TensorId(i));
    if (!producer.valid() || rerunnable[producer.index()] == 0) direct[i] = through[i];
  }
  return direct;
}

}  // namespace lowtide::solve::evict
