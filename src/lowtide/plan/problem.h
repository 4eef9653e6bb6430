// A problem: a graph, a budget, and what its plans may use.
#pragma once

#include <optional>
#include <string_view>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/machine.h"
#include "lowtide/plan/techniques.h"

namespace lowtide {

// given: first computations follow the given order of the graph exactly; recomputations may be
// anywhere. free: any topological order.
enum class Order : std::uint8_t { free, given };

enum class Objective : std::uint8_t {
  least_time,    // within the budget
  least_memory,  // within the time limit
};

// All that a solver sees of a question. The driver reduces the rest to it (question.h).
struct Problem {
  const Graph& graph;
  Bytes budget;
  std::optional<Ticks> time_limit = std::nullopt;  // of the plan; for least_memory
  Objective objective = Objective::least_time;
  Order order = Order::free;
  std::optional<Machine> machine = std::nullopt;  // absent: no transfers
  Techniques techniques = {};
  std::optional<Bytes> host_budget = std::nullopt;  // absent: no limit
};

// Throws InputError (place: the tensor's "/tensors/i/home") if tensors at home on the host cannot
// be fetched: without a machine, or without `offload`; and (place: "host_budget") if they exceed
// the host budget. Throws InputError (place: the tensor's) if copying all of them once each way
// takes 2^63 ticks or more.
void require_plannable(const Problem& problem);

// The same problem on another graph.
Problem with_graph(const Problem& problem, const Graph& graph);

std::string_view to_string(Order order);
std::string_view to_string(Objective objective);

}  // namespace lowtide
