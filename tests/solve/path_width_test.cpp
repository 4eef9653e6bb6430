// What appendix A of Kumar et al. states of path decompositions, spines and schedules.
#include <algorithm>
#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "lowtide/solve/kumar/common/op_graph.h"
#include "lowtide/solve/kumar/pwremat/path_schedule.h"
#include "lowtide/solve/kumar/pwremat/pwremat.h"
#include "lowtide/solve/kumar/pwremat/spine.h"

#include "solve/run_solver.h"
#include "solve/training_chain.h"
#include "support/random_graph.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

using solve::kumar::pwremat::add_spine;
using solve::kumar::pwremat::from_order;
using solve::kumar::pwremat::improve_order;
using solve::kumar::pwremat::Interleaved;
using solve::kumar::pwremat::narrow_order;
using solve::kumar::pwremat::Node;
using solve::kumar::pwremat::PathDecomposition;
using solve::kumar::pwremat::PathSchedule;
using solve::kumar::pwremat::Ropes;
using solve::kumar::pwremat::Spine;
using solve::kumar::pwremat::SpinedGraph;

const std::function<bool(std::int64_t)> kEndless = [](std::int64_t) { return false; };

std::size_t at(Node node) { return static_cast<std::size_t>(node); }

Graph plain_graph(Random& random, std::size_t most) {
  RandomGraphSettings settings = RandomGraphSettings::plain(1 + random.below(most));
  settings.window = 2 + random.below(8);
  settings.reads = 1 + random.below(3);
  return random_graph(random, settings);
}

std::vector<Node> some_order(Random& random, const Graph& graph,
                             const solve::kumar::Neighbours& neighbours) {
  if (random.chance(0.5))
    return solve::kumar::pwremat::narrow_order(
        neighbours, static_cast<Node>(random.below(neighbours.size())), kEndless);
  std::vector<Node> order;
  for (OpId op : graph.order()) order.push_back(static_cast<Node>(op.index()));
  if (random.chance(0.3)) random.shuffle(order);
  return order;
}

bool meet(const solve::kumar::pwremat::PathDecomposition& path, Node a, Node b) {
  return path.first[at(a)] <= path.last[at(b)] && path.first[at(b)] <= path.last[at(a)];
}

void check_path(const solve::kumar::Neighbours& neighbours,
                const solve::kumar::pwremat::PathDecomposition& path) {
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    CHECK(path.first[i] >= 0);
    CHECK(path.first[i] <= path.last[i]);
    CHECK(path.last[i] < path.bags);
    for (Node other : neighbours[i]) CHECK(meet(path, static_cast<Node>(i), other));
  }
}

// Nodes along the spine, as the schedule wants them.
solve::kumar::pwremat::SpinedGraph along(const solve::kumar::OpGraph& graph,
                                         const solve::kumar::pwremat::Spine& spine) {
  solve::kumar::pwremat::SpinedGraph result;
  result.path.bags = spine.path.bags;
  std::vector<Node> number(spine.order.size());
  for (std::size_t i = 0; i < number.size(); ++i) number[at(spine.order[i])] = static_cast<Node>(i);
  for (std::size_t i = 0; i < number.size(); ++i) {
    std::vector<Node> inputs;
    for (OpId maker : graph.makers[at(spine.order[i])]) inputs.push_back(number[maker.index()]);
    if (i > 0) inputs.push_back(static_cast<Node>(i) - 1);
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (Node input : inputs) result.inputs.push(input);
    result.inputs.end_row();
    result.path.first.push_back(spine.path.first[at(spine.order[i])]);
    result.path.last.push_back(spine.path.last[at(spine.order[i])]);
  }
  return result;
}

solve::kumar::pwremat::Spine random_spine(Random& random, const Graph& graph) {
  const solve::kumar::OpGraph ops(graph, false);
  const solve::kumar::Neighbours neighbours = solve::kumar::undirected(ops);
  return solve::kumar::pwremat::add_spine(
      ops.makers,
      solve::kumar::pwremat::from_order(neighbours, some_order(random, graph, neighbours)));
}

