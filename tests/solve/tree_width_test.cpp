// What section 3 of Kumar et al. states of tree decompositions, separators and schedules, and what
// the filter makes of schedules.
#include <algorithm>
#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/kumar/common/editable_sequence.h"
#include "lowtide/solve/kumar/common/legal_sequence.h"
#include "lowtide/solve/kumar/common/op_graph.h"
#include "lowtide/solve/kumar/pwremat/pwremat.h"
#include "lowtide/solve/kumar/twremat/tree_schedule.h"
#include "lowtide/solve/kumar/twremat/twremat.h"
#include "lowtide/solve/sequence/peak_floor.h"

#include "solve/run_solver.h"
#include "solve/training_chain.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

using solve::kumar::twremat::Bag;
using solve::kumar::twremat::balanced_separator;
using solve::kumar::twremat::decompose;
using solve::kumar::twremat::Division;
using solve::kumar::twremat::Elimination;
using solve::kumar::twremat::EliminationSettings;
using solve::kumar::twremat::Node;
using solve::kumar::twremat::Part;
using solve::kumar::twremat::TreeDecomposition;
using solve::kumar::twremat::TreeSchedule;

const std::function<bool(std::int64_t)> kEndless = [](std::int64_t) { return false; };

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

Graph plain_graph(Random& random, std::size_t most) {
  RandomGraphSettings settings = RandomGraphSettings::plain(1 + random.below(most));
  settings.window = 2 + random.below(8);
  settings.reads = 1 + random.below(3);
  return random_graph(random, settings);
}

solve::kumar::twremat::EliminationSettings some_rule(Random& random) {
  constexpr solve::kumar::twremat::Elimination kRules[] = {
      solve::kumar::twremat::Elimination::min_fill, solve::kumar::twremat::Elimination::min_degree,
      solve::kumar::twremat::Elimination::given};
  solve::kumar::twremat::EliminationSettings settings{.rule = kRules[random.below(3)]};
  if (random.chance(0.2)) settings.dense = 1 + random.below(5);
  return settings;
}

solve::kumar::twremat::TreeDecomposition decomposed(Random& random, const Graph& graph,
                                                    bool spine) {
  const auto tree = solve::kumar::twremat::decompose(
      solve::kumar::undirected(solve::kumar::OpGraph(graph, spine)),
      solve::kumar::positions_of(graph), some_rule(random), kEndless);
  REQUIRE(tree);
  return *tree;
}

// Nodes and edges in bags, bags of a node connected, one tree.
void check_tree(const solve::kumar::Neighbours& neighbours,
                const solve::kumar::twremat::TreeDecomposition& tree) {
  std::set<std::pair<Node, Node>> together;
  // Of the bags of a node, all but one have their parent among them.
  std::vector<int> tops(neighbours.size(), 0);
  int roots = 0;
  for (std::size_t b = 0; b < tree.bags.size(); ++b) {
    const solve::kumar::twremat::Bag& bag = tree.bags[b];
    CHECK(std::is_sorted(bag.begin(), bag.end()));
    for (Node x : bag)
      for (Node y : bag) together.insert({x, y});
    const std::int32_t parent = tree.parent[b];
    roots += parent < 0;
    for (Node node : bag)
      tops[at(node)] += parent < 0 || !std::binary_search(tree.bags[at(parent)].begin(),
                                                          tree.bags[at(parent)].end(), node);
  }
  CHECK(roots == 1);
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    CHECK(tops[i] == 1);
    for (Node other : neighbours[i]) CHECK(together.count({static_cast<Node>(i), other}) == 1);
  }
}

TEST_CASE("tree width: every elimination gives a tree decomposition, and Lemma 1 shrinks it") {
  for (int i = 0; i < samples(300); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = plain_graph(random, 60);
    const bool spine = random.chance(0.3);
    const solve::kumar::twremat::TreeDecomposition tree = decomposed(random, graph, spine);
    const solve::kumar::Neighbours neighbours =
        solve::kumar::undirected(solve::kumar::OpGraph(graph, spine));
    check_tree(neighbours, tree);
    const solve::kumar::twremat::TreeDecomposition small = solve::kumar::twremat::shrink(tree);
    check_tree(neighbours, small);
    CHECK(small.bags.size() <= graph.op_count());
    CHECK(small.width() == tree.width());
    for (std::size_t b = 0; b < small.bags.size(); ++b) {
      if (small.parent[b] < 0) continue;
      const solve::kumar::twremat::Bag &below = small.bags[b],
                                       &above = small.bags[at(small.parent[b])];
      CHECK_FALSE(std::includes(below.begin(), below.end(), above.begin(), above.end()));
      CHECK_FALSE(std::includes(above.begin(), above.end(), below.begin(), below.end()));
    }
  }
}

