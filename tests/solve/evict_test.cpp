// Graphs on which one op or tensor has nearly all the links: work stays near-linear.
#include "lowtide/solve/evict/evict.h"

#include <doctest/doctest.h>

#include "lowtide/graph/builder.h"

#include "solve/run_solver.h"

namespace lowtide {
namespace {

constexpr std::int64_t kMany = 10000;

class Maker {
 public:
  std::int64_t tensor(std::int64_t bytes) {
    Tensor tensor;
    tensor.bytes = Bytes(bytes);
    return static_cast<std::int64_t>(builder_.add_tensor(std::move(tensor)).index());
  }
  // Returns what the op makes.
  std::int64_t op(std::vector<std::int64_t> inputs, std::int64_t bytes, std::int64_t time = 1,
                  std::int64_t workspace = 0) {
    Op op;
    op.time = Ticks(time);
    op.workspace = Bytes(workspace);
    const std::int64_t made = tensor(bytes);
    OpLinks links;
    links.inputs = std::move(inputs);
    links.outputs = {made};
    builder_.add_op(std::move(op), links);
    return made;
  }
  Graph keep(std::vector<std::int64_t> outputs) {
    builder_.set_outputs(std::move(outputs));
    return builder_.build();
  }

 private:
  GraphBuilder builder_;
};

Outcome solve(const Graph& graph, std::int64_t budget) {
  solve::ContextSettings settings;
  settings.limits.work = 300 * kMany;
  const Problem problem{.graph = graph, .budget = Bytes(budget)};
  return run_solver(*solve::evict::make_evict(), problem, {}, std::move(settings));
}

TEST_CASE("evict: an op with many evicted inputs over an exceeded budget") {
  Maker make;
  const std::int64_t x = make.tensor(1), kept = make.op({x}, 1000, 3);
  std::vector<std::int64_t> leaves;
  for (std::int64_t i = 0; i < kMany; ++i) leaves.push_back(make.op({x}, 1, 1 + i % 3));
  leaves.push_back(make.op({x}, 1, 1, kMany - 500));
  const Graph graph = make.keep({kept, make.op(leaves, 1)});
  const Outcome outcome = solve(graph, kMany + 4);
  CHECK(outcome.stopped_by == StopReason::finished);
  CHECK(outcome.plan);
}

// One tensor, made of `sources`, that has to go between any two of its readers.
Graph pulsating(Maker& make, std::vector<std::int64_t> sources) {
  const std::int64_t hub = make.op(std::move(sources), 1000);
  std::int64_t last = make.op({hub}, 1, 1000);
  for (std::int64_t i = 0; i < kMany; ++i)
    last = make.op({hub, make.op({last}, 1, 1000, 1000)}, 1, 1000);
  return make.keep({last});
}

TEST_CASE("evict: a tensor with many readers, evicted between any two") {
  Maker make;
  const Outcome outcome = solve(pulsating(make, {make.tensor(1)}), 1004);
  CHECK(outcome.stopped_by == StopReason::finished);
  CHECK(outcome.plan);
}

TEST_CASE("evict: plans whose links are quadratic are given up") {
  Maker make;
  std::vector<std::int64_t> sources;
  for (std::int64_t i = 0; i < kMany; ++i) sources.push_back(make.tensor(1));
  const Outcome outcome = solve(pulsating(make, sources), kMany + 1004);
  CHECK(outcome.stopped_by == StopReason::gave_up);
  CHECK_FALSE(outcome.plan);
}

TEST_CASE("evict: a plan that would take more than 2^63 ticks is given up") {
  Maker make;
  const std::int64_t hub = make.op({make.tensor(1)}, 1000, std::int64_t{1} << 62);
  const std::int64_t beside = make.op({make.op({hub}, 1)}, 1, 1, 1000);
  const Graph graph = make.keep({make.op({hub, beside}, 1)});
  CHECK(solve(graph, 3000).plan);
  CHECK_FALSE(solve(graph, 1004).plan);
}

}  // namespace
}  // namespace lowtide
