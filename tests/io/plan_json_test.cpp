// The plan format: every key, what may be absent, and round trips.
#include "lowtide/io/plan_json.h"

#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/graph/hash.h"

#include "io/refusal.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"

namespace lowtide {
namespace {

const std::string kSeeds = std::string(LOWTIDE_SOURCE_DIR) + "/tests/fuzz/seeds/";

TEST_CASE("plan file: every key is read") {
  const PlanFile file = io::read_plan(kSeeds + "every_key.plan.json");
  CHECK(file.warnings.empty());
  CHECK(file.graph_hash == "sha256:" + std::string(64, 'a'));
  CHECK(file.graph_name == "every key");
  CHECK_FALSE(file.budget);  // null
  CHECK(file.order == Order::given);
  REQUIRE(file.plan.machine);
  CHECK(file.plan.machine->device_to_host == Link{Ticks(2), Bytes(25), Ticks(1)});
  CHECK(file.plan.machine->host_to_device == Link{Ticks(0), Bytes(1), Ticks(0)});
  CHECK(file.plan.steps == std::vector<Step>{Step::compute(OpId(0)), Step::offload(TensorId(1)),
                                             Step::compute(OpId(1)), Step::free(TensorId(1)),
                                             Step::prefetch(TensorId(1))});
  REQUIRE(file.full_link);
  CHECK(file.full_link->device_to_host == Link{Ticks(2), Bytes(50), Ticks(1)});
  CHECK(file.techniques == Techniques{.recompute = false, .in_place = false, .offload = true});
  CHECK(file.host_budget == Bytes(99));
  CHECK(file.footprint == Footprint::reserved);
  CHECK(file.allocator == "expandable_segments:True");
  CHECK(file.alignment == Bytes(512));
  CHECK(file.offsets == std::vector<PlannedOffset>{{PlannedOffset::kStart, TensorId(0), Bytes(0)},
                                                   {0, TensorId(1), Bytes(1024)},
                                                   {0, TensorId(), Bytes(2048)}});
  CHECK(file.claims == Claims{.status = Status::optimal,
                              .duration = Ticks(123),
                              .peak = Bytes(714),
                              .duration_full_link = Ticks(120),
                              .arena = Bytes(4096),
                              .reserved = Bytes(8192)});
  REQUIRE(file.found_by);
  CHECK(file.found_by->solver == "auto");
  CHECK(file.found_by->seed == std::numeric_limits<std::uint64_t>::max());
  CHECK(file.found_by->time_limit == 1.5);
  CHECK(file.found_by->work_limit == 1000);
  CHECK(file.found_by->stopped_by == "finished");
  CHECK(file.found_by->version == "0.1.0");
  CHECK(file.found_by->note == "n");
  REQUIRE(file.found_by->history.size() == 1);
  REQUIRE(file.found_by->parts.size() == 1);
  CHECK(file.found_by->parts[0].name == "search");
  CHECK(file.found_by->parts[0].seconds == 0.2);
  CHECK(file.found_by->history[0].seconds == 0.25);
  CHECK(file.found_by->history[0].work == 7);
  CHECK(file.found_by->history[0].cost == Cost{Ticks(130), Bytes(720), Bytes(0)});
}

TEST_CASE("plan file: what may be absent") {
  const PlanFile file = io::read_plan_text(
      R"({"format": "lowtide-plan", "version": 1, "graph_hash": "h", "steps": []})", "file");
  CHECK(file.order == Order::free);
  CHECK_FALSE(file.budget);
  CHECK(file.claims == Claims{});
  CHECK_FALSE(file.found_by);
  CHECK_FALSE(file.plan.machine);
}

TEST_CASE("plan file: unknown keys give one warning; found_by may hold anything") {
  const PlanFile file = io::read_plan_text(
      R"({"format": "lowtide-plan", "version": 1, "graph_hash": "h", "steps": [], "date": 1,
          "claims": {"gap": 2}, "found_by": {"host": "h", "seed": "none", "history": [1, {}], "parts": [1, {}]}})",
      "file");
  CHECK(file.warnings ==
        std::vector<std::string>{"unknown keys, without effect: \"date\", \"gap\" in \"claims\""});
  CHECK_FALSE(file.found_by->seed);
  CHECK(file.found_by->history.size() == 2);
  CHECK(file.found_by->parts.size() == 2);
}

