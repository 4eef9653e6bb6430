// The wire format, against the bytes that its own guide gives, and models against bytes that the
// engine's own library wrote.
#include "lowtide/engines/wire.h"

#include <limits>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/engines/cp_model.h"
#include "lowtide/engines/mip_model.h"
#include "lowtide/engines/protocol.h"
#include "lowtide/engines/search_log.h"

namespace lowtide {
namespace {

std::string bytes(std::initializer_list<int> list) {
  std::string out;
  for (const int byte : list) out += static_cast<char>(byte);
  return out;
}

TEST_CASE("wire: the examples of the encoding guide") {
  CHECK(engines::WireWriter().number(1, 150).bytes() == bytes({0x08, 0x96, 0x01}));
  CHECK(engines::WireWriter().text(2, "testing").bytes() == bytes({0x12, 0x07}) + "testing");
  CHECK(engines::WireWriter().message(3, engines::WireWriter().number(1, 150)).bytes() ==
        bytes({0x1a, 0x03, 0x08, 0x96, 0x01}));
  const std::int64_t list[] = {3, 270, 86942};
  CHECK(engines::WireWriter().numbers(6, list).bytes() ==
        bytes({0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05}));
  CHECK(engines::WireWriter().number(1, -2).bytes() ==
        bytes({0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}));
  CHECK(engines::WireWriter().real(36, 1.0).bytes() ==
        bytes({0xa1, 0x02, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}));
}

TEST_CASE("wire: messages are read as they were written") {
  const std::int64_t whole[] = {0, -1, 1, std::numeric_limits<std::int64_t>::min(),
                                std::numeric_limits<std::int64_t>::max()};
  const double real[] = {0, -0.5, 1e300};
  engines::WireWriter out;
  out.number(1, -7).real(2, 0.25).text(3, "text").numbers(4, whole).reals(5, real).number(4, 9);
  engines::WireReader in(out.bytes());
  std::vector<std::int64_t> numbers;
  std::vector<double> reals;
  int fields = 0;
  for (; in.next(); ++fields) switch (in.field()) {
      case 1: CHECK(in.number() == -7); break;
      case 2: CHECK(in.real() == 0.25); break;
      case 3: CHECK(in.text() == "text"); break;
      case 4: in.numbers(numbers); break;
      case 5: in.reals(reals); break;
    }
  CHECK(in.ok());
  CHECK(fields == 6);
  CHECK(std::equal(std::begin(whole), std::end(whole), numbers.begin()));
  CHECK(numbers.back() == 9);
  CHECK(std::equal(std::begin(real), std::end(real), reals.begin()));
}

TEST_CASE("wire: no bytes crash the readers") {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string noise;
    for (std::size_t n = random.below(40); n > 0; --n)
      noise += static_cast<char>(random.below(random.chance(0.5) ? 256 : 20));
    engines::WireReader in(noise);
    std::vector<std::int64_t> numbers;
    std::vector<double> reals;
    while (in.next()) {
      in.numbers(numbers);
      in.reals(reals);
    }
    engines::EngineReport report;
    engines::EngineReport::decode(noise, report);
    engines::MipModel model;
    model.decode(noise);
    std::string message;
    engines::take_frame(noise, message);
  }
}

TEST_CASE("wire: a model is encoded as CP-SAT's protocol buffer") {
  engines::CpModel model;
  const engines::CpVar x = model.add_var(0, 9), b = model.add_bool();
  const std::int64_t holes[] = {1, 2, 5};
  model.add_var(holes);
  const engines::CpVar when[] = {engines::cp_not(b)};
  model.add_linear({{x, 3}}, {2, 7}, when);
  const engines::CpTerm goal[] = {{x, 1}};
  model.minimise(goal);
  CHECK(model.encode() ==
        bytes({0x12, 0x04, 0x12, 0x02, 0x00, 0x09,                                      // x
               0x12, 0x04, 0x12, 0x02, 0x00, 0x01,                                      // b
               0x12, 0x06, 0x12, 0x04, 0x01, 0x02, 0x05, 0x05,                          // holes
               0x1a, 0x18,                                                              //
               0x12, 0x0a, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,  // not b
               0x62, 0x0a, 0x0a, 0x01, 0x00, 0x12, 0x01, 0x03, 0x1a, 0x02, 0x02, 0x07,  //
               0x22, 0x0f, 0x0a, 0x01, 0x00, 0x11, 0,    0,    0,    0,    0,    0,
               0,    0,    0x22, 0x01, 0x01}));
}

TEST_CASE("wire: round trip of requests, reports and programs") {
  engines::EngineRequest request;
  request.engine = engines::EngineKind::highs;
  request.library = "/a/b.so";
  request.model = std::string("\0model", 6);
  request.seconds = 1.5;
  request.seed = 12345678901;
  request.stream = true;
  engines::EngineRequest there;
  REQUIRE(engines::EngineRequest::decode(request.encode(), there));
  CHECK(there.engine == engines::EngineKind::highs);
  CHECK(there.library == request.library);
  CHECK(there.model == request.model);
  CHECK(there.seconds == 1.5);
  CHECK(there.seed == request.seed);
  CHECK(there.stream);

  engines::EngineReport report;
  report.kind = engines::EngineReport::incumbent;
  report.numbers = {1, -2};
  engines::EngineReport heard;
  REQUIRE(engines::EngineReport::decode(report.encode(), heard));
  CHECK(heard.kind == engines::EngineReport::incumbent);
  CHECK(heard.numbers == report.numbers);

  engines::MipModel program;
  const auto column = program.add_column(2.5, {0, engines::MipModel::kInfinity}, true);
  const engines::MipTerm terms[] = {{column, -1.5}};
  program.add_row(terms, {-engines::MipModel::kInfinity, 4});
  program.add_start(column, 3);
  engines::MipModel again;
  REQUIRE(again.decode(program.encode()));
  CHECK(again.encode() == program.encode());
  CHECK(again.has_integers());

  std::string buffer =
      engines::frame("one") + engines::frame("") + engines::frame("two").substr(0, 5);
  std::string message;
  CHECK(engines::take_frame(buffer, message) == engines::Framed::whole);
  CHECK(message == "one");
  CHECK(engines::take_frame(buffer, message) == engines::Framed::whole);
  CHECK(message.empty());
  CHECK(engines::take_frame(buffer, message) == engines::Framed::none);
}

TEST_CASE("wire: lines of CP-SAT's log") {
  const engines::LogLine found = engines::read_log_line(
      "#3       1.51s best:43940 next:[37055,43939] scheduling_lns (d=5.00e-01)");
  CHECK(*found.objective == 43940);
  CHECK(*found.bound == 37055);
  const engines::LogLine bound =
      engines::read_log_line("#Bound   0.34s best:377   next:[226,376]  default_lp");
  CHECK_FALSE(bound.objective);
  CHECK(*bound.bound == 226);
  CHECK_FALSE(engines::read_log_line("#Bound   0.21s best:inf   next:[]  x").bound);
  CHECK_FALSE(engines::read_log_line("#Done    0.35s default_lp").bound);
  CHECK_FALSE(engines::read_log_line("#Variables: 1'437").objective);
  CHECK_FALSE(engines::read_log_line("").objective);
}

}  // namespace
}  // namespace lowtide