// Bytes at the busiest step, where every node makes one: the paper's M.
std::int64_t peak_of(const solve::kumar::pwremat::SpinedGraph& graph,
                     const std::vector<Node>& schedule) {
  std::vector<std::int64_t> change(schedule.size() + 1, 0);
  std::vector<std::size_t> made(graph.inputs.rows(), SIZE_MAX), used(graph.inputs.rows(), 0);
  const auto close = [&](std::size_t node) {
    if (made[node] == SIZE_MAX) return;
    ++change[made[node]];
    --change[used[node] + 1];
  };
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    for (Node input : graph.inputs[at(schedule[i])]) used[at(input)] = i;
    close(at(schedule[i]));
    made[at(schedule[i])] = used[at(schedule[i])] = i;
  }
  for (std::size_t node = 0; node < made.size(); ++node) close(node);
  std::int64_t live = 0, peak = 0;
  for (std::int64_t each : change) peak = std::max(peak, live += each);
  return peak;
}

TEST_CASE("path width: orders give path decompositions, and improving never widens them") {
  for (int i = 0; i < samples(200); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = plain_graph(random, 60);
    const solve::kumar::Neighbours neighbours =
        solve::kumar::undirected(solve::kumar::OpGraph(graph, random.chance(0.3)));
    std::vector<Node> order = some_order(random, graph, neighbours);
    REQUIRE(order.size() == neighbours.size());
    const solve::kumar::pwremat::PathDecomposition before =
        solve::kumar::pwremat::from_order(neighbours, order);
    check_path(neighbours, before);
    CHECK(before.bags <= static_cast<std::int32_t>(neighbours.size()));
    solve::kumar::pwremat::improve_order(neighbours, order, 6, random, kEndless);
    const solve::kumar::pwremat::PathDecomposition after =
        solve::kumar::pwremat::from_order(neighbours, order);
    check_path(neighbours, after);
    CHECK(after.largest_bag() <= before.largest_bag());
    std::size_t largest = 0;
    for (const auto& bag : after.bag_contents()) largest = std::max(largest, bag.size());
    CHECK(largest == after.largest_bag());
  }
}

TEST_CASE(
    "path width: a spine is a topological order, linked in bags that grow as Theorem 8 says") {
  for (int i = 0; i < samples(2000); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = plain_graph(random, 40);
    const solve::kumar::OpGraph ops(graph, false);
    const solve::kumar::Neighbours neighbours = solve::kumar::undirected(ops);
    const solve::kumar::pwremat::PathDecomposition path =
        solve::kumar::pwremat::from_order(neighbours, some_order(random, graph, neighbours));
    const solve::kumar::pwremat::Spine spine = solve::kumar::pwremat::add_spine(ops.makers, path);
    REQUIRE(spine.order.size() == graph.op_count());
    std::vector<std::uint8_t> seen(graph.op_count(), 0);
    for (Node node : spine.order) {
      for (OpId maker : ops.makers[at(node)]) CHECK(seen[maker.index()] == 1);
      CHECK(seen[at(node)] == 0);
      seen[at(node)] = 1;
      CHECK(spine.path.first[at(node)] <= path.first[at(node)]);
      CHECK(spine.path.last[at(node)] >= path.last[at(node)]);
    }
    for (std::size_t k = 1; k < spine.order.size(); ++k)
      CHECK(meet(spine.path, spine.order[k - 1], spine.order[k]));
    CHECK(spine.path.largest_bag() <= 2 * path.largest_bag() + 1);
  }
}

// The example of docs/why/tree-width.md: a, b, c, d, g are 0 to 4.
TEST_CASE("path width: a spine beyond the next node is extended to the left") {
  Csr<OpId> makers;
  for (const std::vector<std::size_t>& row :
       std::vector<std::vector<std::size_t>>{{}, {}, {0}, {2}, {1, 3}}) {
    for (std::size_t maker : row) makers.push(OpId(maker));
    makers.end_row();
  }
  const solve::kumar::pwremat::PathDecomposition path{
      .bags = 3, .first = {0, 1, 0, 2, 1}, .last = {0, 1, 2, 2, 2}};
  const solve::kumar::pwremat::Spine spine = solve::kumar::pwremat::add_spine(makers, path);
  CHECK(spine.order == std::vector<Node>{0, 2, 3, 1, 4});
  CHECK(spine.path.first[3] == 1);
  CHECK(meet(spine.path, 3, 1));
}

