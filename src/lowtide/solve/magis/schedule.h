// Orders of least peak memory, and the repair of an order after a change. See schedule.cpp. Private
// to `magis`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/solve/magis/tasks.h"

namespace lowtide::solve::magis {

struct Effort {
  std::size_t max_states = 5'000;  // most sets that the program of a block examines
  std::int64_t work = 0;           // sets examined, and tasks passed
  // If not null, charged with an eighth of `work`; when the limits stop, the rest of the order
  // stays.
  Limits* limits = nullptr;

  bool spend(std::int64_t units) {
    const std::int64_t before = work / 8;
    work += units;
    return limits != nullptr && limits->spend_all(work / 8 - before);
  }
};

// MAGIS, section 6.1, with Serenity's dynamic program on each block (B. Ahn et al., MLSys 2020).
// `order` must be topological. The result is no worse. A block of more than 64 tasks, or with too
// many sets, keeps its order.
//
// full: all of it, in blocks between narrow waists, component by component.
// incremental: the interval of the order around the tasks that have changed, alone.
// repaired: better than both where a dynamic program gives up. Each changed task, and those beside
// it, moves to the place between its last predecessor and its first successor with least memory.
std::vector<Task> full_schedule(const Tasks& tasks, std::span<const Task> order, Effort& effort);
std::vector<Task> incremental_schedule(const Tasks& tasks, std::span<const Task> order,
                                       std::span<const Task> changed, Effort& effort);
std::vector<Task> repaired_schedule(const Tasks& tasks, std::span<const Task> order,
                                    std::span<const Task> changed, Effort& effort);

// The stretch that incremental_schedule examines: places [first, last) of the order.
struct OrderInterval {
  std::size_t first = 0, last = 0;
};
OrderInterval interval_around(const Tasks& tasks, std::span<const Task> order,
                              std::span<const Task> changed);

}  // namespace lowtide::solve::magis
