// dump_cases SEED GRAPHS: random graphs, random plans for them and mutations of those, each with
// our verdict, as JSON lines on standard output (see support/case_writer.h). Some plans come with a
// budget near their peak, some with the given order, about two thirds with transfers.
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "lowtide/sim/simulate.h"

#include "support/case_writer.h"
#include "support/mutated_plan.h"
#include "support/random_graph.h"
#include "support/random_plan.h"

namespace lowtide {
namespace {

constexpr int kPlans = 2;

Graph any_graph(Random& random) {
  RandomGraphSettings settings;
  settings.ops = random.chance(0.05) ? random.below(2) : 2 + random.below(11);
  settings.barrier = 0.1;
  if (random.chance(0.3)) settings.mutates = settings.several_outputs = settings.kept = 0.5;
  if (random.chance(0.3)) settings.on_host = 0.3;
  // Numbers that a few recomputations or a slow link carry beyond 2^63.
  if (random.chance(0.03)) settings.time = std::int64_t{1} << 59;
  if (random.chance(0.03)) settings.bytes = std::int64_t{1} << 57;
  if (random.chance(0.4)) settings.network = 0.4;
  return random_graph(random, settings);
}

void dump_graph(Random& random, CaseWriter& writer) {
  const Graph graph = any_graph(random);
  const auto write = [&](Problem problem, const Plan& plan) {
    problem.machine = plan.machine;  // as a plan file has it
    writer.write(problem, plan, verify(problem, plan));
  };
  for (int k = 0; k < kPlans; ++k) {
    RandomPlanSettings settings;
    settings.order = random.chance(0.4) ? Order::given : Order::free;
    settings.transfers = random.chance(0.7);
    settings.restless = random.uniform();
    Plan plan = random_plan(random, graph, settings);
    if (plan.machine && random.chance(0.05))
      plan.machine->device_to_host.latency = Ticks(std::int64_t{1} << 62);
    // Without a budget or with the free order, a plan may still hold another.
    Problem problem{.graph = graph, .budget = Bytes::max()};
    problem.order = random.chance(0.3) ? settings.order : Order::free;
    const auto allowed = [&] { return random.chance(0.9); };
    problem.techniques = {.recompute = allowed(), .in_place = allowed(), .offload = allowed()};
    if (random.chance(0.2)) problem.host_budget = Bytes(random.between(0, 30));
    write(problem, plan);
    for (int m = 0; m < kMutations; ++m)
      write(problem, mutated(random, graph, plan, static_cast<Mutation>(m)));
    problem.budget = simulate(graph, plan).cost.peak;
    write(problem, plan);
    if (problem.budget > Bytes(0)) {
      problem.budget -= Bytes(1);
      write(problem, plan);
    }
    problem.budget = Bytes::max();
    problem.order = Order::given;
    write(problem, plan);
    Plan twice = plan;
    for (int m = 0; m < 3; ++m)
      twice =
          mutated(random, graph, std::move(twice), static_cast<Mutation>(random.below(kMutations)));
    write(problem, twice);
  }
}

}  // namespace
}  // namespace lowtide

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: dump_cases SEED GRAPHS\n";
    return 2;
  }
  lowtide::Random random(std::strtoull(argv[1], nullptr, 10));
  lowtide::CaseWriter writer(std::cout);
  for (long n = std::atol(argv[2]); n > 0; --n) lowtide::dump_graph(random, writer);
  return std::cout.flush() ? 0 : 1;
}