TEST_CASE("tree width: min-fill finds the width of trees, cycles and ladders") {
  const auto width = [](const std::vector<std::pair<Node, Node>>& edges, std::size_t count) {
    solve::kumar::Neighbours neighbours(count);
    for (const auto& [a, b] : edges) {
      neighbours[at(a)].push_back(b);
      neighbours[at(b)].push_back(a);
    }
    for (auto& row : neighbours) std::sort(row.begin(), row.end());
    return solve::kumar::twremat::decompose(neighbours, std::vector<std::int32_t>(count, 0), {},
                                            kEndless)
        ->width();
  };
  CHECK(width({{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 5}}, 6) == 1);
  CHECK(width({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}}, 5) == 2);
  CHECK(width({{0, 1}, {2, 3}, {4, 5}, {0, 2}, {2, 4}, {1, 3}, {3, 5}}, 6) == 2);
  CHECK(width({{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}, 4) == 3);
  CHECK(width({}, 3) == 0);
}

// The weight of the largest subtree that is left without a bag.
double largest_without(const solve::kumar::twremat::TreeDecomposition& tree, std::int32_t bag,
                       const std::vector<double>& weights) {
  std::vector<std::int32_t> component(tree.bags.size(), -1);
  double largest = 0;
  for (std::size_t start = 0; start < tree.bags.size(); ++start) {
    if (component[start] >= 0 || at(bag) == start) continue;
    double weight = 0;
    std::vector<std::size_t> walk{start};
    component[start] = static_cast<std::int32_t>(start);
    for (std::size_t i = 0; i < walk.size(); ++i) {
      weight += weights[walk[i]];
      for (std::size_t b = 0; b < tree.bags.size(); ++b) {
        const bool linked = tree.parent[b] == static_cast<std::int32_t>(walk[i]) ||
                            tree.parent[walk[i]] == static_cast<std::int32_t>(b);
        if (!linked || component[b] >= 0 || b == at(bag)) continue;
        component[b] = component[start];
        walk.push_back(b);
      }
    }
    largest = std::max(largest, weight);
  }
  return largest;
}

TEST_CASE("tree width: separators leave at most half on each side, by number or by weight") {
  for (int i = 0; i < samples(100); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = plain_graph(random, 60);
    const solve::kumar::twremat::TreeDecomposition tree =
        solve::kumar::twremat::shrink(decomposed(random, graph, false));
    std::vector<double> weights(tree.bags.size(), 1);
    if (random.chance(0.5))
      for (double& weight : weights) weight = random.uniform();
    double total = 0;
    for (double weight : weights) total += weight;
    CHECK(largest_without(tree, solve::kumar::twremat::balanced_separator(tree, weights),
                          weights) <= total / 2 + 1e-9);
  }
}

std::vector<double> some_weights(Random& random, std::size_t count) {
  std::vector<double> weights;
  if (random.chance(0.5))
    for (std::size_t i = 0; i < count; ++i) weights.push_back(random.uniform());
  return weights;
}

