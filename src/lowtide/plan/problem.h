// What may be asked: fit this graph into that budget.
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

// given: the first computations follow the graph's own order exactly, recomputations go anywhere.
// free: any topological order.
enum class Order : std::uint8_t { free, given };

enum class Objective : std::uint8_t {
  least_time,    // within the budget
  least_memory,  // within the time limit
};

// What may be live while one op runs, whenever it does: no more than so many bytes. All that the
// cost semantics count during a step are in it: the resident bytes and the inputs of the graph,
// whatever else is live before the step, the op's outputs and its workspace. So it says what is
// true of the budget, for this op's steps alone; docs/reference/cost.md has the table.
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
  std::optional<Bytes> host_budget = std::nullopt;  // of the host's peak; absent: no limit
  // For least_time. Of several for one op the smallest holds. Solvers never see one: the driver
  // brings them down to the budget (driver/live_limits.h).
  std::vector<LiveLimit> live_limits = {};
  // Applied to the graph before anything is planned; a plan lists them first. Solvers never see
  // one: the driver gives them the transformed graph.
  std::vector<Transform> transforms = {};
  // What parts of ops would take, where the driver looks for transforms that pay: as the table has
  // measured it, else on that device. Absent: no table, an A100.
  std::optional<Device> priced_on = std::nullopt;
  std::shared_ptr<const CostTable> part_costs = nullptr;
  // For searches over many lists of transforms. Absent: each list is applied anew.
  std::shared_ptr<TransformCache> transform_cache = nullptr;
};

// InputError (place: "live_limits/i") for a limit of an op that there is not, for a negative one,
// and for any where the objective is not least time.
void check_live_limits(const Problem& problem);

// InputError (place: the tensor's "/tensors/i/home") for a graph with a tensor whose home is the
// host where nothing can bring it: without a machine, or without `offload`; and (place:
// "host_budget") where what begins on the host is more than may lie there. InputError (place: the
// tensor's) too where the copies of all of these once each way take longer than can be counted.
void require_plannable(const Problem& problem);

// The same problem on another graph of as many ops and tensors, without the `transform_cache`,
// whose graphs come from the first one.
Problem with_graph(const Problem& problem, const Graph& graph);

std::string_view to_string(Order order);
std::string_view to_string(Objective objective);

}  // namespace lowtide
