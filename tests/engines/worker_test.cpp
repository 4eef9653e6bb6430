// Whatever an engine does, it does it in its own process: said in a sentence, and survived.
#include <chrono>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/limits.h"
#include "lowtide/engines/cp.h"
#include "lowtide/engines/mip.h"

#include "support/scale.h"

namespace lowtide {
namespace {

using Clock = std::chrono::steady_clock;

class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1); }

 private:
  const char* name_;
  std::string before_;
};

CpModel small_model() {
  CpModel model;
  const CpTerm goal[] = {{model.add_var(3, 9), 1}};
  model.minimise(goal);
  return model;
}

struct Seen {
  CpAnswer answer;
  double seconds;
};

Seen solve(const EngineState& engine, EngineLimits limits = {}) {
  const auto begin = Clock::now();
  CpAnswer answer = solve_cp(small_model(), engine, limits);
  return {std::move(answer), std::chrono::duration<double>(Clock::now() - begin).count()};
}

EngineState fake_worker() {
  EngineState engine;
  engine.paths = {"nothing.so", LOWTIDE_FAKE_WORKER};
  return engine;
}

EngineState fake_library() {
  const EngineState engine =
      find_engine(EngineKind::cpsat, {LOWTIDE_FAKE_LIBRARY, LOWTIDE_REAL_WORKER});
  REQUIRE(engine.missing == "");
  return engine;
}

TEST_CASE("worker: one that crashes, quits, closes its line or talks nonsense is reported") {
  const std::pair<const char*, const char*> kinds[] = {
      {"crash", "CP-SAT crashed (Aborted)"},
      {"quit", "CP-SAT ended with status 7"},
      {"close", "CP-SAT closed its line"},
      {"nonsense", "the worker talks nonsense"},
      {"noise", "the worker talks nonsense"},
      {"zeros5", "CP-SAT gave a solution of 5 values for 1 variables"},
  };
  for (const auto& [how, said] : kinds) {
    CAPTURE(how);
    const Variable fake("LOWTIDE_FAKE", how);
    const Seen seen = solve(fake_worker());
    CHECK(seen.answer.end.failure == said);
    CHECK(seen.answer.values.empty());
    CHECK(seen.answer.end.status == EngineStatus::unknown);
  }
}

TEST_CASE("worker: one that hangs is ended a second after its time") {
  for (const char* how : {"hang", "deaf"}) {
    CAPTURE(how);
    const Variable fake("LOWTIDE_FAKE", how);
    EngineLimits limits;
    limits.seconds = 0.1;
    const Seen seen = solve(fake_worker(), limits);
    CHECK(seen.answer.end.failure == "CP-SAT did not stop at its time limit");
    CHECK(seen.seconds < 3);
  }
}

TEST_CASE("worker: a cancel ends it within 50 ms") {
  const Variable fake("LOWTIDE_FAKE", "hang");
  EngineLimits limits;
  const auto begin = Clock::now();
  Clock::time_point cancelled = Clock::time_point::max();
  limits.stop = [&] {
    if (Clock::now() - begin < std::chrono::milliseconds(100)) return false;
    cancelled = std::min(cancelled, Clock::now());
    return true;
  };
  const Seen seen = solve(fake_worker(), limits);
  CHECK(seen.answer.end.stopped);
  CHECK(seen.answer.end.failure == "");
  CHECK(std::chrono::duration<double>(Clock::now() - cancelled).count() < 0.05);
}

TEST_CASE("worker: one that is not there is reported") {
  EngineState engine;
  engine.paths = {"nothing.so", "/no/such/worker"};
  CHECK(solve(engine).answer.end.failure.find("cannot be started") != std::string::npos);
  const EngineState missing = find_engine(EngineKind::cpsat, {"/no/such/library.so", ""});
  CHECK(missing.missing.find("pip install ortools") != std::string::npos);
  CHECK(missing.missing.find('\n') == std::string::npos);
  CHECK(solve(missing).answer.end.failure.find("pip install ortools") != std::string::npos);
  const EngineState other = find_engine(EngineKind::highs, {LOWTIDE_FAKE_LIBRARY, ""});
  CHECK(other.missing.find("lacks the functions") != std::string::npos);
}

TEST_CASE("worker: a library that aborts, exits, hangs or answers nonsense is reported") {
  const EngineState engine = fake_library();
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
  EngineLimits limits;
  limits.seconds = 0.1;
  CHECK(solve(engine, limits).answer.end.failure == "CP-SAT did not stop at its time limit");
}

TEST_CASE("worker: a limit of memory is kept, by ending it if need be") {
  if (kSanitized) return;  // whose shadow is memory too
  const Variable fake("LOWTIDE_FAKE", "memory");
  EngineLimits limits;
  limits.memory_bytes = std::int64_t{256} << 20;
  const std::string failure = solve(fake_library(), limits).answer.end.failure;
  CHECK((failure == "CP-SAT: it ran out of memory" || failure == "CP-SAT crashed (Aborted)"));
}

TEST_CASE("worker: a library is found again without being opened twice") {
  const auto begin = Clock::now();
  for (int i = 0; i < 1000; ++i) fake_library();
  CHECK(std::chrono::duration<double>(Clock::now() - begin).count() < 5);
}

}  // namespace
}  // namespace lowtide
