// Reports of graphs by hand: the figures, the text that fits, and the page that no name can break.
#include "lowtide/report/report.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/graph/builder.h"
#include "lowtide/io/json.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/report_html.h"
#include "lowtide/report/report_text.h"

#include "support/mutated_plan.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

// x -> a -> b -> c, and d reads a and c: a may be dropped after b and made again for d.
Graph diamond() {
  return Sketch({10, 100, 30, 40, 5})
      .op({0}, {1}, 7)
      .op({1}, {2}, 2)
      .op({2}, {3}, 3)
      .workspace(60)
      .op({1, 3}, {4}, 4)
      .resident(1000)
      .keep({4})
      .graph();
}
Plan dropping() { return steps("c0 c1 f1 c2 f2 c0 c3 f1 f3"); }

void check_fits(const report::Report& report) {
  for (std::size_t width : {1, 40, 41, 55, 80, 200}) {
    for (const bool unicode : {false, true}) {
      std::string_view text;
      const std::string whole = report::text_report(report, {.width = width, .unicode = unicode});
      for (text = whole; !text.empty(); text.remove_prefix(text.find('\n') + 1)) {
        const std::string_view line = text.substr(0, text.find('\n'));
        CHECK_MESSAGE(report::columns_of(line) <= std::max<std::size_t>(width, 40),
                      std::string(line));
        if (!unicode)
          CHECK(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }));
      }
    }
  }
}

// The data in a page, parsed.
io::JsonDocument data_in(const std::string& page) {
  constexpr std::string_view kOpen = "<script id=\"data\" type=\"application/json\">";
  const std::size_t start = page.find(kOpen);
  REQUIRE(start != std::string::npos);
  const std::size_t from = start + kOpen.size();
  return io::JsonDocument(std::string_view(page).substr(from, page.find("</script>", from) - from));
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size())
    ++found;
  return found;
}

TEST_CASE("report: before and after") {
  const Graph graph = diamond();
  const Plan plan = dropping();
  const report::Report report = report::make_report(graph, &plan, Bytes(1160));
  CHECK(report.ops == 4);
  CHECK(report.tensors == 5);
  CHECK(report.base_duration == Ticks(16));
  CHECK(report.notice.empty());

  // 1010, then a, b, and c with its workspace.
  CHECK(report.before.timeline.cost.peak == Bytes(1240));
  CHECK(report.before.recomputed_steps.empty());
  REQUIRE(report.before.largest.size() == 4);
  CHECK(report.before.largest[0].id == TensorId(1));
  CHECK(report.before.largest[0].share == doctest::Approx(100.0 / 1240));
  CHECK(report.before.workspace == Bytes(60));

  REQUIRE(report.after);
  const report::Run& after = *report.after;
  CHECK(&report.shown() == &after);
  CHECK(after.timeline.cost.peak == Bytes(1155));  // d: x, a, c and its own output
  CHECK(after.peak_step == 6);
  CHECK(after.peak_what == "compute of op 3");
  CHECK(after.computations == 5);
  CHECK(after.recomputed_steps == std::vector<std::size_t>{5});
  CHECK(after.recomputed_time == Ticks(7));
  CHECK(after.overhead_percent == doctest::Approx(100 * 7.0 / 16));
  CHECK(after.workspace == Bytes(0));
  REQUIRE(after.by_role.size() == 2);
  CHECK(after.by_role[0].role == Role::activation);
  CHECK(after.by_role[0].bytes == Bytes(145));
  CHECK(after.by_role[0].tensors == 3);
  CHECK(after.by_role[1].bytes == Bytes(10));
  CHECK(report.recomputed_by == "op");
  REQUIRE(report.recomputed.size() == 1);
  CHECK(report.recomputed[0].share == doctest::Approx(1));
}

TEST_CASE("report: recomputed time is summed by origin and by origin pattern") {
  GraphBuilder builder;
  const std::vector<std::string> origins{"h.0.fc", "h.1.fc", "h.1.conv2", "", "out"};
  Tensor tensor;
  tensor.bytes = Bytes(1);
  for (std::size_t i = 0; i < origins.size(); ++i) {
    Op op;
    op.kind = "kind.7";
    op.origin = origins[i];
    op.time = Ticks(static_cast<std::int64_t>(i) + 1);
    builder.add_tensor(tensor);
    builder.add_op(op, OpLinks{{}, {static_cast<std::int64_t>(i)}, {}, {}});
    builder.add_output(TensorId(i));
  }
  const Graph graph = builder.build();
  const Plan plan = steps("c0 f0 c0 f0 c0 c1 f1 c1 c2 f2 c2 c3 f3 c3 c4");
  const report::Report report = report::make_report(graph, &plan);
  CHECK(report.recomputed_by == "origin");
  const auto row = [](const report::Recomputed& group) {
    return group.what + " " + std::to_string(group.ops) + " " + std::to_string(group.times) + " " +
           std::to_string(group.time.count());
  };
  std::vector<std::string> rows, alike;
  for (const report::Recomputed& group : report.recomputed) rows.push_back(row(group));
  for (const report::Recomputed& group : report.recomputed_alike) alike.push_back(row(group));
  CHECK(rows == std::vector<std::string>{"kind.7 1 1 4", "h.1.conv2 1 1 3", "h.0.fc 1 2 2",
                                         "h.1.fc 1 1 2"});
  CHECK(alike == std::vector<std::string>{"h.*.fc 2 3 4", "kind.* 1 1 4", "h.*.conv2 1 1 3"});
}

