// Looking for engines: what is said of one that cannot run, and how long that may take.
#include "lowtide/engines/find.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/engines/cp.h"

#include "support/variable.h"

namespace lowtide {
namespace {

using Clock = std::chrono::steady_clock;

// Programs and libraries that are none, in a folder of their own. A failure is remembered by its
// path, so each test has paths of its own.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("lowtide_find_" + std::to_string(Clock::now().time_since_epoch().count()));
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const char* name, const std::string& text, bool runs = true) const {
    std::ofstream(path / name) << text;
    if (runs) std::filesystem::permissions(path / name, std::filesystem::perms::owner_all);
    return path / name;
  }
};

// Of a worker that writes a line whenever it is started.
int times_started(const std::string& worker) {
  std::ifstream file(worker + ".count");
  int lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

std::string missing(const std::string& library, const std::string& worker,
                    engines::EngineKind kind = engines::EngineKind::cpsat) {
  const Variable for_library(kind == engines::EngineKind::cpsat ? "LOWTIDE_CPSAT" : "LOWTIDE_HIGHS",
                             library);
  const Variable for_worker("LOWTIDE_WORKER", worker);
  return engines::find_engine(kind).missing;
}

TEST_CASE("find: an error in a path names the environment variable") {
  const Folder folder;
  const std::string text = folder.file("text.so", "text", false);
  CHECK(missing("/nowhere.so", LOWTIDE_REAL_WORKER) ==
        "CP-SAT: LOWTIDE_CPSAT=/nowhere.so cannot be opened: No such file or directory");
  CHECK(missing("/nowhere.so", LOWTIDE_REAL_WORKER, engines::EngineKind::highs) ==
        "HiGHS: LOWTIDE_HIGHS=/nowhere.so cannot be opened: No such file or directory");
  CHECK(missing("/", LOWTIDE_REAL_WORKER) == "CP-SAT: LOWTIDE_CPSAT=/ cannot be opened: no file");
  CHECK(missing("nowhere.so", LOWTIDE_REAL_WORKER) ==
        "CP-SAT: LOWTIDE_CPSAT=nowhere.so cannot be opened: No such file or directory");
  CHECK(missing(text, LOWTIDE_REAL_WORKER) ==
        "CP-SAT: LOWTIDE_CPSAT=" + text + " cannot be opened: file too short");
  const std::string fake = LOWTIDE_FAKE_LIBRARY;
  CHECK(missing(fake, LOWTIDE_REAL_WORKER, engines::EngineKind::highs) ==
        "HiGHS: LOWTIDE_HIGHS=" + fake + " lacks the functions that are needed");
  CHECK(missing(fake, LOWTIDE_REAL_WORKER) == "");

  CHECK(missing("x.so", "/nowhere") ==
        "CP-SAT: LOWTIDE_WORKER=/nowhere cannot be started: No such file or directory");
  CHECK(missing("x.so", text) ==
        "CP-SAT: LOWTIDE_WORKER=" + text + " cannot be started: Permission denied");
  CHECK(missing("x.so", "/bin/true") == "CP-SAT: LOWTIDE_WORKER=/bin/true ended without an answer");
}

TEST_CASE("find: an error names the path of the library, also in a solve") {
  const engines::EngineState state =
      engines::find_engine(engines::EngineKind::cpsat, {"/none.so", LOWTIDE_REAL_WORKER});
  CHECK(state.missing == "CP-SAT: /none.so cannot be opened: No such file or directory");
  CHECK(engines::solve_cp(engines::CpModel(), state, {}).end.failure ==
        "it needs " + state.missing);
  engines::EngineState engine;
  engine.paths = {"nothing.so", "/no/such/worker"};
  CHECK(engines::solve_cp(engines::CpModel(), engine, {}).end.failure ==
        "/no/such/worker cannot be started: No such file or directory");
}

TEST_CASE("find: a library that aborts when it is opened is reported") {
  const Folder folder;
  const std::string copy = folder.path / "abort.so";
  std::filesystem::copy_file(LOWTIDE_FAKE_LIBRARY, copy);
  const Variable fake("LOWTIDE_FAKE", "open_abort");
  CHECK(missing(copy, LOWTIDE_REAL_WORKER) ==
        "CP-SAT: LOWTIDE_CPSAT=" + copy + " cannot be opened: the worker crashed (Aborted)");
}

TEST_CASE("find: a worker that hangs is waited for once, whatever the engine") {
  const Folder folder;
  const std::string worker =
      folder.file("deaf", "#!/bin/sh\necho started >> \"$0.count\"\nexec sleep 100000\n");
  CHECK(missing("x.so", worker) == "CP-SAT: LOWTIDE_WORKER=" + worker + " does not answer");
  CHECK(missing("x.so", worker, engines::EngineKind::highs) ==
        "HiGHS: LOWTIDE_WORKER=" + worker + " does not answer");
  CHECK(times_started(worker) == 1);
}

TEST_CASE("find: a search does not wait beyond the deadline, and a later one finds the library") {
  const Folder folder;
  const std::string copy = folder.path / "slow.so";
  std::filesystem::copy_file(LOWTIDE_FAKE_LIBRARY, copy);
  {
    const Variable fake("LOWTIDE_FAKE", "open_hang");
    int asked = 0;
    const engines::EngineState state = engines::find_engine(
        engines::EngineKind::cpsat, {copy, LOWTIDE_REAL_WORKER}, [&] { return ++asked >= 5; });
    CHECK(state.missing == "CP-SAT: there was no time to look for it");
    CHECK(asked == 5);  // it does not wait for more
  }
  CHECK(missing(copy, LOWTIDE_REAL_WORKER) == "");
}

TEST_CASE("find: a library is found again without being opened twice") {
  const Folder folder;
  const std::string worker = folder.file(
      "counting", "#!/bin/sh\necho started >> \"$0.count\"\nexec " LOWTIDE_REAL_WORKER " \"$@\"\n");
  for (int i = 0; i < 1000; ++i) CHECK(missing(LOWTIDE_FAKE_LIBRARY, worker) == "");
  CHECK(times_started(worker) == 1);
}

}  // namespace
}  // namespace lowtide
