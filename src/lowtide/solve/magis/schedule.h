// Orders of least memory, and the repair of an order after a change. See schedule.cpp. Private to
// `magis`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/solve/magis/tasks.h"

namespace lowtide::solve::magis {

struct Effort {
  std::size_t max_states = 5'000;  // sets of tasks that a block's program may look at
  std::int64_t work = 0;           // sets looked at, and tasks run through
  // Charged an eighth of it, if there are any; once they stop, what is left stays as it is.
  Limits* limits = nullptr;

  bool spend(std::int64_t units) {
    const std::int64_t before = work / 8;
    work += units;
    return limits != nullptr && limits->spend_all(work / 8 - before);
  }
};

// MAGIS, section 6.1, and Serenity's program on each block (B. Ahn et al., MLSys 2020). `order`
// must be topological and is improved: what comes back needs no more memory. A block of more than
// 64 tasks, or of too many sets, stays as it is.
//
// full: all of it, in blocks between narrow waists, component by component.
// incremental: the interval of the order around the tasks that have changed, alone.
// repaired: beats both where a program gives up: each task that has changed, and those beside it,
// moves to the place between its last predecessor and its first successor where least is in use.
std::vector<Task> full_schedule(const Tasks& tasks, std::span<const Task> order, Effort& effort);
std::vector<Task> incremental_schedule(const Tasks& tasks, std::span<const Task> order,
                                       std::span<const Task> changed, Effort& effort);
std::vector<Task> repaired_schedule(const Tasks& tasks, std::span<const Task> order,
                                    std::span<const Task> changed, Effort& effort);

// What incremental_schedule looks at: places [first, last) of the order.
struct OrderInterval {
  std::size_t first = 0, last = 0;
};
OrderInterval interval_around(const Tasks& tasks, std::span<const Task> order,
                              std::span<const Task> changed);

}  // namespace lowtide::solve::magis
