// Plans with transforms, judged from their file and the original graph alone.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/graph/hash.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "support/network.h"
#include "support/random_plan.h"

namespace lowtide {
namespace {

using Kind = PlanVerdict::Kind;

struct Case {
  Graph graph;
  PlanFile file;
};

// A random legal plan of a classifier whose step is hoisted and split, as its file has it.
Case random_case(Random& random) {
  Classifier classifier = Classifier::random(random);
  classifier.barrier = true;
  classifier.batch = random.between(2, 4) * 3;
  Graph graph = step_of(classifier);
  std::vector<Transform> transforms{hoist_of(graph)};
  transforms.emplace_back(
      split_along(apply_transforms(graph, transforms), {{TensorId(0), 0}}, random.between(2, 3)));
  const TransformedGraph made = apply_transforms(graph, transforms);
  PlanFile file;
  file.plan = on_original(made, transforms, random_plan(random, made.graph));
  file.graph_hash = graph_hash(graph);
  file.transform_hash = transform_hash(graph);
  const Cost cost = simulate(graph, file.plan).cost;
  file.claims = {Status::feasible, cost.duration, cost.peak, made.graph.total_time()};
  file.claims.bound_scope = BoundScope::graph;
  file.budget = cost.peak;
  return {std::move(graph), std::move(file)};
}

TEST_CASE("transforms: a plan, its file and the files that apply writes agree") {
  Random random(7);
  for (int round = 0; round < 40; ++round) {
    const Case one = random_case(random);
    const std::string text = io::write_plan(one.file);
    const PlanFile read = io::read_plan_text(text, "written");
    CHECK(read.warnings.empty());
    CHECK(read.plan.transforms == one.file.plan.transforms);
    CHECK(read.claims == one.file.claims);
    CHECK(io::write_plan(read) == text);
    const PlanVerdict verdict = check_plan(one.graph, read);
    CHECK(verdict.reason == "");
    REQUIRE(verdict.kind == Kind::holds);

    const AppliedPlan applied = apply_plan(one.graph, read);
    const io::GraphFile graph = io::read_graph_text(io::write_graph(applied.graph), "graph");
    const PlanFile plan = io::read_plan_text(io::write_plan(applied.file), "plan");
    CHECK(plan.plan.transforms.empty());
    CHECK(plan.transform_hash.empty());
    const PlanVerdict ordinary = check_plan(graph.graph, plan);
    CHECK(ordinary.reason == "");
    CHECK(ordinary.kind == Kind::holds);
    CHECK(ordinary.cost == verdict.cost);
  }
}

TEST_CASE("transforms: faults of plans with transforms") {
  Random random(11);
  const Case good = random_case(random);
  const auto broken = [&](const PlanFile& file, const std::string& why, Kind kind = Kind::broken) {
    const PlanVerdict verdict = check_plan(good.graph, file);
    CAPTURE(verdict.reason);
    CHECK(verdict.kind == kind);
    CHECK(verdict.reason.find(why) != std::string::npos);
  };
  PlanFile file = good.file;
  file.transform_hash = "sha256:0";
  broken(file, "the plan is for another graph: its transform_hash is sha256:0",
         Kind::another_graph);
  file = good.file;
  file.techniques = Techniques();
  broken(file, "the technique \"hoist\" is not among those allowed");
  file = good.file;
  file.plan.steps.push_back(Step::compute(OpId(0)));  // gone
  broken(file, "there is no op");
  broken(file, "(indices are those of the graph that the transforms make)");
  file = good.file;
  std::swap(file.plan.transforms[0], file.plan.transforms[1]);
  broken(file, "transforms/0: split: the region is not convex");
  file = good.file;
  std::get<Split>(file.plan.transforms[1]).prices[0][0].time += Ticks(1);
  broken(file, "the claimed duration is");
  file = good.file;
  file.claims.peak = *file.claims.peak - Bytes(1);
  broken(file, "the claimed peak is");
  file = good.file;
  std::get<Split>(file.plan.transforms[1]).joins.clear();
  CHECK_THROWS_AS(check_plan(good.graph, file), InputError);
}

TEST_CASE("transforms: a problem that asks for transforms gets plans that begin with them") {
  Random random(3);
  const Case good = random_case(random);
  Question question{{.graph = good.graph, .budget = Bytes::max()}};
  question.problem.techniques = Techniques::all();
  question.problem.machine = good.file.plan.machine;
  CHECK(verify(question, good.file.plan).ok);
  question.transforms = good.file.plan.transforms;
  CHECK(verify(question, good.file.plan).ok);
  question.transforms.pop_back();
  CHECK(verify(question, good.file.plan).ok);
  std::get<Hoist>(question.transforms[0]).joins.clear();
  CHECK_FALSE(verify(question, good.file.plan).ok);
  // Own peak and base are those of the original: nothing here asks the made graph.
  CHECK(own_peak(good.graph) == own_peak(question.problem.graph));
}

TEST_CASE("transforms: a simulation reports refused transforms at step 0") {
  Random random(5);
  Case one = random_case(random);
  std::get<Split>(one.file.plan.transforms[1]).parts = 1000;
  const Timeline timeline = simulate(one.graph, one.file.plan);
  REQUIRE(timeline.violation);
  CHECK(timeline.violation->step == 0);
  CHECK(timeline.violation->reason.find("transforms/1") != std::string::npos);
}

TEST_CASE("hash: transforms depend on kinds, operands, arguments and shapes") {
  const Graph graph = step_of({.batch = 4, .widths = {3, 5}});
  const std::string hash = transform_hash(graph);
  CHECK(hash.size() == 7 + 64);
  CHECK(transform_hash(step_of({.batch = 4, .widths = {3, 5}})) == hash);
  CHECK(transform_hash(step_of({.batch = 5, .widths = {3, 5}})) != hash);
  CHECK(transform_hash(step_of({.batch = 4, .widths = {3, 5}, .dtype = "bf16"})) != hash);
  // Times and workspaces are the business of graph_hash.
  Graph timed = step_of({.batch = 4, .widths = {3, 5}});
  timed = std::move(timed).timed(TickUnit::ns, std::vector<Ticks>(timed.op_count(), Ticks(1)));
  CHECK(transform_hash(timed) == hash);
  CHECK(graph_hash(timed) != graph_hash(graph));
}

}  // namespace
}  // namespace lowtide