TEST_CASE("path width: the last nodes of bags have one peak, and without them bags are smaller") {
  for (int i = 0; i < samples(500); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = plain_graph(random, 40);
    const solve::kumar::pwremat::SpinedGraph spined =
        along(solve::kumar::OpGraph(graph, false), random_spine(random, graph));
    const auto bags = spined.path.bag_contents();
    const std::size_t largest = spined.path.largest_bag();
    const auto peak = at(spined.path.first.back());
    // Lemma 10, of empty bags nothing.
    for (std::size_t k = 1; k < bags.size(); ++k) {
      if (bags[k - 1].empty() || bags[k].empty()) continue;
      if (k <= peak) CHECK(bags[k - 1].back() <= bags[k].back());
      if (k > peak) CHECK(bags[k - 1].back() >= bags[k].back());
    }
    // Lemma 11.
    const std::size_t end = peak + random.below(bags.size() - peak);
    if (bags[end].empty()) continue;
    for (std::size_t k = peak; k <= end; ++k) {
      const auto left = std::count_if(bags[k].begin(), bags[k].end(),
                                      [&](Node node) { return node < bags[end].back(); });
      CHECK(left <= static_cast<std::ptrdiff_t>(largest) - 1);
    }
  }
}

// Definition 12 for the known set and all that is not in the bags.
void check_valid(const solve::kumar::pwremat::SpinedGraph& graph,
                 const solve::kumar::pwremat::PathSchedule::Asked& asked,
                 const std::vector<Node>& schedule) {
  std::vector<std::uint8_t> there(graph.inputs.rows(), 0);
  for (std::size_t i = 0; i < there.size(); ++i)
    there[i] = graph.path.first[i] > asked.high || graph.path.last[i] < asked.low;
  for (Node node : asked.known) there[at(node)] = 1;
  for (Node node : schedule) {
    CHECK(node <= asked.bound);
    const bool known = there[at(node)] == 1;
    for (Node input : graph.inputs[at(node)]) CHECK((known || there[at(input)] == 1));
    there[at(node)] = 1;
  }
}

TEST_CASE("path width: every schedule on the way is valid for its known set") {
  for (int i = 0; i < samples(300); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = plain_graph(random, 30);
    const solve::kumar::pwremat::SpinedGraph spined =
        along(solve::kumar::OpGraph(graph, false), random_spine(random, graph));
    solve::kumar::pwremat::PathSchedule schedule(spined, random.below(3), kEndless);
    std::size_t looked_at = 0;
    schedule.on_schedule = [&](const solve::kumar::pwremat::PathSchedule::Asked& asked,
                               solve::kumar::pwremat::Ropes::Rope rope) {
      if (++looked_at > 3000) return;
      std::vector<Node> nodes;
      schedule.ropes().append(rope, nodes);
      check_valid(spined, asked, nodes);
      REQUIRE_FALSE(nodes.empty());
      CHECK(nodes.back() == asked.bound);
    };
    // One after the other, that is flattened: by themselves they need not be, whatever Property 18
    // says. What a tuple computes beside the nodes asked for, later ones may read.
    schedule.on_interleaved = [&](const solve::kumar::pwremat::PathSchedule::Asked& asked,
                                  const solve::kumar::pwremat::Interleaved& tuples) {
      if (++looked_at > 3000) return;
      std::vector<Node> nodes;
      for (std::size_t k = 0; k < tuples.nodes.size(); ++k) {
        schedule.ropes().append(tuples.before[k], nodes);
        nodes.push_back(tuples.nodes[k]);
      }
      check_valid(spined, asked, nodes);
    };
    const auto nodes = schedule.schedule(1'000'000);
    if (!nodes) continue;
    check_valid(spined, {0, spined.path.bags - 1, static_cast<Node>(graph.op_count()) - 1, {}},
                *nodes);
    CHECK(std::set<Node>(nodes->begin(), nodes->end()).size() == graph.op_count());
  }
}

