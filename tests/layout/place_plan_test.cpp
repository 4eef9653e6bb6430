// Offsets of random plans, judged by check_plan from their files.
#include "lowtide/layout/place_plan.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/graph/hash.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"

#include "support/network.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"

namespace lowtide::layout {
namespace {

struct Case {
  Graph graph;
  PlanFile file;
};

PlanFile file_of(const Graph& graph, Plan plan) {
  PlanFile file;
  file.graph_hash = graph_hash(graph);
  if (!plan.transforms.empty()) file.transform_hash = transform_hash(graph);
  file.plan = std::move(plan);
  return file;
}

Case any_case(Random& random) {
  if (random.chance(0.1)) {
    Classifier classifier = Classifier::random(random);
    classifier.barrier = true;
    classifier.batch = random.between(2, 4) * 3;
    Graph graph = step_of(classifier);
    std::vector<Transform> transforms{hoist_of(graph)};
    transforms.emplace_back(
        split_along(apply_transforms(graph, transforms), {{TensorId(0), 0}}, random.between(2, 3)));
    const TransformedGraph made = apply_transforms(graph, transforms);
    PlanFile file = file_of(graph, on_original(made, transforms, random_plan(random, made.graph)));
    return {std::move(graph), std::move(file)};
  }
  RandomGraphSettings settings;
  settings.ops = random.below(13);
  if (random.chance(0.5)) settings.on_host = 0.3;
  Graph graph = random_graph(random, settings);
  PlanFile file = file_of(graph, random_plan(random, graph, {.restless = random.uniform()}));
  return {std::move(graph), std::move(file)};
}

PlanPlacement give_offsets(Case& one, Bytes alignment) {
  Limits limits({.work = 5'000});
  PlanPlacement placed = place_plan(one.graph, one.file.plan, {.alignment = alignment}, limits);
  write_offsets(one.file, placed, alignment);
  return placed;
}

TEST_CASE("place plan: offsets of random plans of every technique hold") {
  Random random(1);
  for (int round = 0; round < samples(500); ++round) {
    CAPTURE(round);
    Case one = any_case(random);
    const Bytes alignment(random.chance(0.5) ? 1 : random.between(1, 600));
    const PlanPlacement placed = give_offsets(one, alignment);
    const Bytes peak = simulate(one.graph, one.file.plan).cost.peak;
    if (alignment == Bytes(1)) CHECK(placed.load == peak);
    CHECK(placed.load >= peak);
    CHECK(placed.arena >= placed.load);
    one.file.footprint = Footprint::arena;
    one.file.budget = placed.arena;

    const std::string text = io::write_plan(one.file);
    const PlanFile read = io::read_plan_text(text, "written");
    CHECK(read.warnings.empty());
    CHECK(read.offsets == one.file.offsets);
    CHECK(read.claims == one.file.claims);
    CHECK(io::write_plan(read) == text);
    const PlanVerdict verdict = check_plan(one.graph, read);
    CHECK_MESSAGE(verdict.kind == PlanVerdict::Kind::holds, verdict.reason);

    const AppliedPlan applied = apply_plan(one.graph, read);
    const PlanVerdict ordinary = check_plan(applied.graph, applied.file);
    CHECK_MESSAGE(ordinary.kind == PlanVerdict::Kind::holds, ordinary.reason);
  }
}

TEST_CASE("place plan: an offset that is lost, doubled, moved or of other bytes does not hold") {
  Random random(2);
  int found = 0;
  for (int round = 0; round < samples(400); ++round) {
    CAPTURE(round);
    Case one = any_case(random);
    const PlanPlacement placed = give_offsets(one, Bytes(1));
    std::vector<PlannedOffset>& offsets = one.file.offsets;
    if (offsets.size() < 2) continue;
    const std::size_t at = random.below(offsets.size());
    switch (random.below(5)) {
      case 0: offsets.erase(offsets.begin() + static_cast<std::ptrdiff_t>(at)); break;
      case 1: offsets.push_back(offsets[at]); break;
      case 2: offsets[at].offset = placed.arena; break;
      case 3: offsets[at].step += 1; break;
      default: offsets[at].tensor = TensorId(one.graph.tensor_count() + 10'000); break;
    }
    const PlanVerdict verdict = check_plan(one.graph, one.file);
    CHECK(verdict.kind == PlanVerdict::Kind::broken);
    ++found;
  }
  CHECK(found > samples(100));
}

TEST_CASE("place plan: a capacity counts the resident bytes") {
  Random random(4);
  RandomGraphSettings settings;
  settings.resident = 1000;
  for (int round = 0; round < 50; ++round) {
    const Graph graph = random_graph(random, settings);
    const Plan plan = random_plan(random, graph);
    const Bytes peak = simulate(graph, plan).cost.peak;
    Limits limits({.work = 5'000});
    CHECK(place_plan(graph, plan, {.capacity = peak - Bytes(1)}, limits).status ==
          Status::infeasible);
    const PlanPlacement roomy = place_plan(graph, plan, {.capacity = peak + peak}, limits);
    CHECK(roomy.arena <= peak + peak);
    CHECK(roomy.status != Status::infeasible);
  }
}

}  // namespace
}  // namespace lowtide::layout