TEST_CASE("report: a text written by hand") {
  const Graph graph = diamond();
  const Plan plan = dropping();
  const std::string text = report::text_report(report::make_report(graph, &plan, Bytes(1160)),
                                               {.width = 60, .height = 6, .unicode = false});
  for (const char* part :
       {"4 ops, 5 tensors, 1010 B in use from the start\n",
        "                  unplanned      plan\n"
        "  peak             1.21 KiB  1.13 KiB  -6.9 %\n"
        "  duration               16        23\n"
        "  overhead           0.00 %   43.75 %\n"
        "  steps                   7         9\n"
        "  recomputations          0         1\n",
        "Budget 1.13 KiB: the plan keeps it, with 5 B to spare.\n",
        "In use at the peak of the plan\nstep 6, compute of op 3\n",
        "  resident    1000 B  86.6 %  #######\n", "  100 B  8.7 %  activation  tensor 1  op 0\n",
        "     7  100.0 %      1    1  ##########  op 0\n", "Recomputed by op: 7\n"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, std::string(part), "\nin\n", text);
}

TEST_CASE("report: blocks that repeat") {
  GraphBuilder builder;
  TensorId last;
  for (int layer = 0; layer < 3; ++layer)
    for (const char* part : {"norm", "linear", "act"}) {
      Tensor tensor;
      tensor.bytes = Bytes(8);
      Op op;
      op.kind = part;
      op.origin = "net.layers." + std::to_string(layer) + "." + part;
      op.phase = "forward";
      op.time = Ticks(layer + 1);
      const TensorId made = builder.add_tensor(std::move(tensor));
      const std::vector<TensorId> read(layer == 0 && !last.valid() ? 0 : 1, last);
      builder.add_op(std::move(op), read, {made});
      last = made;
    }
  builder.add_output(last);
  // The first layer reads nothing, the others each what the one before made.
  const report::Report report = report::make_report(builder.build());
  REQUIRE(report.blocks.size() >= 1);
  const report::Repetition& block = report.blocks[0];
  CHECK(block.times == 2);
  CHECK(block.ops == 3);
  CHECK(block.share_of_ops == doctest::Approx(6.0 / 9));
  CHECK(block.share_of_time == doctest::Approx(15.0 / 18));
  CHECK(block.phase == "forward");
  CHECK(block.where == "net.layers.*");
  const std::string text = report::text_report(report, {.width = 100});
  CHECK(text.find("Blocks that repeat") != std::string::npos);
  CHECK(text.find("net.layers.*") != std::string::npos);
  check_fits(report);

  const report::Report chain = report::make_report(
      Sketch({8, 8, 8, 8}).op({0}, {1}).op({1}, {2}).op({2}, {3}).keep({3}).graph());
  REQUIRE(chain.blocks.size() == 1);
  CHECK(chain.blocks[0].times == 3);
  CHECK(chain.blocks[0].ops == 1);
  CHECK(chain.blocks[0].phase == "");
  CHECK(chain.blocks[0].where == "from op 0");
  CHECK(report::make_report(GraphBuilder().build()).blocks.empty());
}

TEST_CASE("report: empty graphs and plans") {
  const Graph nothing = GraphBuilder().build();
  const Graph one = Sketch({}).op({}, {}, 0).graph();
  const Graph start = Sketch({50, 1}).op({}, {1}).releasable({0}).graph();
  const Plan empty, computed = steps("c0"), freed = steps("f0 c0 f1");
  for (const Graph* graph : {&nothing, &one, &start}) {
    for (const Plan* plan : {static_cast<const Plan*>(nullptr), &empty, &computed, &freed}) {
      const report::Report report = report::make_report(*graph, plan, Bytes(0));
      check_fits(report);
      const std::string page = report::html_report(*graph, report);
      const std::size_t runs = data_in(page).root().find("runs")->size();
      CHECK(runs == (&report.shown() == &report.before ? 1 : 2));
    }
  }
  CHECK(report::make_report(nothing, &empty).notice.empty());
  CHECK(report::make_report(one, &empty).notice == "The plan has no steps.");
  CHECK(report::make_report(one, &computed).notice.empty());
  CHECK(report::make_report(one, &freed).notice.substr(0, 30) == "The plan breaks a rule at step");
  const report::Report started = report::make_report(start);
  CHECK(started.before.peak_what == "free of tensor 0");
}

TEST_CASE("report: names cannot break the page or steer the terminal") {
  const std::string evil =
      std::string(
          "</script><script>alert(1)</script><!-- {{data}} & \" ' \\ \x1b[2J \u202e \xff ") +
      std::string("\0", 1) + "\u2028";
  GraphBuilder builder;
  builder.set_name(evil + "&amp;");
  Tensor tensor;
  tensor.name = evil;
  tensor.bytes = Bytes(5);
  builder.add_tensor(tensor);
  Op op;
  op.name = op.kind = op.origin = evil;
  op.time = Ticks(1);
  builder.add_op(op, OpLinks{{}, {0}, {}, {}});
  const Graph graph = builder.build();
  const Plan plan = steps("c0 f0 c0");
  const report::Report report = report::make_report(graph, &plan);
  check_fits(report);
  const std::string text = report::text_report(report, {.width = 400});
  CHECK(std::none_of(text.begin(), text.end(), [](char c) { return c == '\x1b' || c == '\0'; }));

  const std::string page = report::html_report(graph, report);
  const std::string plain = report::html_report(
      Sketch({5}).op({}, {0}).graph(), report::make_report(Sketch({5}).op({}, {0}).graph()));
  for (const char* mark : {"<script", "</script", "<title", "<!--"})
    CHECK_MESSAGE(count(page, mark) == count(plain, mark), std::string(mark));
  CHECK(std::none_of(page.begin(), page.end(), [](char c) { return c == '\x1b' || c == '\0'; }));
  const io::JsonDocument data = data_in(page);
  const io::JsonValue names = *data.root().find("ops")->find("name");
  CHECK((*names.items().begin()).as_string() == report::clean_text(evil));
}

TEST_CASE("report: a page has every step, or only peaks if there are too many") {
  Random random(5);
  RandomGraphSettings settings;
  settings.ops = 9000;
  const Graph graph = random_graph(random, settings);
  const report::Report report = report::make_report(graph);
  const std::size_t steps_of_it = report.before.timeline.live.size();
  REQUIRE(steps_of_it > 12'000);
  const std::string full = report::html_report(graph, report),
                    sampled = report::html_report(graph, report, 100);
  const auto run_of = [](const io::JsonDocument& data) {
    return *data.root().find("runs")->items().begin();
  };
  const io::JsonDocument all = data_in(full), some = data_in(sampled);
  CHECK(all.root().find("full")->as_boolean());
  CHECK(run_of(all).find("live")->size() == steps_of_it);
  CHECK(all.root().find("tensors")->find("name")->size() == graph.tensor_count());

  CHECK(!some.root().find("full")->as_boolean());
  const io::JsonValue run = run_of(some);
  CHECK(run.find("live")->size() == 12'000);
  std::int64_t most = 0, previous = -1;
  for (const io::JsonValue& live : run.find("live")->items())
    most = std::max(most, live.as_integer());
  CHECK(most == report.before.timeline.cost.peak.count());
  for (const io::JsonValue& at : run.find("at")->items()) {
    CHECK(at.as_integer() > previous);
    previous = at.as_integer();
  }
  for (const char* column : {"at", "what", "clock", "extra"})
    CHECK(run.find(column)->size() == 12'000);
  CHECK(run.find("again")->as_string().size() == 12'000);
}

TEST_CASE("report: random graphs and plans have a text and a page") {
  Random random(19);
  for (int round = 0; round < sanitized(30, 150); ++round) {
    RandomGraphSettings settings;
    settings.ops = random.below(25);
    const Graph graph = random_graph(random, settings);
    Plan plan = random_plan(random, graph);
    if (random.chance(0.5))
      plan = mutated(random, graph, plan, static_cast<Mutation>(random.below(kMutations)));
    const report::Report report = report::make_report(graph, &plan, Bytes(random.between(0, 200)));
    check_fits(report);
    const io::JsonDocument data = data_in(report::html_report(graph, report));
    std::int64_t shown = 0;
    for (const io::JsonValue& run : data.root().find("runs")->items())
      shown += run.find("inPlace")->as_integer();
    CHECK(shown == report.before.in_place + report.after->in_place);
    std::int64_t recomputed = 0;
    for (const report::Recomputed& group : report.recomputed) recomputed += group.time.count();
    CHECK(recomputed == report.after->recomputed_time.count());
    for (const report::Run* run : {&report.before, &*report.after}) {
      std::int64_t held = report.resident.count() + run->workspace.count();
      for (const report::RoleBytes& role : run->by_role) held += role.bytes.count();
      CHECK(held == run->timeline.cost.peak.count());
    }
  }
}

}  // namespace
}  // namespace lowtide
