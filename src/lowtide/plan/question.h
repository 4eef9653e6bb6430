// What is asked. The driver reduces a question to a problem, which a solver solves.
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

// What may be live while one op runs, whenever it does: no more than so many bytes. All that the
// cost semantics count during a step are in it: the resident bytes and the inputs of the graph,
// whatever else is live before the step, the op's outputs and its workspace. So it says what is
// true of the budget, for this op's steps alone; docs/reference/cost.md has the table.
struct LiveLimit {
  OpId op;
  Bytes most;
};

struct Question {
  Problem problem;  // on the graph as it is given
  // Applied to the graph before anything is planned; a plan lists them first.
  std::vector<Transform> transforms = {};
  std::vector<LiveLimit> live_limits = {};  // for least_time; the smallest of one op counts
  Prices prices = {};                       // where the driver looks for transforms that pay
  // For searches over many lists of transforms. Absent: each list is applied anew.
  std::shared_ptr<TransformCache> transform_cache = nullptr;
};

Question question_on(const Graph& graph, Bytes budget, const Terms& terms);

// InputError (place: "live_limits/i") for a limit of an op that there is not, for a negative one,
// and for any where the objective is not least time.
void check_live_limits(const Problem& problem, std::span<const LiveLimit> limits);

}  // namespace lowtide