TEST_CASE("plan file: as it is written") {
  PlanFile file;
  file.graph_hash = "sha256:0";
  file.graph_name = "small";
  file.budget = Bytes(100);
  for (std::size_t i = 0; i < 7; ++i) file.plan.steps.push_back(Step::compute(OpId(i)));
  file.claims = {Status::feasible, Ticks(9), Bytes(90), Ticks(8)};
  file.found_by.emplace();
  file.found_by->solver = "evict";
  file.found_by->seed = 1;
  file.found_by->parts = {{"evict", 0.25, 10, 1, Ticks(2), Ticks(3)}};
  file.found_by->history = {{0.5, 10, {Ticks(11), Bytes(95), Bytes(0)}}};
  CHECK(io::write_plan(file) == R"({
  "format": "lowtide-plan",
  "version": 1,
  "graph_hash": "sha256:0",
  "graph_name": "small",
  "budget": 100,
  "order": "free",
  "transforms": [],
  "steps": [
    ["compute", 0], ["compute", 1], ["compute", 2], ["compute", 3], ["compute", 4], ["compute", 5],
    ["compute", 6]
  ],
  "claims": {"status": "feasible", "duration": 9, "peak": 90, "bound": 8},
  "found_by": {
    "solver": "evict",
    "seed": 1,
    "parts": [
      {"name": "evict", "seconds": 0.250, "work": 10, "plans": 1, "won": 2, "bound": 3}
    ],
    "history": [
      {"seconds": 0.500, "work": 10, "duration": 11, "peak": 95}
    ]
  }
}
)");
  // A run that repeats exactly gives the same file.
  file.found_by->work_limit = 20;
  CHECK(io::write_plan(file).find("\"seconds\"") == std::string::npos);
  CHECK(io::read_plan_text(io::write_plan(file), "file").found_by->history.size() == 1);
  const auto parts = io::read_plan_text(io::write_plan(file), "file").found_by->parts;
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].name == "evict");
  CHECK(parts[0].seconds == 0);
  CHECK(parts[0].work == 10);
  CHECK(parts[0].plans == 1);
  CHECK(parts[0].won == Ticks(2));
  CHECK(parts[0].bound == Ticks(3));
  // Values that JSON has no words for do no harm.
  file.found_by->time_limit = std::numeric_limits<double>::infinity();
  file.found_by->history[0].seconds = std::numeric_limits<double>::quiet_NaN();
  CHECK_NOTHROW(io::read_plan_text(io::write_plan(file), "file"));
}

TEST_CASE("plan file: round trip of every key") {
  const PlanFile file = io::read_plan(kSeeds + "every_key.plan.json");
  const std::string text = io::write_plan(file);
  CHECK(io::read_plan_text(text, "again").warnings.empty());
  CHECK(io::write_plan(io::read_plan_text(text, "again")) == text);
}

TEST_CASE("plan file: round trip of random plans") {
  for (int i = 0; i < 200 * test_scale(); ++i) {
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = random_graph(random);
    PlanFile file;
    file.graph_hash = graph_hash(graph);
    file.order = random.chance(0.5) ? Order::given : Order::free;
    file.plan = random_plan(random, graph, {.order = file.order});
    const std::string text = io::write_plan(file);
    const PlanFile again = io::read_plan_text(text, "again");
    REQUIRE(again.plan.steps == file.plan.steps);
    REQUIRE(again.plan.machine == file.plan.machine);
    REQUIRE(again.order == file.order);
    REQUIRE(again.graph_hash == file.graph_hash);
    REQUIRE(io::write_plan(again) == text);
  }
}

TEST_CASE("plan file: errors name the file") {
  CHECK(refusal_of([] { io::read_plan_text("{", "some.json"); }).file == "some.json");
  CHECK(refusal_of([] { io::read_plan("/no/such/plan.json"); }).file == "/no/such/plan.json");
}

}  // namespace
}  // namespace lowtide
