// What drops gaps by the price of a byte: where nothing else finds a plan, and near the search
// where others do.
#include "lowtide/solve/local/drop/drop.h"

#include <optional>
#include <string_view>

#include <doctest/doctest.h>

#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/evict/evict.h"
#include "lowtide/solve/offload/offload.h"

#include "solve/run_solver.h"
#include "support/scale.h"

namespace lowtide {
namespace {

// 25 GB/s each way, where a tick is a nanosecond.
constexpr Link kLink = {Ticks(10'000), Bytes(25), Ticks(1)};

double overhead(const solve::Solver& solver, const Graph& graph, int percent,
                std::optional<Link> link = {}, std::optional<Bytes> host_budget = {}) {
  const Bytes fixed = graph.input_bytes() + graph.resident();
  Problem problem{.graph = graph,
                  .budget = fixed + Bytes((own_peak(graph) - fixed).count() / 100 * percent),
                  .order = Order::given};
  if (link) problem.machine = Machine{*link, *link};
  problem.host_budget = host_budget;
  const Outcome outcome = run_solver(solver, problem);
  return outcome.plan ? overhead_percent(outcome.cost.duration, graph.total_time()) : 1e9;
}

TEST_CASE("drop: less overhead than evict on networks, and plans where evict finds none") {
  const auto drop = solve::local::drop::make_drop();
  const auto evict = solve::evict::make_evict();
  for (const std::uint64_t seed : {51u, 52u}) {
    if (kSanitized && seed != 51) continue;
    CAPTURE(seed);
    const Graph unet = generate("unet", 1000, seed), layered = generate("layered", 2000, seed);
    CHECK(overhead(*drop, unet, 35) < 0.9 * overhead(*evict, unet, 35));
    CHECK(overhead(*evict, layered, 85) == 1e9);
    CHECK(overhead(*drop, layered, 85) < 15);
  }
}

TEST_CASE("drop: with a link it swaps the most expensive tensors, without stalls") {
  const auto drop = solve::local::drop::make_drop();
  const auto offload = solve::offload::make_offload();
  for (const std::string_view kind : {"unet", "transformer", "resnet"})
    for (const std::uint64_t seed : {51u, 52u}) {
      if (kSanitized && seed != 51) continue;
      CAPTURE(kind);
      CAPTURE(seed);
      const Graph graph = generate(kind, 1000, seed);
      const double with = overhead(*drop, graph, 40, kLink);
      CHECK(with < 0.95 * overhead(*drop, graph, 40));
      CHECK(with < 0.8 * overhead(*offload, graph, 40, kLink));
    }
}

TEST_CASE("drop: a slow link, or no host memory, changes nothing") {
  const auto drop = solve::local::drop::make_drop();
  const Graph graph = generate("unet", 500, 51);
  const double without = overhead(*drop, graph, 50);
  const Link slow{Ticks(1'000'000'000'000), Bytes(1), Ticks(1'000)};
  CHECK(overhead(*drop, graph, 50, slow) == without);
  CHECK(overhead(*drop, graph, 50, kLink, Bytes(0)) == without);
}

}  // namespace
}  // namespace lowtide
