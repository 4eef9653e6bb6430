// A problem: a graph, a budget, and the terms of its plans.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lowtide/device/cost_table.h"
#include "lowtide/device/device.h"
#include "lowtide/graph/graph.h"
#include "lowtide/plan/machine.h"
#include "lowtide/plan/techniques.h"
#include "lowtide/transforms/transform.h"

namespace lowtide {

class TransformCache;

// given: first computations follow the given order of the graph exactly; recomputations may be
// anywhere. free: any topological order.
enum class Order : std::uint8_t { free, given };

enum class Objective : std::uint8_t {
  least_time,    // within the budget
  least_memory,  // within the time limit
};

// A live limit: the most bytes in use during every step that runs this op. Bytes are counted as for
// the budget: resident bytes, all tensors that are live before the step, the op's outputs and its
// workspace. See the table in docs/reference/cost.md.
struct LiveLimit {
  OpId op;
  Bytes most;
};

struct Problem {
  const Graph& graph;
  Bytes budget;
  std::optional<Ticks> time_limit = std::nullopt;  // of the plan; for least_memory
  Objective objective = Objective::least_time;
  Order order = Order::free;
  std::optional<Machine> machine = std::nullopt;  // absent: no transfers
  Techniques techniques = {};
  std::optional<Bytes> host_budget = std::nullopt;  // absent: no limit
  // For least_time. If an op has several limits, the smallest counts. Solvers never see them: the
  // driver reduces them to the budget (driver/live_limits.h).
  std::vector<LiveLimit> live_limits = {};
  // Applied to the graph before planning; a plan lists them first. Solvers never see them: the
  // driver gives them the transformed graph.
  std::vector<Transform> transforms = {};
  // The prices of parts of ops in a search for transforms: measured ones in the table, otherwise
  // estimates for the device. Absent: no table, an A100.
  std::optional<Device> priced_on = std::nullopt;
  std::shared_ptr<const CostTable> part_costs = nullptr;
  // For searches over many lists of transforms. Absent: each list is applied again.
  std::shared_ptr<TransformCache> transform_cache = nullptr;
};

// Throws InputError (place: "live_limits/i") for a limit of an op that does not exist, a negative
// limit, and any limit if the objective is not least time.
void check_live_limits(const Problem& problem);

// Throws InputError (place: the tensor's "/tensors/i/home") if tensors at home on the host cannot
// be fetched: without a machine, or without `offload`; and (place: "host_budget") if they exceed
// the host budget. Throws InputError (place: the tensor's) if copying all of them once each way
// takes 2^63 ticks or more.
void require_plannable(const Problem& problem);

// The same problem on another graph with equally many ops and tensors, without the
// `transform_cache`, which is for the first graph.
Problem with_graph(const Problem& problem, const Graph& graph);

std::string_view to_string(Order order);
std::string_view to_string(Objective objective);

}  // namespace lowtide