TEST_CASE("tree width: a division has each node once, and neighbours on one path") {
  for (int i = 0; i < samples(200); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = plain_graph(random, 80);
    const auto positions = solve::kumar::positions_of(graph);
    const solve::kumar::twremat::TreeDecomposition tree =
        solve::kumar::twremat::shrink(decomposed(random, graph, false));
    const auto weights = some_weights(random, graph.op_count());
    solve::kumar::twremat::Division division =
        solve::kumar::twremat::divide(tree, positions, weights);
    if (weights.empty())
      for (const solve::kumar::twremat::Part& part : division.parts)
        CHECK(part.depth <= std::log2(static_cast<double>(tree.bags.size())) + 1e-9);
    if (random.chance(0.5))
      division = solve::kumar::twremat::stop_below(division, positions, random.below(10));
    std::size_t nodes = 0;
    for (std::size_t p = 0; p < division.parts.size(); ++p) {
      nodes += division.parts[p].separator.size();
      for (Node node : division.parts[p].separator) CHECK(at(division.part_of[at(node)]) == p);
      CHECK(division.parts[p].parent < static_cast<std::int32_t>(p));
    }
    CHECK(nodes == graph.op_count());
    const auto above = [&](std::int32_t a, std::int32_t b) {
      while (b >= 0 && b != a) b = division.parts[at(b)].parent;
      return b == a;
    };
    const solve::kumar::Neighbours neighbours =
        solve::kumar::undirected(solve::kumar::OpGraph(graph, false));
    for (std::size_t k = 0; k < neighbours.size(); ++k)
      for (Node other : neighbours[k]) {
        const std::int32_t a = division.part_of[k], b = division.part_of[at(other)];
        CHECK((above(a, b) || above(b, a)));
      }
  }
}

TEST_CASE("tree width: schedules have the predicted length, are complete and legal") {
  for (int i = 0; i < samples(300); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = plain_graph(random, 50);
    const auto positions = solve::kumar::positions_of(graph);
    const solve::kumar::OpGraph ops(graph, random.chance(0.3));
    const auto tree = solve::kumar::twremat::decompose(solve::kumar::undirected(ops), positions,
                                                       some_rule(random), kEndless);
    REQUIRE(tree);
    const solve::kumar::twremat::Division division = solve::kumar::twremat::stop_below(
        solve::kumar::twremat::divide(solve::kumar::twremat::shrink(*tree), positions,
                                      some_weights(random, graph.op_count())),
        positions, random.below(12));
    const solve::kumar::twremat::TreeSchedule schedule(ops, division, positions, kEndless);
    REQUIRE(schedule.length());
    if (*schedule.length() > 1e6) continue;
    const auto sequence = schedule.emit();
    CHECK(static_cast<double>(sequence.size()) == *schedule.length());
    std::vector<std::uint8_t> seen(graph.op_count(), 0);
    for (OpId op : sequence) {
      for (OpId maker : ops.makers[op.index()]) CHECK(seen[maker.index()] == 1);
      seen[op.index()] = 1;
    }
    CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(seen.size()));
  }
}

// The gradients of the second half are in the separator of the whole, yet not to be computed when
// its first activation asks for what comes before it.
TEST_CASE("tree width: logarithmic memory on chains, whatever their length") {
  for (const std::size_t layers : {50U, 500U, 5000U}) {
    CAPTURE(layers);
    const Graph graph = training_chain({.layers = layers});
    const Problem problem{.graph = graph, .budget = Bytes(1'000'000)};
    const Outcome outcome = run_solver(*solve::kumar::twremat::make_twremat(), problem,
                                       "filter=off limit=1 separators=unit decomposition=min_fill");
    REQUIRE(outcome.plan);
    const double log = std::log2(static_cast<double>(graph.op_count()));
    CHECK(static_cast<double>(outcome.cost.peak.count()) <= 5 * log);
  }
}

