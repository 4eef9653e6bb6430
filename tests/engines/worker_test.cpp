// Whatever an engine does, it does it in its own process: said in a sentence, and survived.
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "lowtide/base/limits.h"
#include "lowtide/engines/cp.h"
#include "lowtide/engines/find.h"
#include "lowtide/engines/memory.h"
#include "lowtide/engines/mip.h"
#include "lowtide/engines/worker_session.h"

#include "support/scale.h"
#include "support/variable.h"

namespace lowtide {
namespace {

engines::CpModel small_model() {
  engines::CpModel model;
  const engines::CpTerm goal[] = {{model.add_var(3, 9), 1}};
  model.minimise(goal);
  return model;
}

struct Seen {
  engines::CpAnswer answer;
};

Seen solve(const engines::EngineState& engine, engines::EngineLimits limits = {}) {
  return {engines::solve_cp(small_model(), engine, limits)};
}

engines::EngineState fake_worker() {
  engines::EngineState engine;
  engine.paths = {"nothing.so", LOWTIDE_FAKE_WORKER};
  return engine;
}

engines::EngineState fake_library() {
  const engines::EngineState engine =
      engines::find_engine(engines::EngineKind::cpsat, {LOWTIDE_FAKE_LIBRARY, LOWTIDE_REAL_WORKER});
  REQUIRE(engine.missing == "");
  return engine;
}

TEST_CASE("worker: one that crashes, exits, closes its pipe or sends garbage is reported") {
  const std::pair<const char*, const char*> kinds[] = {
      {"crash", "CP-SAT crashed (Aborted)"},
      {"quit", "CP-SAT ended with status 7"},
      {"close", "CP-SAT closed its line"},
      {"nonsense", "the worker talks nonsense"},
      {"noise", "the worker talks nonsense"},
      {"zeros5", "CP-SAT gave a solution of 5 values for 1 variables"},
      {"bound", "CP-SAT claims an answer without a solution"},
  };
  for (const auto& [how, said] : kinds) {
    CAPTURE(how);
    const Variable fake("LOWTIDE_FAKE", how);
    const Seen seen = solve(fake_worker());
    CHECK(seen.answer.end.failure == said);
    CHECK(seen.answer.values.empty());
    CHECK(seen.answer.end.status == engines::EngineStatus::unknown);
  }
}

TEST_CASE("worker: one that hangs is ended after its time") {
  for (const char* how : {"hang", "deaf"}) {
    CAPTURE(how);
    const Variable fake("LOWTIDE_FAKE", how);
    engines::EngineLimits limits;
    limits.seconds = 0.1;
    const Seen seen = solve(fake_worker(), limits);
    CHECK(seen.answer.end.failure == "CP-SAT did not stop at its time limit");
  }
}

TEST_CASE("worker: a cancel ends it as soon as it is asked for") {
  const Variable fake("LOWTIDE_FAKE", "hang");
  engines::EngineLimits limits;
  int asked = 0;
  limits.stop = [&] { return ++asked >= 5; };
  const Seen seen = solve(fake_worker(), limits);
  CHECK(seen.answer.end.stopped);
  CHECK(seen.answer.end.failure == "");
  CHECK(asked == 5);
}

TEST_CASE("worker: a number that is not finite is rejected everywhere") {
  for (const char* number : {"inf", "-inf", "nan", "1e300"}) {
    const Variable value("LOWTIDE_FAKE_VALUE", number);
    for (const char* how : {"bound_first", "bound", "objective", "effort"}) {
      CAPTURE(number);
      CAPTURE(how);
      const Variable fake("LOWTIDE_FAKE", how);
      int told = 0;
      const engines::CpWatch watch{
          .incumbent = {}, .objective = [&](double) { ++told; }, .bound = [&](double) { ++told; }};
      const engines::CpAnswer answer = engines::solve_cp(small_model(), fake_worker(), {}, watch);
      CHECK(answer.end.failure == "the worker talks nonsense");
      CHECK_FALSE(answer.end.bound);
      CHECK(told == 0);
    }
    const Variable fake("LOWTIDE_FAKE", "value");
    engines::MipModel program;
    program.add_column(1, {0, 1}, true);
    const engines::MipAnswer answer = engines::solve_mip(program, fake_worker(), {});
    CHECK(answer.end.failure == "the worker talks nonsense");
    CHECK(answer.values.empty());
  }
}

TEST_CASE("worker: an early bound and a proof of infeasibility are passed on") {
  {
    const Variable fake("LOWTIDE_FAKE", "bound_first");
    const engines::CpAnswer answer = solve(fake_worker()).answer;
    CHECK(answer.end.failure == "");
    CHECK(answer.end.status == engines::EngineStatus::unknown);
    CHECK(answer.end.bound == 1e9);
  }
  const Variable fake("LOWTIDE_FAKE", "infeasible");
  CHECK(solve(fake_worker()).answer.end.status == engines::EngineStatus::infeasible);
}

TEST_CASE("worker: a flood of messages does not delay a stop") {
  for (const char* how : {"flood", "endless"}) {
    CAPTURE(how);
    const Variable fake("LOWTIDE_FAKE", how);
    engines::EngineLimits limits;
    int asked = 0;
    limits.stop = [&] { return ++asked >= 5; };
    const Seen seen = solve(fake_worker(), limits);
    CHECK(seen.answer.end.stopped);
    CHECK(asked == 5);
  }
}

TEST_CASE("worker: a model too large for a message is refused") {
  if (kSanitized) return;  // which would make a gigabyte slow
  engines::EngineRequest request;
  request.model.assign(engines::kMostFrame, 'x');
  const engines::EngineEnd end = engines::WorkerSession(fake_worker()).run(request, {}, {});
  CHECK(end.failure == "the model is too large for a worker: 1073741824 bytes");
}

TEST_CASE("worker: a library that aborts, exits, hangs or returns garbage is reported") {
  const engines::EngineState engine = fake_library();
  CHECK(engine.version == "of unknown version");
  const std::pair<const char*, const char*> kinds[] = {
      {"abort", "CP-SAT crashed (Aborted)"},
      {"exit", "CP-SAT ended with status 9"},
      {"invalid", "CP-SAT: it calls the model invalid"},
      {"garbage", "CP-SAT: its answer cannot be read"},
  };
  for (const auto& [how, said] : kinds) {
    CAPTURE(how);
    const Variable fake("LOWTIDE_FAKE", how);
    CHECK(solve(engine).answer.end.failure == said);
  }
  const Variable fake("LOWTIDE_FAKE", "hang");
  engines::EngineLimits limits;
  limits.seconds = 0.1;
  CHECK(solve(engine, limits).answer.end.failure == "CP-SAT did not stop at its time limit");
}

TEST_CASE("worker: a memory limit is kept, if necessary by a kill") {
  if (kSanitized) return;  // whose shadow is memory too
  const Variable fake("LOWTIDE_FAKE", "memory");
  engines::EngineLimits limits;
  limits.memory_bytes = std::int64_t{256} << 20;
  const std::string failure = solve(fake_library(), limits).answer.end.failure;
  CHECK((failure == "CP-SAT: it ran out of memory" || failure == "CP-SAT crashed (Aborted)"));
}

TEST_CASE("worker: one process serves several requests, and a crash fails only its own") {
  const auto served = [](engines::MipSession& session, int threads = 1) {
    engines::MipModel program;
    program.add_column(1, {0, 1}, true);
    engines::EngineLimits limits;
    limits.threads = threads;
    return session.solve(program, limits).end;
  };
  {
    const Variable fake("LOWTIDE_FAKE", "serve");
    engines::MipSession session(fake_worker());
    for (const double count : {1, 2, 3}) CHECK(served(session).effort == count);
    CHECK(served(session, 2).effort == 1);  // threads are set up once in a process
    engines::MipModel program;
    program.add_column(1, {0, 1}, true);
    CHECK(engines::solve_mip(program, fake_worker(), {}).end.effort == 1);
  }
  {
    const Variable fake("LOWTIDE_FAKE", "serve_two");  // dies between two requests
    engines::MipSession session(fake_worker());
    for (const double count : {1, 2, 1, 2}) {
      CHECK(served(session).effort == count);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  const Variable fake("LOWTIDE_FAKE", "serve_crash");  // in every second
  engines::MipSession session(fake_worker());
  for (const bool fine : {true, false, true, false}) {
    const engines::EngineEnd end = served(session);
    CHECK(end.failure == (fine ? "" : "HiGHS crashed (Aborted)"));
    CHECK(end.effort == (fine ? 1 : 0));
  }
}

TEST_CASE("worker: the default memory limit is a share of the free memory") {
  CHECK(engines::free_memory() > 0);
  const engines::EngineRequest request =
      engines::request_for(engines::EngineKind::cpsat, fake_worker(), {});
  CHECK(request.memory_bytes > engines::free_memory() / 2);
  CHECK(request.memory_bytes < engines::free_memory());
}

}  // namespace
}  // namespace lowtide
