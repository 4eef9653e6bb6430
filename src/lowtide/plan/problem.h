// What may be asked: fit this graph into that budget.
#pragma once

#include <optional>
#include <string_view>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/machine.h"
#include "lowtide/plan/techniques.h"

namespace lowtide {

// given: the first computations follow the graph's own order exactly, recomputations go anywhere.
// free: any topological order.
enum class Order : std::uint8_t { free, given };

enum class Objective : std::uint8_t {
  least_time,    // within the budget
  least_memory,  // within the time limit
};

struct Problem {
  const Graph& graph;
  Bytes budget;
  std::optional<Ticks> time_limit = std::nullopt;  // of the plan; for least_memory
  Objective objective = Objective::least_time;
  Order order = Order::free;
  std::optional<Machine> machine = std::nullopt;  // absent: no transfers
  Techniques techniques = {};
  std::optional<Bytes> host_budget = std::nullopt;  // of the host's peak; absent: no limit
};

std::string_view to_string(Order order);
std::string_view to_string(Objective objective);

}  // namespace lowtide
