// What check_plan says of offsets, each fault alone.
#include <string>

#include <doctest/doctest.h>

#include "lowtide/graph/hash.h"
#include "lowtide/sim/check_plan.h"

#include "support/sketch.h"

namespace lowtide {
namespace {

using Kind = PlanVerdict::Kind;
constexpr std::int32_t kStart = PlannedOffset::kStart;

// t0 (10, input), t1 (20), then t2 in its place with workspace 7, then t3 (0), t4 (5, kept);
// 3 resident
Graph graph() {
  return Sketch({10, 20, 20, 0, 5})
      .op({0}, {1})
      .op({1}, {2})
      .in_place({{1, 2}})
      .workspace(7)
      .op({2}, {3, 4})
      .keep({4})
      .resident(3)
      .graph();
}

PlanFile good() {
  PlanFile file;
  file.graph_hash = graph_hash(graph());
  file.plan = steps("c0 i1,1 c2 f2 f3");
  file.footprint = Footprint::arena;
  file.budget = Bytes(43);
  file.claims.arena = Bytes(40);
  file.claims.peak = Bytes(40);
  // 10 at 0, 20 at 10, 7 at 30, 5 at 30
  file.offsets = {{kStart, TensorId(0), Bytes(0)},
                  {0, TensorId(1), Bytes(10)},
                  {1, TensorId(), Bytes(30)},
                  {2, TensorId(4), Bytes(30)}};
  return file;
}

void broken(const PlanFile& file, const std::string& reason) {
  const PlanVerdict found = check_plan(graph(), file);
  CHECK(found.kind == Kind::broken);
  CHECK(found.reason == reason);
}

TEST_CASE("offsets: good ones hold") {
  PlanFile file = good();
  const PlanVerdict found = check_plan(graph(), file);
  CHECK_MESSAGE(found.kind == Kind::holds, found.reason);
  file.alignment = Bytes(10);
  CHECK(check_plan(graph(), file).kind == Kind::holds);
  file.claims.arena = Bytes(43);
  CHECK(check_plan(graph(), file).kind == Kind::holds);
  file.footprint = Footprint::live;
  file.claims.arena = Bytes(1000);
  CHECK(check_plan(graph(), file).kind == Kind::holds);
}

TEST_CASE("offsets: each fault") {
  PlanFile file = good();
  file.offsets[1].offset = Bytes(9);
  broken(file, "step 0: tensor 1 at offset 9: it overlaps tensor 0, which lies there from 0 to 10");
  file = good();
  file.offsets[2].offset = Bytes(9);
  broken(file,
         "step 1: the workspace of op 1 at offset 9: it overlaps tensor 1, which lies there from "
         "10 to 30");
  file = good();
  file.offsets[3].offset = Bytes(33);
  broken(file,
         "step 2: tensor 4 at offset 33: its 5 bytes end beyond the claimed arena without the "
         "resident bytes, 37");
  file = good();
  file.offsets[0].offset = Bytes(-1);
  broken(file, "tensor 0 at offset -1: it is negative");
  file = good();
  file.alignment = Bytes(8);
  broken(file, "step 0: tensor 1 at offset 10: it is no multiple of the alignment 8");
  file = good();
  file.offsets.pop_back();
  broken(file, "step 2: tensor 4 has no offset");
  file = good();
  file.offsets.push_back(file.offsets[1]);
  broken(file, "step 0: tensor 1 has 2 offsets");
  file = good();
  file.offsets.push_back({1, TensorId(2), Bytes(10)});
  broken(file, "there is an offset of tensor 2 from step 1 on, and no such bytes begin there");
  file = good();
  file.offsets.push_back({2, TensorId(3), Bytes(0)});
  broken(file, "there is an offset of tensor 3 from step 2 on, and no such bytes begin there");
  file = good();
  file.offsets.push_back({9, TensorId(77), Bytes(0)});
  broken(file,
         "there is an offset of a tensor that there is not from step 9 on, and no such bytes begin "
         "there");
  file = good();
  file.claims.arena.reset();
  broken(file, "the footprint is arena, and no \"arena\" is claimed");
  file.footprint = Footprint::live;
  broken(file, "there are offsets, but no \"arena\" is claimed");
  file = good();
  file.budget = Bytes(40);
  file.claims.arena = Bytes(41);
  broken(file, "the claimed \"arena\" is 41 bytes, the budget 40");
  file = good();
  file.offsets.clear();
  broken(file, "tensor 0 has no offset");
  file.footprint = Footprint::live;
  CHECK(check_plan(graph(), file).kind == Kind::holds);
  file = good();
  file.footprint = Footprint::reserved;
  broken(file, "the footprint is reserved, and no \"reserved\" is claimed");
  file.claims.reserved = Bytes(44);
  broken(file, "the claimed \"reserved\" is 44 bytes, the budget 43");
  file = good();
  file.plan.steps.clear();
  file.claims.status = Status::unknown;
  file.claims.peak.reset();
  broken(file, "the status is unknown, yet there are offsets, or an arena is claimed");
}

}  // namespace
}  // namespace lowtide
