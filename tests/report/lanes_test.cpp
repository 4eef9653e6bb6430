// What copies do beside computing: by hand, with the machine of sketch.h.
#include "lowtide/report/lanes.h"

#include <numeric>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/io/json.h"
#include "lowtide/report/report_html.h"
#include "lowtide/report/report_text.h"

#include "support/sketch.h"

namespace lowtide {
namespace {

// x -> a -> b -> c, and d reads a and c.
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
// a leaves from 7 to 62 and comes back from 65 to 93.
Plan swapping() { return steps("c0 o1 c1 f1 c2 f2 p1 c3 f1 f3"); }

report::Lanes lanes_of(const Graph& graph, const Plan& plan) {
  return report::lanes_of(graph, plan, simulate(graph, plan));
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string stalls_of(const report::Lanes& lanes) {
  std::string text;
  for (const report::Stall& stall : lanes.stalls)
    text += std::to_string(stall.step) + ":" + std::to_string(stall.begin.count()) + "-" +
            std::to_string(stall.end.count()) + " ";
  return text;
}

TEST_CASE("lanes: network ops, their hidden share, and stalls") {
  // gathered 0-40, of which 10 are beside op 1; the reader waits
  const Graph graph = Sketch({10, 40, 5, 1})
                          .op({0}, {1}, 40)
                          .network()
                          .op({}, {2}, 10)
                          .op({1, 2}, {3}, 7)
                          .keep({3})
                          .graph();
  const Plan plan = steps("c0 c1 c2");
  const report::Lanes lanes = lanes_of(graph, plan);
  REQUIRE(lanes.sent.size() == 1);
  CHECK((lanes.sent[0].step == 0 && lanes.sent[0].op == OpId(0)));
  CHECK((lanes.sent[0].begin == Ticks(0) && lanes.sent[0].end == Ticks(40)));
  CHECK(lanes.sent[0].hidden == Ticks(10));
  CHECK(stalls_of(lanes) == "2:10-40 ");
  CHECK(report::network_text(lanes, TickUnit::none) ==
        "40 on the network, 25.0 % of the time hidden; computing waits for 30");
  const auto busy = report::sending_by_time(lanes, Ticks(47), 47);
  CHECK(std::accumulate(busy.begin(), busy.end(), 0.0) == doctest::Approx(40));
  const report::Report made = report::make_report(graph, &plan);
  const std::string text = report::text_report(made, {});
  CHECK(has(text, "network"));
  CHECK(has(text, "On the network"));
  CHECK_FALSE(has(text, "Copied to the host"));
  CHECK(report::live_by_time(simulate(graph, plan), Ticks(47), 47).size() == 47);
}

TEST_CASE("lanes: copies, their hidden share, and stalls") {
  const report::Lanes lanes = lanes_of(diamond(), swapping());
  REQUIRE(lanes.copies.size() == 2);
  const report::Copy &out = lanes.copies[0], &in = lanes.copies[1];
  CHECK((out.step == 1 && out.out && out.begin == Ticks(7) && out.end == Ticks(62)));
  CHECK(out.hidden == Ticks(2));  // b is computed meanwhile
  CHECK((in.step == 6 && !in.out && in.begin == Ticks(65) && in.end == Ticks(93)));
  CHECK(in.hidden == Ticks(0));
  CHECK(stalls_of(lanes) == "3:9-62 7:65-93 ");
  CHECK(lanes.stalled == Ticks(81));
  REQUIRE(lanes.moved.size() == 1);
  const report::Moved& moved = lanes.moved[0];
  CHECK((moved.tensor == TensorId(1) && moved.out == 1 && moved.in == 1));
  CHECK((moved.bytes == Bytes(200) && moved.time == Ticks(83) && moved.hidden == Ticks(2)));
  CHECK((lanes.out == Bytes(100) && lanes.in == Bytes(100)));
  CHECK(report::copied_text(lanes, TickUnit::none) ==
        "100 B out, 100 B in, 2.4 % of the time hidden; computing waits for 81");
}

TEST_CASE("lanes: the end waits for the last copy") {
  const report::Lanes lanes = lanes_of(diamond(), steps("c0 o1 c1 c2 f2 c3 f3"));
  CHECK(stalls_of(lanes) == "7:16-62 ");
  CHECK(lanes.moved[0].hidden == Ticks(9));
}

TEST_CASE("lanes: a plan without copies has none") {
  const report::Lanes lanes = lanes_of(diamond(), steps("c0 c1 f1 c2 f2 c0 c3 f1 f3"));
  CHECK((lanes.copies.empty() && lanes.stalls.empty() && lanes.moved.empty()));
  CHECK(report::hidden_share(lanes.hidden, lanes.copying) == 1);
}

TEST_CASE("lanes: sums beyond 63 bits") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 61;
  const Graph graph = Sketch({kHuge}).op({}, {0}).keep({0}).graph();
  Plan plan = steps("c0 o0 o0 o0 o0 o0");
  plan.machine = Machine{{Ticks(0), Bytes(kHuge), Ticks(1)}, {Ticks(0), Bytes(kHuge), Ticks(1)}};
  const report::Lanes lanes = lanes_of(graph, plan);
  CHECK(lanes.out == Bytes::max());
  CHECK(lanes.moved[0].bytes == Bytes::max());
}

TEST_CASE("lanes: cut into intervals of time") {
  const Graph graph = diamond();
  const Plan plan = swapping();
  const Timeline timeline = simulate(graph, plan);
  REQUIRE(timeline.cost.duration == Ticks(97));
  const report::Lanes lanes = report::lanes_of(graph, plan, timeline);
  const auto live = report::live_by_time(timeline, Ticks(97), 97);
  REQUIRE(live.size() == 97);
  CHECK((live[0] == Bytes(1110) && live[30] == Bytes(1140) && live[80] == Bytes(1155)));
  const auto computing = report::computing_by_time(lanes, timeline, Ticks(97), 97);
  const auto near = [](double value) { return doctest::Approx(value); };
  CHECK((computing[0] == near(1) && computing[30] == near(0)));
  CHECK((computing[63] == near(1) && computing[70] == near(0)));
  const auto out = report::copying_by_time(lanes, true, Ticks(97), 97);
  CHECK((out[6] == near(0) && out[7] == near(1) && out[61] == near(1) && out[62] == near(0)));
  // Half of a stretch, and a run that ends before the longer one does.
  const auto wide = report::copying_by_time(lanes, true, Ticks(140), 10);
  CHECK(wide[0] == doctest::Approx(0.5));
  CHECK(wide[4] == doctest::Approx(6.0 / 14));
  CHECK(report::live_by_time(timeline, Ticks(194), 10).size() == 6);
}

TEST_CASE("lanes: in the terminal, over time") {
  const Graph graph = diamond();
  const Plan plan = swapping();
  const report::Report report = report::make_report(graph, &plan, Bytes(1160));
  const std::string text =
      report::text_report(report, {.width = 60, .height = 5, .unicode = false});
  CHECK_MESSAGE(has(text, R"(
         ++------------------------+------------------------
          0                       50                      97
 compute  #####xxxxxxxxxxxxxxxxxxxxxxxxxxx##xxxxxxxxxxxxxx##
     out     _############################
      in                                   _##############
# plan   . unplanned   - budget 1.13 KiB
x waiting for copies
)"),
                text);
  CHECK_MESSAGE(has(text, R"(
Copied to the host
100 B out, 100 B in, 2.4 % of the time hidden; computing
waits for 81
  bytes  out  in  time  hidden  tensor
  200 B    1   1    83   2.4 %  tensor 1
)"),
                text);
  CHECK_MESSAGE(has(text, "waiting"), text);
}

std::int64_t sum_of(io::JsonValue list) {
  std::int64_t sum = 0;
  for (const io::JsonValue entry : list.items()) sum += entry.as_count();
  return sum;
}

TEST_CASE("lanes: a sampled page draws several copies as one, and loses none") {
  constexpr std::int64_t kCopies = 7000;
  GraphBuilder builder;
  Plan plan;
  plan.machine = machine_by_hand();
  for (std::int64_t i = 0; i < kCopies; ++i) {
    Tensor tensor;
    tensor.bytes = Bytes(i + 1);
    Op op;
    op.time = Ticks(1);
    builder.add_tensor(tensor);
    builder.add_op(op, OpLinks{{}, {i}, {}, {}});
    const auto at = static_cast<std::size_t>(i);
    plan.add_compute(OpId(at), {});
    plan.steps.push_back(Step::offload(TensorId(at)));
    plan.steps.push_back(Step::free(TensorId(at)));
  }
  const Graph graph = builder.build();
  const report::Report report = report::make_report(graph, &plan);
  for (const std::size_t full_steps : {std::size_t{0}, std::size_t{1'000'000}}) {
    const std::string page = report::html_report(graph, report, full_steps);
    constexpr std::string_view kOpen = "<script id=\"data\" type=\"application/json\">";
    const std::size_t from = page.find(kOpen) + kOpen.size();
    const io::JsonDocument data(
        std::string_view(page).substr(from, page.find("</script>", from) - from));
    io::JsonValue run = data.root();
    for (const io::JsonValue each : data.root().find("runs")->items()) run = each;
    const io::JsonValue lanes = *run.find("lanes"), out = *lanes.find("out");
    CHECK(out.find("count")->size() == (full_steps == 0 ? 2334 : 7000));
    CHECK(sum_of(*out.find("count")) == kCopies);
    CHECK(sum_of(*out.find("bytes")) == kCopies * (kCopies + 1) / 2);
    CHECK(lanes.find("stalls")->find("begin")->size() == (full_steps == 0 ? 3000 : 7000));
    CHECK(lanes.find("moved")->size() == 400);
    CHECK(lanes.find("rest")->size() == 1);
  }
}

}  // namespace
}  // namespace lowtide
