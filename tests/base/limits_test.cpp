#include "lowtide/base/limits.h"

#include <cstdint>
#include <thread>

#include <doctest/doctest.h>

namespace lowtide {

TEST_CASE("limits: without any, nothing ever stops") {
  Limits limits;
  CHECK_FALSE(limits.spend(1'000'000'000));
  CHECK_FALSE(limits.stopped());
  CHECK(limits.reason() == StopReason::finished);
  CHECK(limits.work() == 1'000'000'000);
}

TEST_CASE("limits: work ends exactly at its limit, and stays ended") {
  for (std::int64_t limit : {1, 7, 999, 1000, 1001, 12'345}) {
    Limits limits(LimitSettings{.work = limit});
    std::int64_t spent = 0;
    while (!limits.spend()) ++spent;
    CHECK(spent + 1 == limit);
    CHECK(limits.work() == limit);
    CHECK(limits.work_left() == 0);
    CHECK(limits.reason() == StopReason::work_limit);
    CHECK(limits.spend());
    CHECK(limits.stopped());
  }
  Limits none(LimitSettings{.work = 0});
  CHECK(none.spend());
  Limits negative(LimitSettings{.work = -5});
  CHECK(negative.spend());
  Limits leap(LimitSettings{.work = 100});
  CHECK_FALSE(leap.spend(99));
  CHECK(leap.spend(50));
}

TEST_CASE("limits: the clock is read once in a thousand units of work") {
  Limits limits(LimitSettings{.seconds = 3600, .work = 1'000'000});
  std::int64_t units = 0;
  while (!limits.spend()) ++units;
  CHECK(units >= 999'999);
  CHECK(units <= 1'000'000);
  CHECK(limits.polls() >= 1000);
  CHECK(limits.polls() <= 1002);
}

TEST_CASE("limits: a deadline stops within a poll of it") {
  Limits past(LimitSettings{.seconds = 0});
  CHECK(past.spend());
  CHECK(past.reason() == StopReason::deadline);

  Limits soon(LimitSettings{.seconds = 0.02});
  while (!soon.spend()) {
  }
  CHECK(soon.reason() == StopReason::deadline);
  CHECK(soon.seconds() >= 0.02);
}

TEST_CASE("limits: a cancel stops at the next poll and no earlier") {
  CancelToken cancel;
  Limits limits(LimitSettings{.cancel = &cancel});
  CHECK_FALSE(limits.spend());
  cancel.cancel();
  std::int64_t more = 0;
  while (!limits.spend()) ++more;
  CHECK(more <= Limits::kPollWork);
  CHECK(limits.reason() == StopReason::cancelled);
  CHECK(cancel.cancelled());
}

TEST_CASE("limits: a cancel from another thread") {
  CancelToken cancel;
  Limits limits(LimitSettings{.seconds = 30, .cancel = &cancel});
  std::thread other([&] { cancel.cancel(); });
  while (!limits.spend()) {
  }
  other.join();
  CHECK(limits.reason() == StopReason::cancelled);
}

TEST_CASE("limits: the first limit reached is the reason") {
  CancelToken cancel;
  Limits limits(LimitSettings{.work = 10, .cancel = &cancel});
  while (!limits.spend()) {
  }
  cancel.cancel();
  limits.spend(5000);
  CHECK(limits.reason() == StopReason::work_limit);
}

TEST_CASE("limits: a share of the remaining limits, for a subsolver") {
  CancelToken cancel;
  Limits limits(LimitSettings{.seconds = 100, .work = 1000, .cancel = &cancel});
  limits.spend(200);
  const double before = limits.seconds();
  const LimitSettings half = limits.remaining(0.5);
  CHECK(half.work == 400);
  CHECK(*half.seconds <= (100 - before) / 2);
  CHECK(*half.seconds >= (100 - limits.seconds()) / 2);
  CHECK(half.cancel == &cancel);
  limits.spend(5000);
  CHECK(limits.remaining().work == 0);
  CHECK(Limits(LimitSettings{.work = INT64_MAX}).remaining().work == INT64_MAX);
  CHECK_FALSE(Limits().remaining().work);
  CHECK_FALSE(Limits().remaining().seconds);
}

TEST_CASE("limits: reasons have texts") {
  CHECK(to_string(StopReason::finished) == "finished");
  CHECK(to_string(StopReason::gave_up) == "gave up");
  CHECK(to_string(StopReason::deadline) == "deadline");
  CHECK(to_string(StopReason::work_limit) == "work limit");
  CHECK(to_string(StopReason::cancelled) == "cancelled");
}

TEST_CASE("limits: the used share goes from 0 to 1, by the limit that is nearer") {
  CHECK(Limits().used() == 0);
  Limits work(LimitSettings{.work = 400});
  CHECK(work.used() == 0);
  work.spend(100);
  CHECK(work.used() == 0.25);
  work.spend(1000);
  CHECK(work.used() == 1);
  Limits both(LimitSettings{.seconds = 1000.0, .work = 10});
  both.spend(5);
  CHECK(both.used() == 0.5);
  CHECK(Limits(LimitSettings{.seconds = 0.0}).used() == 1);
}

TEST_CASE("limits: an interrupter ends the limits that poll it, and those derived from them") {
  struct AtLook final : Interrupter {
    explicit AtLook(int at) : left(at) {}
    bool ends() noexcept override { return left-- == 0; }
    int left;
  };
  for (const int at : {0, 1, 3}) {
    AtLook interrupter(at);
    Limits limits(LimitSettings{.seconds = 1e6, .interrupter = &interrupter});
    for (int look = 0; look < at; ++look) CHECK_FALSE(limits.spend(Limits::kPollWork));
    Limits before(limits.remaining());
    CHECK(limits.spend(Limits::kPollWork));
    CHECK(limits.reason() == StopReason::deadline);
    CHECK(limits.over());
    // Others go on, unless they were handed on later.
    CHECK_FALSE(before.spend(Limits::kPollWork));
    CHECK_FALSE(before.over());
    Limits after(limits.remaining(0.5));
    CHECK(after.spend());
  }
  AtLook interrupter(0);
  Limits waits(LimitSettings{.interrupter = &interrupter});
  CHECK(waits.over());
  CHECK(waits.over());
  CHECK(waits.spend());
}

}  // namespace lowtide
