#include "lowtide/solve/magis/tasks.h"

#include <algorithm>
#include <bit>

namespace lowtide::solve::magis {

Tasks tasks_of(const Graph& graph) {
  Tasks tasks;
  const std::size_t count = graph.op_count();
  tasks.before.resize(count);
  tasks.after.resize(count);
  tasks.reads.resize(count);
  tasks.makes.resize(count);
  tasks.workspace.resize(count);
  tasks.items.resize(graph.tensor_count());
  for (const OpId op : AllIds<OpId>(count)) {
    const std::size_t i = op.index();
    for (const OpId other : graph.predecessors(op))
      tasks.before[i].push_back(static_cast<Task>(other.index()));
    for (const OpId other : graph.successors(op))
      tasks.after[i].push_back(static_cast<Task>(other.index()));
    for (const TensorId id : graph.inputs(op))
      tasks.reads[i].push_back(static_cast<std::uint32_t>(id.index()));
    for (const TensorId id : graph.outputs(op))
      tasks.makes[i].push_back(static_cast<std::uint32_t>(id.index()));
    tasks.workspace[i] = graph.workspace(op).count();
  }
  for (const TensorId id : AllIds<TensorId>(graph.tensor_count())) {
    Item& item = tasks.items[id.index()];
    item.bytes = graph.bytes(id).count();
    if (graph.producer(id).valid())
      item.maker = static_cast<std::int32_t>(graph.producer(id).index());
    for (const OpId op : graph.consumers(id)) item.readers.push_back(static_cast<Task>(op.index()));
    item.stays = graph.is_output(id) || !graph.freeable(id);
  }
  return tasks;
}

std::vector<std::int64_t> live_of(const Tasks& tasks, std::span<const Task> order) {
  std::vector<std::uint32_t> left(tasks.items.size());
  std::int64_t live = 0;
  for (std::size_t i = 0; i < tasks.items.size(); ++i) {
    left[i] = static_cast<std::uint32_t>(tasks.items[i].readers.size());
    const Item& item = tasks.items[i];
    if (item.maker == Item::kGiven && (item.stays || left[i] > 0)) live += item.bytes;
  }
  std::vector<std::int64_t> found;
  found.reserve(order.size());
  for (const Task task : order) {
    for (const std::uint32_t item : tasks.makes[task]) live += tasks.items[item].bytes;
    found.push_back(live + tasks.workspace[task]);
    for (const std::uint32_t item : tasks.makes[task])
      if (left[item] == 0 && !tasks.items[item].stays) live -= tasks.items[item].bytes;
    for (const std::uint32_t item : tasks.reads[task])
      if (--left[item] == 0 && !tasks.items[item].stays) live -= tasks.items[item].bytes;
  }
  return found;
}

std::int64_t peak_of(const Tasks& tasks, std::span<const Task> order) {
  const auto live = live_of(tasks, order);
  return live.empty() ? 0 : *std::ranges::max_element(live);
}

std::vector<std::size_t> narrow_waists(const Tasks& tasks, std::span<const Task> order) {
  constexpr std::uint32_t kNone = UINT32_MAX;
  const std::size_t count = order.size();
  std::vector<std::uint32_t> place(tasks.size(), kNone);
  for (std::size_t i = 0; i < count; ++i) place[order[i]] = static_cast<std::uint32_t>(i);
  std::vector<std::size_t> found(count, count - std::min<std::size_t>(count, 1));
  std::vector<std::uint64_t> from(count);
  // Which of 64 tasks reach each task, then which tasks each of the 64 reaches.
  for (std::size_t first = 0; first < count; first += 64) {
    const auto seed = [&](std::size_t i) {
      return i >= first && i < first + 64 ? std::uint64_t{1} << (i - first) : 0;
    };
    for (std::size_t i = first; i < count; ++i) {
      from[i] = seed(i);
      for (const Task task : tasks.before[order[i]])
        if (const auto at = place[task]; at != kNone && at >= first) from[i] |= from[at];
      found[i] -= static_cast<std::size_t>(std::popcount(from[i] & ~seed(i)));
    }
    const std::size_t end = std::min(count, first + 64);
    for (std::size_t i = end; i-- > 0;) {
      from[i] = seed(i);
      for (const Task task : tasks.after[order[i]])
        if (const auto at = place[task]; at != kNone && at < end) from[i] |= from[at];
      found[i] -= static_cast<std::size_t>(std::popcount(from[i] & ~seed(i)));
    }
  }
  return found;
}

}  // namespace lowtide::solve::magis
