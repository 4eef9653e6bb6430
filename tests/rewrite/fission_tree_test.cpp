// The F-Tree: scores against their definition, regions that hang by inclusion, and the rules that
// enable them.
#include "lowtide/rewrite/fission_tree.h"

#include <algorithm>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "lowtide/graph/dominators.h"
#include "lowtide/rewrite/convex.h"
#include "lowtide/rewrite/profile.h"
#include "lowtide/transforms/apply.h"

#include "support/network.h"

namespace lowtide {
namespace {

using namespace rewrite;

constexpr std::int64_t kLevels = 4;

Graph some_step(std::uint64_t seed) {
  Random random(seed);
  Classifier classifier = Classifier::random(random);
  classifier.batch = 8 + static_cast<std::int64_t>(random.below(12));
  const Graph graph = step_of(classifier);
  if (!classifier.barrier) return graph;
  return apply_transforms(graph, std::vector<Transform>{hoist_of(graph)}).graph;
}

// Equation 4 for two parts, by what it says.
double score(const Graph& graph, const Family& family, OpId ruler) {
  const Profile profile = profile_of(graph);
  std::vector<std::uint8_t> hot(graph.tensor_count(), 0), among;
  for (const Interval& one : profile.intervals)
    if (one.first <= profile.fullest && profile.fullest <= one.last) hot[one.tensor.index()] = 1;
  for (const auto& carry : family.reach.carries) among.push_back(carry ? 1 : 0);
  const DominatorTree tree = dominators(graph, among);
  double sum = 0;
  std::set<TensorId> read;
  bool rules_any = false;
  for (const OpId op : graph.order()) {
    if (among[op.index()] == 0 || (ruler.valid() && !tree.dominates(ruler, op))) continue;
    for (const TensorId id : graph.inputs(op))
      if (const OpId maker = graph.producer(id); !maker.valid() || among[maker.index()] == 0)
        read.insert(id);
    if (op == ruler) continue;
    rules_any = true;
    for (const TensorId id : graph.outputs(op))
      if (hot[id.index()] != 0) sum += static_cast<double>(graph.bytes(id).count()) / 2;
  }
  if (ruler.valid() && rules_any)
    for (const TensorId id : graph.outputs(ruler)) read.insert(id);
  for (const TensorId id : read)
    if (hot[id.index()] == 0) sum -= static_cast<double>(graph.bytes(id).count());
  return sum;
}

TEST_CASE("fission tree: scores are equation 4, levels shares of the best, children inside") {
  std::size_t seen = 0, deep = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const Graph graph = some_step(seed);
    const FissionTree tree = fission_tree(graph, kLevels);
    const auto all = families(graph);
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const FissionNode& node = tree.nodes[i];
      ++seen;
      CHECK(node.score > Bytes(0));
      CHECK(node.level >= 1);
      CHECK(node.level <= kLevels);
      const auto said = static_cast<double>(node.score.count());
      CHECK(std::ranges::any_of(all, [&](const Family& family) {
        return std::abs(score(graph, family, node.ruler) - said) < 1;
      }));
      const Members members = members_of(graph, node.region.ops);
      CHECK(!node.numbers.empty());
      CHECK(std::ranges::is_sorted(node.numbers));
      if (node.parent == FissionNode::kNone) continue;
      ++deep;
      CHECK(node.parent < i);
      const auto& above = tree.nodes[node.parent].region.ops;
      CHECK(above.size() > node.region.ops.size());
      const Members outer = members_of(graph, above);
      for (const OpId op : node.region.ops) CHECK(outer[op.index()] != 0);
      CHECK(tree.is_above(node.parent, i));
      CHECK(!tree.is_across(node.parent, i));
    }
    for (std::size_t a = 0; a < tree.nodes.size(); ++a)
      for (std::size_t b = a + 1; b < tree.nodes.size(); ++b) {
        const Members members = members_of(graph, tree.nodes[a].region.ops);
        const bool meet = std::ranges::any_of(tree.nodes[b].region.ops,
                                              [&](OpId op) { return members[op.index()] != 0; });
        CHECK(meet == (tree.is_across(a, b) || tree.is_above(a, b)));
      }
  }
  CHECK(seen > 40);
  CHECK(deep > 10);
}