// A spine of `count` nodes that goes up and down `turns` times over one stretch, with a rung from
// each lap to the one before: its path-width is at most `turns`.
solve::kumar::pwremat::SpinedGraph folded(std::size_t count, std::size_t turns) {
  solve::kumar::pwremat::SpinedGraph graph;
  const std::size_t lap = count / turns;
  for (std::size_t i = 0; i < lap * turns; ++i) {
    const std::size_t turn = i / lap, along = i % lap;
    const std::size_t place = turn % 2 == 0 ? along : lap - 1 - along;
    if (turn > 0) {
      const std::size_t mate = turn % 2 == 0 ? lap - 1 - along : place;
      const std::size_t below = (turn - 1) * lap + mate;
      if (below + 1 < i) graph.inputs.push(static_cast<Node>(below));
    }
    if (i > 0) graph.inputs.push(static_cast<Node>(i) - 1);
    graph.inputs.end_row();
    // A node stays until its neighbour in the next bag has come.
    graph.path.first.push_back(static_cast<std::int32_t>(place == 0 ? 0 : place - 1));
    graph.path.last.push_back(static_cast<std::int32_t>(place));
  }
  graph.path.bags = static_cast<std::int32_t>(lap);
  return graph;
}

TEST_CASE("path width: on long spines, near-linear length and polylogarithmic memory") {
  for (const std::size_t turns : {2U, 3U}) {
    for (const std::size_t count : {100U, 1000U, 10000U, 100000U}) {
      if (kSanitized && count > 10000) continue;
      CAPTURE(turns);
      CAPTURE(count);
      const solve::kumar::pwremat::SpinedGraph graph = folded(count, turns);
      const auto bag = static_cast<double>(graph.path.largest_bag());
      solve::kumar::pwremat::PathSchedule schedule(graph, 0, kEndless);
      const auto nodes = schedule.schedule(200'000'000);
      REQUIRE(nodes);
      const double n = static_cast<double>(count), log = std::log2(n);
      const auto length = static_cast<double>(nodes->size());
      const auto memory = static_cast<double>(peak_of(graph, *nodes));
      // Theorem 22 has a larger constant before either.
      CHECK(length <= 2 * n * std::pow(log, bag - 2));
      CHECK(memory <= 4 * std::pow(log, bag - 2));
    }
  }
}

TEST_CASE("pwremat: little memory on chains, in both orders") {
  const Graph graph = training_chain({.layers = 400});
  for (const Order order : {Order::free, Order::given}) {
    const Problem problem{.graph = graph, .budget = Bytes(40), .order = order};
    const Outcome outcome = run_solver(*solve::kumar::pwremat::make_pwremat(), problem);
    REQUIRE(outcome.plan);
    CHECK(outcome.cost.duration <= graph.total_time() + graph.total_time());
  }
}

TEST_CASE("pwremat: a schedule too long for the filter is still a plan") {
  const Graph graph = training_chain({.layers = 16'000});
  const Problem problem{.graph = graph, .budget = Bytes(60), .order = Order::free};
  solve::ContextSettings settings;
  settings.limits.work = 1'000'000;
  const Outcome filtered =
      run_solver(*solve::kumar::pwremat::make_pwremat(), problem, "", settings);
  const Outcome raw = run_solver(*solve::kumar::pwremat::make_pwremat(), problem, "filter=off");
  CAPTURE(filtered.note);
  REQUIRE(filtered.plan);
  REQUIRE(raw.plan);
  CHECK(filtered.cost.duration <= raw.cost.duration);
  CHECK(raw.cost.duration > Ticks(120'000));  // more ops than are filtered at once
}

}  // namespace
}  // namespace lowtide
