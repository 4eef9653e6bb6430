// What people ask for, as the terms of a plan.
#include "lowtide/plan/terms.h"

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/plan/question.h"

#include "support/sketch.h"

namespace lowtide {
namespace {

using Text = std::optional<std::string>;

Graph in_nanoseconds() {
  GraphBuilder builder;
  builder.set_tick(TickUnit::ns);
  return builder.build();
}

std::string refusal(const AskedTerms& asked) {
  try {
    terms_of(asked, in_nanoseconds());
  } catch (const InputError& error) {
    return error.place() + ": " + error.reason();
  }
  return "taken";
}

TEST_CASE("terms: a tenth of the link is reserved by default") {
  const Graph graph = in_nanoseconds();
  const auto machine = [&](const Text& derate) {
    return terms_of({.link = "25GB/s,10us", .derate = derate}, graph);
  };
  const Terms terms = machine(std::nullopt);
  CHECK(terms.machine->host_to_device == Link{Ticks(10'000), Bytes(45), Ticks(2)});
  CHECK(terms.full_link->host_to_device == Link{Ticks(10'000), Bytes(25), Ticks(1)});
  CHECK(machine("10").machine == terms.machine);
  CHECK(machine("10%").machine == terms.machine);
  CHECK(machine("0%").machine == terms.full_link);
  CHECK_FALSE(machine("0%").full_link);
  CHECK(machine("99.9 %").machine->device_to_host == Link{Ticks(10'000), Bytes(1), Ticks(40)});
}

TEST_CASE("terms: without a link there is no machine") {
  const Terms terms = terms_of({.order = Order::given}, in_nanoseconds());
  CHECK(terms.order == Order::given);
  CHECK_FALSE(terms.machine);
  CHECK_FALSE(terms.full_link);
  CHECK(names_of(terms) == std::vector<std::string_view>{"recompute", "in_place"});
  // A device without a link prices what transforms make.
  for (const char* technique : {"split", "hoist", "substitute"})
    CHECK_FALSE(terms_of({.device = Device{}, .techniques = technique}, in_nanoseconds()).machine);
  CHECK(refusal({.derate = "10%"}).starts_with("derate \"10%\": there is no link to derate: name"));
  CHECK(refusal({.host_budget = "1GiB"})
            .starts_with("host_budget \"1GiB\": nothing is copied to the host: name a link"));
  CHECK(refusal({.techniques = "offload"}).starts_with("techniques \"offload\": offload needs a"));
}

TEST_CASE("terms: messages say what is wrong and what would be right") {
  const auto derate = [](const char* text) { return refusal({.link = "25GB/s", .derate = text}); };
  CHECK(
      derate("100%") ==
      "derate \"100%\": leaves nothing of the link; write a percentage from 0 to below 100 (10%)");
  CHECK(derate("-5%") == "derate \"-5%\": is negative; write a percentage of 0 or more (5%, 0.5%)");
  CHECK(derate("0.1") ==
        "derate \"0.1\": has no % (did you mean 10%?); write a percentage of 0 or "
        "more (5%, 0.5%)");
  CHECK(derate("some") ==
        "derate \"some\": is not a percentage; write a percentage of 0 or more (5%, 0.5%)");
  CHECK(refusal({.link = "9000000000000000001B/s", .derate = "7%"}).ends_with("write fewer (10%)"));
  CHECK(refusal({.link = "25GB/s", .host_budget = "60%"}) ==
        "host_budget \"60%\": is no number of bytes; write bytes (64GiB, 512MB, 1000000)");
  CHECK(refusal({.link = "25GB/s", .techniques = "recompute in_place"})
            .starts_with("techniques \"recompute in_place\": \"recompute in_place\" is not known"));
}

TEST_CASE("terms: a question is asked in them") {
  const Graph graph = in_nanoseconds();
  const Terms terms = terms_of(
      {.order = Order::given, .link = "25GB/s", .techniques = "offload", .host_budget = "1KiB"},
      graph);
  const Problem problem = question_on(graph, Bytes(7), terms).problem;
  CHECK(problem.budget == Bytes(7));
  CHECK(problem.order == Order::given);
  CHECK(problem.machine == terms.machine);
  CHECK(names_of(problem.techniques) == std::vector<std::string_view>{"offload"});
  CHECK(problem.host_budget == Bytes(1024));
}

}  // namespace
}  // namespace lowtide
