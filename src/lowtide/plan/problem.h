// What is solved: fit this graph into that budget.
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

// All that a solver knows of what is asked. question.h has what is reduced to it.
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

// InputError (place: the tensor's "/tensors/i/home") for a graph with a tensor whose home is the
// host where nothing can bring it: without a machine, or without `offload`; and (place:
// "host_budget") where what begins on the host is more than may lie there. InputError (place: the
// tensor's) too where the copies of all of these once each way take longer than can be counted.
void require_plannable(const Problem& problem);

// The same problem on another graph.
Problem with_graph(const Problem& problem, const Graph& graph);

std::string_view to_string(Order order);
std::string_view to_string(Objective objective);

}  // namespace lowtide
