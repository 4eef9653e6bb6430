// Push-relabel against augmenting paths, on random networks whose capacities grow.
#include "lowtide/solve/bounds/common/max_flow.h"

#include <algorithm>
#include <queue>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"

#include "support/scale.h"

namespace lowtide {
namespace {

using Matrix = std::vector<std::vector<std::int64_t>>;

// Edmonds and Karp; the last two nodes are source and sink.
std::int64_t max_flow(Matrix capacity) {
  const std::size_t nodes = capacity.size(), source = nodes - 2, sink = nodes - 1;
  std::int64_t value = 0;
  for (;;) {
    std::vector<std::size_t> from(nodes, nodes);
    std::queue<std::size_t> queue;
    queue.push(source);
    from[source] = source;
    for (; !queue.empty(); queue.pop())
      for (std::size_t to = 0; to < nodes; ++to)
        if (from[to] == nodes && capacity[queue.front()][to] > 0) {
          from[to] = queue.front();
          queue.push(to);
        }
    if (from[sink] == nodes) return value;
    std::int64_t least = INT64_MAX;
    for (std::size_t at = sink; at != source; at = from[at])
      least = std::min(least, capacity[from[at]][at]);
    for (std::size_t at = sink; at != source; at = from[at]) {
      capacity[from[at]][at] -= least;
      capacity[at][from[at]] += least;
    }
    value += least;
  }
}

TEST_CASE("max_flow: values and cuts agree with augmenting paths while capacities grow") {
  for (int i = 0; i < samples(1000); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const std::size_t nodes = 1 + random.below(14), arcs = random.below(40);
    const std::int64_t most = random.chance(0.2) ? std::int64_t{1} << 50 : 20;
    Matrix capacity(nodes + 2, std::vector<std::int64_t>(nodes + 2, 0));
    solve::bounds::MaxFlow flow;
    struct Arc {
      std::size_t from, to;
      std::int32_t id;
    };
    std::vector<Arc> links;
    for (std::size_t node = 0; node < nodes; ++node) flow.add_node();
    for (std::size_t arc = 0; nodes > 1 && arc < arcs; ++arc) {
      const std::size_t from = random.below(nodes), to = random.below(nodes);
      if (from == to) continue;
      links.push_back(
          {from, to, flow.add_arc(static_cast<std::int32_t>(from), static_cast<std::int32_t>(to))});
    }
    flow.build();
    Limits limits;
    solve::bounds::MaxFlow::State state;
    Matrix saved;
    for (int round = 0; round < 4; ++round) {
      if (round == 2 && random.chance(0.5)) {
        flow.save(state);
        saved = capacity;
      }
      if (round == 3 && !saved.empty()) {
        flow.restore(state);
        capacity = saved;
      }
      for (const Arc& arc : links) {
        if (random.chance(0.4)) continue;
        const std::int64_t by = random.between(0, most);
        flow.grow_capacity(arc.id, by);
        capacity[arc.from][arc.to] += by;
      }
      for (std::size_t node = 0; node < nodes; ++node) {
        const std::int64_t supply = random.chance(0.3) ? random.between(0, most) : 0;
        const std::int64_t drain = random.chance(0.3) ? random.between(0, most) : 0;
        flow.grow_supply(static_cast<std::int32_t>(node), supply);
        flow.grow_drain(static_cast<std::int32_t>(node), drain);
        capacity[nodes][node] += supply;
        capacity[node][nodes + 1] += drain;
      }
      REQUIRE(flow.run(limits));
      CHECK(flow.value() == max_flow(capacity));
      std::int64_t cut = 0;
      const auto on_source_side = [&](std::size_t node) {
        return node == nodes ||
               (node < nodes && flow.on_source_side(static_cast<std::int32_t>(node)));
      };
      for (std::size_t from = 0; from <= nodes; ++from)
        for (std::size_t to = 0; to < nodes + 2; ++to)
          if (on_source_side(from) && to != nodes && !on_source_side(to)) cut += capacity[from][to];
      CHECK(cut == flow.value());
    }
  }
}

}  // namespace
}  // namespace lowtide
