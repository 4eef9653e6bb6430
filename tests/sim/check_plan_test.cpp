// The judgement of a plan file: each thing that can be false in it, alone.
#include "lowtide/sim/check_plan.h"

#include <string>

#include <doctest/doctest.h>

#include "lowtide/graph/hash.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/sim/simulate.h"

#include "support/random_graph.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

using Kind = PlanVerdict::Kind;

// t0 (10, input) -> op 0, 7 ticks -> t1 (20) -> op 1, 3 ticks -> t2 (5, kept): 30, then 35 bytes
Graph chain() { return Sketch({10, 20, 5}).op({0}, {1}, 7).op({1}, {2}, 3).keep({2}).graph(); }

PlanFile good() {
  PlanFile file;
  file.graph_hash = graph_hash(chain());
  file.budget = Bytes(35);
  file.plan = steps("c0 c1 f1");
  file.claims = {Status::optimal, Ticks(10), Bytes(35), Ticks(10)};
  return file;
}

PlanVerdict verdict(const PlanFile& file) { return check_plan(chain(), file); }

void broken(const PlanFile& file, std::string_view why) {
  const PlanVerdict found = verdict(file);
  CHECK(found.kind == Kind::broken);
  CAPTURE(found.reason);
  CHECK(found.reason.find(why) != std::string::npos);
}

TEST_CASE("check plan: a correct file") {
  const PlanVerdict found = verdict(good());
  CHECK(found.kind == Kind::holds);
  CHECK(found.reason.empty());
  REQUIRE(found.cost);
  CHECK(*found.cost == Cost{Ticks(10), Bytes(35), Bytes(0)});
  PlanFile silent = good();
  silent.claims = {};
  silent.budget.reset();
  CHECK(verdict(silent).kind == Kind::holds);
  PlanFile given = good();
  given.order = Order::given;
  CHECK(verdict(given).kind == Kind::holds);
}

TEST_CASE("check plan: claims over the full link") {
  PlanFile file = good();
  file.plan = steps("c0 o1 c1 f1");
  file.plan.machine = machine_by_hand();
  file.claims = {};
  Machine full = machine_by_hand();
  full.device_to_host = {Ticks(3), Bytes(10), Ticks(1)};
  claim_full_link(file, chain(), full);
  CHECK(file.claims.duration_full_link == Ticks(12));
  CHECK(verdict(file).kind == Kind::holds);
  file.claims.duration_full_link = Ticks(13);
  broken(file, "over the full link is 13, found is 12");
  file.full_link->device_to_host.latency = Ticks::max();
  broken(file, "over the full link does not fit into 63 bits");
  file.full_link.reset();
  broken(file, "no full link is named");
}

TEST_CASE("check plan: another graph is an error of its own, whatever else is wrong") {
  PlanFile file = good();
  file.graph_hash = "sha256:0";
  file.plan = steps("c99");
  const PlanVerdict found = verdict(file);
  CHECK(found.kind == Kind::another_graph);
  CHECK(found.reason.find(graph_hash(chain())) != std::string::npos);
}

TEST_CASE("check plan: a step that is not allowed, or does not exist") {
  PlanFile file = good();
  file.plan = steps("c1 c0");
  broken(file, "step 0: compute of op 1: its input tensor 1 is not live");
  CHECK(verdict(file).step == 0);
  file.plan = steps("c0 f7");
  broken(file, "step 1: free 7: there is no tensor 7");
  file.plan = steps("c0");
  broken(file, "at the end op 1 was never computed");
  CHECK(verdict(file).step == 1);
}

TEST_CASE("check plan: budget and order are the file's own") {
  PlanFile file = good();
  file.budget = Bytes(34);
  broken(file, "the peak is 35 bytes, the budget 34");
  CHECK(verdict(file).step == 1);

  const Graph graph = Sketch({1, 1}).op({}, {0}).op({}, {1}).keep({0, 1}).graph();
  PlanFile swapped;
  swapped.graph_hash = graph_hash(graph);
  swapped.plan = steps("c1 c0");
  CHECK(check_plan(graph, swapped).kind == Kind::holds);
  swapped.order = Order::given;
  CHECK(check_plan(graph, swapped).reason ==
        "step 0: compute of op 1: in the given order op 0 comes first");
}

TEST_CASE("check plan: claims must match the recomputed figures") {
  PlanFile file = good();
  file.claims.duration = Ticks(9);
  broken(file, "the claimed duration is 9, found is 10");
  file = good();
  file.claims.peak = Bytes(34);
  broken(file, "the claimed peak is 34, found is 35");
  file = good();
  file.claims.bound = Ticks(11);
  broken(file, "the claimed bound 11 is beyond the duration 10");
  file.claims.status = Status::feasible;
  broken(file, "the claimed bound 11 is beyond the duration 10");
  file = good();
  file.claims.bound = Ticks(9);
  broken(file, "the plan is claimed to be optimal, but its bound 9 is not its duration 10");
  file.claims.status = Status::feasible;
  CHECK(verdict(file).kind == Kind::holds);
  file.claims.status.reset();
  CHECK(verdict(file).kind == Kind::holds);
  file = good();
  file.claims.bound.reset();
  CHECK(verdict(file).kind == Kind::holds);
}

TEST_CASE("check plan: status and steps agree") {
  for (Status status : {Status::infeasible, Status::unknown}) {
    PlanFile file = good();
    file.claims = {.status = status};
    broken(file, "yet there are steps");
    file.plan = {};
    CHECK(verdict(file).kind == Kind::holds);
    CHECK_FALSE(verdict(file).cost);
    file.claims.bound = Ticks(3);
    CHECK(verdict(file).kind == Kind::holds);
    file.claims.peak = Bytes(3);
    broken(file, "yet a duration or a peak is claimed");
  }
  for (Status status : {Status::optimal, Status::feasible}) {
    PlanFile file = good();
    file.claims.status = status;
    file.plan = {};
    broken(file, "yet there are no steps");
  }
  PlanFile file = good();
  file.claims.status.reset();
  file.plan = {};
  broken(file, "no status says why");
}

TEST_CASE("check plan: a graph without ops needs no steps") {
  const Graph graph = Sketch({50}).graph();
  PlanFile file;
  file.graph_hash = graph_hash(graph);
  file.claims = {Status::optimal, Ticks(0), Bytes(50), Ticks(0)};
  CHECK(check_plan(graph, file).kind == Kind::holds);
  file.budget = Bytes(49);
  CHECK(check_plan(graph, file).kind == Kind::broken);
}

TEST_CASE("check plan: a written file is read and judged the same") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random);
    PlanFile file;
    file.graph_hash = graph_hash(graph);
    file.plan = own_plan(graph);
    file.order = Order::given;
    file.budget = own_peak(graph);
    file.claims = {Status::optimal, graph.total_time(), own_peak(graph), graph.total_time()};
    CAPTURE(seed);
    if (graph.op_count() == 0) continue;
    CHECK(check_plan(graph, io::read_plan_text(io::write_plan(file), "file")).reason == "");
    file.budget = *file.budget - Bytes(1);
    CHECK(check_plan(graph, file).kind == Kind::broken);
  }
}

}  // namespace
}  // namespace lowtide
