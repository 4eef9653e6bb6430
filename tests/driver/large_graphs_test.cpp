// Large graphs under a short clock, as the default command plans them: whatever ends when, there is
// an answer that verifies. How late answers come is for people to read, since it hangs on the
// machine: the long run prints the latest.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/driver/driver.h"
#include "lowtide/graph/generate.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "support/print.h"
#include "support/scale.h"

namespace lowtide {
namespace {

constexpr Machine kMachine = {{Ticks(10000), Bytes(25), Ticks(1)},
                              {Ticks(10000), Bytes(25), Ticks(1)}};

struct Latest {
  double seconds = 0;
  std::string what;
};

std::string text_of(const Problem& problem, const driver::Request& request) {
  return std::to_string(problem.graph.op_count()) + " ops, " +
         std::string(to_string(problem.order)) + (problem.machine ? ", a link" : "") +
         (problem.techniques.split ? ", all" : "") + ", " + std::to_string(request.threads) +
         " threads, " + std::to_string(*request.limits.seconds) + " s";
}

void plan(Random& random, const Graph& graph, double longest, Latest& latest) {
  Problem problem{.graph = graph, .budget = Bytes(0)};
  problem.order = random.chance(0.5) ? Order::given : Order::free;
  if (random.chance(0.4)) problem.machine = kMachine;
  problem.techniques =
      parse_techniques(random.chance(0.4) ? "all" : "default", problem.machine.has_value());
  problem.budget = Bytes(own_peak(graph).count() / 100 * random.between(20, 90));
  driver::Request request;
  request.threads = static_cast<int>(random.between(1, 4));
  request.limits.seconds = 0.05 * std::pow(longest / 0.05, random.uniform());
  request.seed = random.below(100);
  const std::string what = text_of(problem, request);
  CAPTURE(what);
  const Limits clock;
  const driver::Answer answer = driver::solve(driver::all_solvers(), problem, request);
  const double late = clock.seconds() - *request.limits.seconds;
  if (late > latest.seconds) latest = {late, what};
  CHECK(answer.support.yes);
  CHECK(answer.outcome.note.find("failed") == std::string::npos);
  CHECK(answer.outcome.smallest_peak);
  if (!answer.outcome.plan) return;
  const Verdict verdict = verify(problem, *answer.outcome.plan);
  CHECK(verdict.ok);
  CHECK(verdict.cost == answer.outcome.cost);
}

TEST_CASE("large graphs: planned within a short time limit") {
  const bool all = test_scale() > 1;
  // A run takes what its clock says, whatever the machine: so there are few.
  const int count = all ? (kSanitized ? 200 : 600) : 5;
  Latest latest;
  for (int i = 0; i < count; ++i) {
    Random random(static_cast<std::uint64_t>(i) + 1);
    const auto kinds = generator_kinds();
    const std::string_view kind = kinds[static_cast<std::size_t>(i) % kinds.size()];
    // Links of layered graphs grow faster than their ops.
    const std::int64_t most = all && kind != "layered" ? 20'000 : 5'000;
    const std::int64_t least = all || kind != "layered" ? 3'000 : 1'000;
    const auto ops = static_cast<std::size_t>(random.between(least, most));
    CAPTURE(kind);
    CAPTURE(ops);
    const Graph graph = generate(kind, ops, random.below(1000));
    plan(random, graph, all ? 2 : 0.5, latest);
  }
  if (all) MESSAGE("the latest answer came " << latest.seconds << " s late: " << latest.what);
}

TEST_CASE("large graphs: the examples, planned within a short time limit") {
  const std::string folder = std::string(LOWTIDE_SOURCE_DIR) + "/examples/";
  Latest latest;
  int number = 0;
  for (const char* name : {"gpt2-train", "resnet50-train", "unet-train", "vit-train"}) {
    CAPTURE(std::string(name));
    const Graph graph = io::read_graph(folder + name + ".graph.json.gz").graph;
    for (int i = 0; i < (test_scale() > 1 ? 20 : 1); ++i) {
      Random random(static_cast<std::uint64_t>(++number));
      plan(random, graph, test_scale() > 1 ? 2 : 0.3, latest);
    }
  }
  if (test_scale() > 1)
    MESSAGE("the latest answer came " << latest.seconds << " s late: " << latest.what);
}

}  // namespace
}  // namespace lowtide