// A tree without a graph:  0 above 1 and 2, 1 above 3; 2 and 4 lie across.
FissionTree made_tree() {
  FissionTree tree;
  tree.nodes.resize(5);
  const std::size_t none = FissionNode::kNone, parents[] = {none, 0, 0, 1, none};
  for (std::size_t i = 0; i < 5; ++i) {
    tree.nodes[i].numbers = {2, 4};
    tree.nodes[i].parent = parents[i];
    if (parents[i] != none) tree.nodes[parents[i]].children.push_back(i);
  }
  tree.across.assign(5, std::vector<std::uint8_t>(5, 0));
  tree.across[2][4] = tree.across[4][2] = 1;
  return tree;
}

std::set<Fission> after(const std::vector<FissionMove>& moves, FissionRule rule) {
  std::set<Fission> found;
  for (const FissionMove& move : moves)
    if (move.rule == rule) found.insert(move.after);
  return found;
}

TEST_CASE("fission moves: the rules, one by one") {
  const FissionTree tree = made_tree();
  const auto from = [&](const Fission& now, Enable enable = Enable::leaves, bool nest = true) {
    return fission_moves(tree, now, enable, nest);
  };
  // From nothing: the leaves.
  const auto begin = from({1, 1, 1, 1, 1});
  CHECK(begin.size() == 3);
  CHECK(after(begin, FissionRule::enable) ==
        std::set<Fission>{{1, 1, 2, 1, 1}, {1, 1, 1, 2, 1}, {1, 1, 1, 1, 2}});
  CHECK(from({1, 1, 1, 1, 1}, Enable::any).size() == 5);
  // The parent of what is enabled, beside it or in its place; the next number; not across.
  const auto one = from({1, 1, 2, 1, 1});
  CHECK(after(one, FissionRule::enable) == std::set<Fission>{{2, 1, 2, 1, 1}, {1, 1, 2, 2, 1}});
  CHECK(after(one, FissionRule::lift) == std::set<Fission>{{2, 1, 1, 1, 1}});
  CHECK(after(one, FissionRule::disable) == std::set<Fission>{{1, 1, 1, 1, 1}});
  CHECK(after(one, FissionRule::mutate) == std::set<Fission>{{1, 1, 4, 1, 1}});
  CHECK(after(from({1, 1, 2, 1, 1}, Enable::leaves, false), FissionRule::enable) ==
        std::set<Fission>{{1, 1, 2, 2, 1}});
  // Below an enabled node nothing is lifted, above one nothing disabled; the last number stays.
  const auto nested = from({4, 1, 1, 2, 1});
  CHECK(after(nested, FissionRule::lift).empty());
  CHECK(after(nested, FissionRule::disable) == std::set<Fission>{{4, 1, 1, 1, 1}});
  CHECK(after(nested, FissionRule::mutate) == std::set<Fission>{{4, 1, 1, 4, 1}});
  CHECK(after(nested, FissionRule::enable) == std::set<Fission>{{4, 1, 2, 2, 1}, {4, 1, 1, 2, 2}});
}

TEST_CASE("fission moves: lifts and enables lead from the leaves to every node") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const FissionTree tree = fission_tree(some_step(seed), kLevels);
    std::set<Fission> known{Fission(tree.nodes.size(), 1)};
    std::vector<Fission> next(known.begin(), known.end());
    std::set<std::size_t> enabled;
    while (!next.empty() && known.size() < 2000) {
      const Fission now = next.back();
      next.pop_back();
      for (FissionMove& move : fission_moves(tree, now, Enable::leaves, false)) {
        if (move.rule == FissionRule::mutate) continue;
        for (std::size_t node = 0; node < move.after.size(); ++node)
          if (move.after[node] > 1) enabled.insert(node);
        if (known.insert(move.after).second) next.push_back(std::move(move.after));
      }
    }
    CHECK(enabled.size() == tree.nodes.size());
  }
}

}  // namespace
}  // namespace lowtide
