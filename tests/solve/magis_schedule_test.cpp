// MAGIS' incremental scheduling: against all orders of small graphs, and what it costs on larger
// ones beside a full run and a repair.
#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/graph/builder.h"
#include "lowtide/graph/orders.h"
#include "lowtide/graph/reach.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/magis/schedule.h"

#include "support/random_graph.h"

namespace lowtide {
namespace {

using namespace solve::magis;

Graph plain_graph(Random& random, std::size_t ops) {
  RandomGraphSettings settings;
  settings.ops = ops;
  settings.reads = 1 + random.below(2);
  return random_graph(random, settings).without_in_place();
}

std::vector<Task> tasks_in(std::span<const OpId> order) {
  std::vector<Task> found;
  for (const OpId op : order) found.push_back(static_cast<Task>(op.index()));
  return found;
}

bool is_legal(const Graph& graph, std::span<const Task> order) {
  std::vector<OpId> ops;
  for (const Task task : order) ops.push_back(OpId(std::size_t{task}));
  return is_topological(graph, ops);
}

// The least peak of all orders, one after the other.
std::int64_t brute_force(const Tasks& tasks) {
  std::int64_t best = INT64_MAX;
  std::vector<Task> order;
  std::vector<std::uint8_t> done(tasks.size(), 0);
  const auto go_on = [&](auto& self) -> void {
    if (order.size() == tasks.size()) {
      best = std::min(best, peak_of(tasks, order));
      return;
    }
    for (Task task = 0; task < tasks.size(); ++task) {
      const auto& before = tasks.before[task];
      if (done[task] != 0 ||
          !std::ranges::all_of(before, [&](Task other) { return done[other] != 0; }))
        continue;
      done[task] = 1;
      order.push_back(task);
      self(self);
      order.pop_back();
      done[task] = 0;
    }
  };
  go_on(go_on);
  return best;
}

TEST_CASE("magis tasks: an order's peak is that of its plan; waists count independent ops") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Graph graph = plain_graph(random, 4 + random.below(80));
    const Tasks tasks = tasks_of(graph);
    const auto order = random_order(graph, random);
    const auto as_tasks = tasks_in(order);
    const Plan plan = plan_from_sequence(graph, order);
    CHECK(peak_of(tasks, as_tasks) + graph.resident().count() ==
          simulate(graph, plan).cost.peak.count());
    const auto waists = narrow_waists(tasks, as_tasks);
    Reachability reach(graph);
    for (std::size_t i = 0; i < order.size(); ++i)
      CHECK(waists[i] == static_cast<std::size_t>(std::ranges::count_if(
                             order, [&](OpId op) { return reach.independent(order[i], op); })));
  }
}

TEST_CASE("magis schedule: the smallest peak of all orders of a single block") {
  std::size_t best = 0, all = 0, as_good = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Graph graph = plain_graph(random, 3 + random.below(6));
    const Tasks tasks = tasks_of(graph);
    const auto begin = tasks_in(random_order(graph, random));
    const std::int64_t least = brute_force(tasks);
    Effort effort;
    const auto full = full_schedule(tasks, begin, effort);
    CHECK(is_legal(graph, full));
    CHECK(peak_of(tasks, full) >= least);
    CHECK(peak_of(tasks, full) <= peak_of(tasks, begin));
    ++all;
    best += peak_of(tasks, full) == least;
    // A change of everything is a full run within one stretch.
    std::vector<Task> changed(tasks.size());
    std::iota(changed.begin(), changed.end(), Task{0});
    const auto again = incremental_schedule(tasks, begin, changed, effort);
    CHECK(is_legal(graph, again));
    as_good += peak_of(tasks, again) <= peak_of(tasks, full);
    const auto repaired = repaired_schedule(tasks, begin, changed, effort);
    CHECK(is_legal(graph, repaired));
    CHECK(peak_of(tasks, repaired) >= least);
    CHECK(peak_of(tasks, repaired) <= peak_of(tasks, begin));
  }
  CHECK(best == all);
  CHECK(as_good == all);
}

// Cells of random ops, each from the join of the one before to a join of its own, as in searched
// convolutional networks.
Graph cells_graph(Random& random, std::size_t cells) {
  GraphBuilder builder;
  const auto op = [&](const std::vector<TensorId>& reads, std::int64_t bytes) {
    Tensor tensor;
    tensor.bytes = Bytes(bytes);
    const TensorId made = builder.add_tensor(tensor);
    Op one;
    one.time = Ticks(1);
    builder.add_op(one, reads, {made});
    return made;
  };
  TensorId last = op({}, 8);
  for (std::size_t cell = 0; cell < cells; ++cell) {
    std::vector<TensorId> made{last}, unread;
    for (int i = 0; i < 8; ++i) {
      const TensorId read = made[random.below(made.size())];
      std::erase(unread, read);
      made.push_back(op({read}, random.between(1, 20)));
      unread.push_back(made.back());
    }
    last = op(unread, 8);
  }
  builder.add_output(last);
  return builder.build();
}

// One op's outputs made larger, or smaller: what a split of it would do.
Tasks with_changed(Tasks tasks, Task task, Random& random) {
  for (const std::uint32_t item : tasks.makes[task]) {
    std::int64_t& bytes = tasks.items[item].bytes;
    bytes = random.chance(0.5) ? bytes * 3 : bytes / 4;
  }
  return tasks;
}

TEST_CASE("magis schedule: an incremental run nearly equals a full run") {
  std::int64_t full_work = 0, part_work = 0, repair_work = 0;
  std::size_t runs = 0, as_good = 0, repaired_as_good = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed);
    const Graph graph = cells_graph(random, 30);
    Tasks tasks = tasks_of(graph);
    Effort first;
    std::vector<Task> order = full_schedule(tasks, tasks_in(graph.order()), first);
    for (int i = 0; i < 4; ++i) {
      const Task changed = static_cast<Task>(random.below(tasks.size()));
      tasks = with_changed(std::move(tasks), changed, random);
      Effort full, part, repair;
      const auto by_full = full_schedule(tasks, order, full);
      const auto by_part = incremental_schedule(tasks, order, std::span(&changed, 1), part);
      const auto by_repair = repaired_schedule(tasks, order, std::span(&changed, 1), repair);
      for (const auto* found : {&by_full, &by_part, &by_repair}) CHECK(is_legal(graph, *found));
      CHECK(peak_of(tasks, by_part) <= peak_of(tasks, order));
      const OrderInterval at = interval_around(tasks, order, std::span(&changed, 1));
      for (std::size_t place = 0; place < order.size(); ++place)
        if (place < at.first || place >= at.last) CHECK(by_part[place] == order[place]);
      ++runs;
      as_good += peak_of(tasks, by_part) <= peak_of(tasks, by_full);
      repaired_as_good += peak_of(tasks, by_repair) <= peak_of(tasks, by_full);
      full_work += full.work;
      part_work += part.work;
      repair_work += repair.work;
      order = by_part;
    }
  }
  // Measured: a sixth of the work, and a twentieth.
  CHECK(part_work * 4 < full_work);
  CHECK(repair_work * 8 < full_work);
  CHECK(as_good * 20 >= runs * 19);
  CHECK(repaired_as_good * 20 >= runs * 19);
}

}  // namespace
}  // namespace lowtide
