// A question: a problem, transforms and live limits. The driver reduces it to a problem, which a
// solver solves.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lowtide/device/part_price.h"
#include "lowtide/plan/problem.h"
#include "lowtide/plan/terms.h"
#include "lowtide/transforms/transform.h"

namespace lowtide {

class TransformCache;

// A live limit: the most bytes in use during every step that runs this op. Bytes are counted as for
// the budget: resident bytes, all tensors that are live before the step, the op's outputs and its
// workspace. See the table in docs/reference/cost.md.
struct LiveLimit {
  OpId op;
  Bytes most;
};

struct Question {
  Problem problem;  // on the original graph
  // Applied to the graph before planning; a plan lists them first. Solvers never see them: the
  // driver gives them the transformed graph.
  std::vector<Transform> transforms = {};
  // For least_time. If an op has several limits, the smallest counts. Solvers never see them: the
  // driver reduces them to the budget (driver/live_limits.h).
  std::vector<LiveLimit> live_limits = {};
  Prices prices = {};  // for a search for transforms
  // For searches over many lists of transforms. Absent: each list is applied again.
  std::shared_ptr<TransformCache> transform_cache = nullptr;
};

Question question_on(const Graph& graph, Bytes budget, const Terms& terms);

// Throws InputError (place: "live_limits/i") for a limit of an op that does not exist, a negative
// limit, and any limit if the objective is not least time.
void check_live_limits(const Problem& problem, std::span<const LiveLimit> limits);

}  // namespace lowtide
