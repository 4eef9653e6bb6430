// What is asked where the network is a chain.
#include <algorithm>

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
  const auto most = context_.limits().remaining(kChainShare).work;
  std::vector<Task> tasks;
  tasks.push_back(part_task(blocks, std::min(kChainWork * ops_, most.value_or(kMostWork))));
  tasks.back().share = kChainShare;
  tasks.back().options = {
      {"partition", "chain"}, {"levels", "1"}, {"top", "rotor"}, {"polish", "off"}};
  run(tasks, 1);
}

}  // namespace lowtide::driver
