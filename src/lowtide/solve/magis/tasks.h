// The input of the scheduler: tasks that make and read items. It stands for a graph, or for a graph
// whose tensors have other sizes because regions of it run in parts. Private to `magis`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide::solve::magis {

using Task = std::uint32_t;

struct Item {
  static constexpr std::int32_t kGiven = -1;

  std::int64_t bytes = 0;
  std::int32_t maker = kGiven;  // the task that makes it; kGiven: live from the start
  std::vector<Task> readers;
  bool stays = false;  // to the end; others are freed after their last reader, or at the start
};

// Tasks are numbered from 0. Nothing runs in place.
struct Tasks {
  std::vector<std::vector<Task>> before, after;   // predecessors, successors
  std::vector<std::vector<std::uint32_t>> reads;  // items, each once
  std::vector<std::vector<std::uint32_t>> makes;
  std::vector<std::int64_t> workspace;
  std::vector<Item> items;

  std::size_t size() const { return before.size(); }
};

// Task i is OpId(i), item i TensorId(i).
Tasks tasks_of(const Graph& graph);

// The bytes in use while each task of a topological order runs. Linear.
std::vector<std::int64_t> live_of(const Tasks& tasks, std::span<const Task> order);
std::int64_t peak_of(const Tasks& tasks, std::span<const Task> order);

// For each of some tasks, how many of them are independent of it (no path either way): the narrow
// waist value (MAGIS, section 6.1). `order`: these tasks, topological; paths through other tasks do
// not count. Quadratic in their number, 64 at a time.
std::vector<std::size_t> narrow_waists(const Tasks& tasks, std::span<const Task> order);

}  // namespace lowtide::solve::magis
