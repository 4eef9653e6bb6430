// Pieces between cuts, solved one by one.
#include "lowtide/solve/order/order.h"

#include <doctest/doctest.h>

#include "lowtide/graph/builder.h"

#include "solve/run_solver.h"
#include "support/scale.h"

namespace lowtide {
namespace {

// Found at random: no list heuristic orders it below 58 bytes, the best order needs 55.
const std::vector<std::int64_t> kBytes = {1, 20, 9, 12, 17, 1, 15, 8, 2, 6, 4, 1};
const std::vector<std::vector<std::int64_t>> kReads = {
    {}, {0}, {1}, {2}, {0}, {3}, {1, 3}, {6}, {2}, {2, 8}, {0}, {4, 5, 7, 9, 10}};

Graph pieces(std::size_t count) {
  GraphBuilder builder;
  Tensor tensor;
  tensor.bytes = Bytes(1);
  builder.add_tensor(tensor);
  for (std::size_t piece = 0; piece < count; ++piece) {
    const auto base = static_cast<std::int64_t>(1 + piece * kBytes.size());
    for (std::size_t i = 0; i < kBytes.size(); ++i) {
      OpLinks links;
      for (std::int64_t read : kReads[i]) links.inputs.push_back(base + read);
      if (links.inputs.empty()) links.inputs.push_back(base - 1);
      tensor.bytes = Bytes(kBytes[i]);
      builder.add_tensor(tensor);
      links.outputs.push_back(base + static_cast<std::int64_t>(i));
      Op op;
      op.time = Ticks(1);
      builder.add_op(std::move(op), links);
    }
  }
  builder.add_output(TensorId(count * kBytes.size()));
  return builder.build();
}

Outcome solve(const Graph& graph, std::int64_t budget, std::string_view options = {}) {
  solve::ContextSettings settings;
  settings.limits.seconds = 20;
  const Problem problem{.graph = graph, .budget = Bytes(budget)};
  return run_solver(*solve::order::make_order(), problem, options, std::move(settings));
}

TEST_CASE("order: a piece that needs the exact search") {
  const Graph graph = pieces(1);
  CHECK(solve(graph, 57, "max_piece=0").status == Status::unknown);
  CHECK(solve(graph, 55).status == Status::optimal);
  CHECK(solve(graph, 54).status == Status::unknown);
  CHECK(solve(graph, 54).smallest_peak == Bytes(55));
}

TEST_CASE("order: thousands of pieces take near-linear time") {
  const Graph graph = pieces(kSanitized ? 1000 : 4000);
  const Outcome outcome = solve(graph, 55);
  CHECK(outcome.status == Status::optimal);
  CHECK(outcome.stopped_by == StopReason::finished);
}

}  // namespace
}  // namespace lowtide