// The schedules that fit have 150,000 computations and more: too many to be looked at with others.
TEST_CASE("twremat: a schedule too long for the filter is still a plan") {
  const Graph graph = training_chain({.layers = 20'000});
  const Problem problem{.graph = graph, .budget = Bytes(60), .order = Order::given};
  solve::ContextSettings settings;
  settings.limits.work = 1'000'000;
  const Outcome filtered =
      run_solver(*solve::kumar::twremat::make_twremat(), problem, "", settings);
  const Outcome raw = run_solver(*solve::kumar::twremat::make_twremat(), problem, "filter=off");
  CAPTURE(filtered.note);
  REQUIRE(filtered.plan);
  REQUIRE(raw.plan);
  CHECK(filtered.cost.duration <= raw.cost.duration);
  CHECK(raw.cost.duration > Ticks(120'000));  // more ops than are filtered at once
}

TEST_CASE("twremat: other decompositions improve on the narrowest") {
  for (std::uint64_t seed = 0; seed < (kSanitized ? 1 : 3); ++seed) {
    CAPTURE(seed);
    const Graph graph = generate("unet", 100, seed);
    Bytes inputs = graph.resident();
    for (std::size_t i = 0; i < graph.tensor_count(); ++i)
      if (graph.is_input(TensorId(i))) inputs += graph.bytes(TensorId(i));
    const Bytes half(inputs.count() + (own_peak(graph) - inputs).count() / 2);
    const Problem problem{.graph = graph, .budget = half};
    const Outcome narrowest =
        run_solver(*solve::kumar::twremat::make_twremat(), problem, "decomposition=narrowest");
    const Outcome all = run_solver(*solve::kumar::twremat::make_twremat(), problem);
    REQUIRE(all.plan);
    if (narrowest.plan) CHECK(all.cost.duration < narrowest.cost.duration);
  }
}

TEST_CASE("twremat, pwremat: without a plan the note has the smallest peak of a schedule") {
  const Graph graph = generate_layered(60, 0);
  const Problem problem{.graph = graph,
                        .budget = solve::peak_floor({.graph = graph, .budget = {}})};
  for (const auto& solver :
       {solve::kumar::twremat::make_twremat(), solve::kumar::pwremat::make_pwremat()}) {
    const Outcome outcome = run_solver(*solver, problem);
    REQUIRE_FALSE(outcome.plan);
    REQUIRE(outcome.smallest_peak);
    CAPTURE(outcome.note);
    CHECK(outcome.note.find("decomposition of width ") != std::string::npos);
    CHECK(outcome.note.find("needs " + std::to_string(outcome.smallest_peak->count()) + " bytes") !=
          std::string::npos);
  }
}

TEST_CASE("tree width: legalized sequences are legal, and edits are undone exactly") {
  for (int i = 0; i < samples(400); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(25);
    const Graph graph = random_graph(random, settings);
    const auto positions = solve::kumar::positions_of(graph);
    const Order order = random.chance(0.5) ? Order::given : Order::free;
    const Problem problem{.graph = graph, .budget = Bytes::max(), .order = order};
    const solve::kumar::OpGraph ops(graph, random.chance(0.5));
    const auto tree = solve::kumar::twremat::decompose(solve::kumar::undirected(ops), positions,
                                                       some_rule(random), kEndless);
    REQUIRE(tree);
    const solve::kumar::twremat::Division division =
        solve::kumar::twremat::divide(solve::kumar::twremat::shrink(*tree), positions, {});
    const solve::kumar::twremat::TreeSchedule schedule(ops, division, positions, kEndless);
    REQUIRE(schedule.length());
    if (*schedule.length() > 3000) continue;
    const auto sequence = solve::kumar::legal_sequence(problem, schedule.emit());

    solve::kumar::EditableSequence table(problem, sequence);
    const auto check_table = [&] {
      const auto now = table.sequence();
      const Timeline timeline = simulate(graph, plan_from_sequence(graph, now));
      REQUIRE_FALSE(timeline.violation);
      CHECK(timeline.cost.duration == table.duration());
      CHECK(timeline.cost.peak <= table.peak());
      CHECK(solve::kumar::EditableSequence(problem, now).peak() == table.peak());
    };
    check_table();
    const std::vector<double> prices(sequence.size() + 1, 0);
    std::vector<std::size_t> sizes{table.log_size()};
    std::vector<Bytes> peaks{table.peak()};
    for (int change = 0; change < 30; ++change) {
      const solve::kumar::EditableSequence::Item item(random.below(sequence.size()));
      if (random.chance(0.2)) {
        table.restore(sizes.back());
        CHECK(table.peak() == peaks.back());
        if (sizes.size() > 1) sizes.pop_back(), peaks.pop_back();
        continue;
      }
      if (table.removable(item))
        table.remove(item);
      else if (!table.present(item))
        table.reinstate(item, prices, 0);
      check_table();
      if (random.chance(0.3)) sizes.push_back(table.log_size()), peaks.push_back(table.peak());
    }
    table.restore(0);
    CHECK(table.sequence() == sequence);
    check_table();
  }
}

}  // namespace
}  // namespace lowtide
