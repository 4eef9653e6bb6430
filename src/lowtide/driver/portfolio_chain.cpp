// What is asked where the network is a chain.
#include <utility>

#include "lowtide/driver/portfolio.h"
#include "lowtide/graph/cuts.h"
#include "lowtide/graph/phases.h"

namespace lowtide::driver {

namespace {

constexpr std::int64_t kMostChain = 4'000;  // ops
constexpr std::int64_t kChainWork = 300;    // for each op
constexpr double kChainShare = 0.2;         // of the limits, at most

// Whether at nearly every place of the forward a single tensor goes on to what comes behind it.
bool is_chain(const Graph& graph) {
  const Phases phases = phases_of(graph);
  if (!phases.has_backward) return false;
  std::size_t forward = 0;
  while (phases.of[graph.order()[forward]] == Phase::forward) ++forward;
  return forward > 1 && 10 * tensor_cuts(graph, 0, forward).size() >= 9 * (forward - 1);
}

}  // namespace

// The dynamic program sees the whole of a chain where the search mends plans piece by piece, and
// has plans near the smallest budgets, where the search has none to begin from.
void Portfolio::ask_chain() {
  const solve::Solver* blocks = first(solve::Trait::blocks);
  if (blocks == nullptr || ops_ > kMostChain || stop() || !is_chain(problem_.graph)) return;
  Task task = part_task(blocks, work_within(kChainShare, kChainWork * ops_));
  task.share = kChainShare;
  task.options = {{"partition", "chain"}, {"levels", "1"}, {"top", "rotor"}, {"polish", "off"}};
  run_alone(std::move(task));
}

}  // namespace lowtide::driver
