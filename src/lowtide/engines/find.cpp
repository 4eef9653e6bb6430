// Searches for engines, and remembers the results. The lock guards the memory only: a search can
// take seconds, and two at once do no harm.
#include "lowtide/engines/find.h"

#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "lowtide/engines/library_paths.h"
#include "lowtide/engines/probe.h"

namespace lowtide::engines {

namespace {

using Clock = std::chrono::steady_clock;
// A failure may pass, or be fixed by the user.
constexpr auto kFailureLasts = std::chrono::seconds(10);

struct Failure {
  std::string why;
  Clock::time_point at;
};

using Key = std::tuple<EngineKind, std::string, std::string>;  // the first place, and the worker

struct Shared {
  std::mutex mutex;
  std::array<std::string, 2> offered;
  std::string offered_worker;
  std::map<Key, EngineState> found;
  std::map<Key, Failure> failed;
  std::map<std::string, Failure> failed_workers;  // for all engines
};

Shared& shared() {
  static Shared the_one;
  return the_one;
}

template <class Map, class Name>
std::optional<std::string> recent(const Map& failures, const Name& name) {
  const auto known = failures.find(name);
  if (known == failures.end() || Clock::now() - known->second.at > kFailureLasts)
    return std::nullopt;
  return known->second.why;
}

// Here `missing` lacks the engine's name.
void remember(const Key& key, Probe::End end, const EngineState& state) {
  const std::scoped_lock lock(shared().mutex);
  if (end == Probe::End::found)
    shared().found[key] = state;
  else if (end == Probe::End::worker)
    shared().failed_workers[std::get<2>(key)] = {state.missing, Clock::now()};
  else if (end != Probe::End::stopped)
    shared().failed[key] = {state.missing, Clock::now()};
}

// Tries one library after the other until one opens, the worker fails, one hangs, or time runs out.
EngineState look(EngineKind kind, const LibraryPaths& libraries, const NamedPath& worker,
                 const Key& key, const std::function<bool()>& stop) {
  using End = Probe::End;
  EngineState state;
  std::string& why = state.missing;
  Probe last;
  for (const NamedPath& place : libraries.places) {
    state.paths = {place.path, worker.path};
    last = probe(kind, state.paths, stop);
    // Plain names are tried without knowing whether such a library exists.
    const bool told = libraries.named || place.path.find('/') != std::string::npos;
    switch (last.end) {
      case End::found:
        state.version = last.text;
        why.clear();
        break;
      case End::refused:
        if (why.empty() && told) why = place.label + " " + last.text;
        continue;
      case End::hung: why = place.label + " " + last.text; break;
      case End::worker: why = worker.label + " " + last.text; break;
      case End::stopped: why = "there was no time to look for it"; break;
    }
    break;
  }
  if (last.end != End::found) state.paths.library.clear();
  if (last.end == End::refused && why.empty()) why = how_to_install(kind);
  remember(key, last.end, state);
  return state;
}

}  // namespace

void offer_library(EngineKind kind, std::string path) {
  const std::scoped_lock lock(shared().mutex);
  shared().offered[static_cast<std::size_t>(kind)] = std::move(path);
}

void offer_worker(std::string path) {
  const std::scoped_lock lock(shared().mutex);
  shared().offered_worker = std::move(path);
}

EngineState find_engine(EngineKind kind, const EnginePaths& paths,
                        const std::function<bool()>& stop) {
  std::string offered, offered_worker;
  {
    const std::scoped_lock lock(shared().mutex);
    offered = shared().offered[static_cast<std::size_t>(kind)];
    offered_worker = shared().offered_worker;
  }
  const LibraryPaths libraries = library_paths(kind, paths.library, offered);
  const NamedPath worker = worker_path(paths.worker, offered_worker);
  const Key key{kind, libraries.places.front().path, worker.path};
  std::optional<std::string> failed;
  {
    const std::scoped_lock lock(shared().mutex);
    if (const auto known = shared().found.find(key); known != shared().found.end())
      return known->second;
    failed = recent(shared().failed, key);
    if (!failed) failed = recent(shared().failed_workers, worker.path);
  }
  if (worker.path.empty()) failed = kNoWorker;
  EngineState state;
  if (failed)
    state = {.paths = {.library = "", .worker = worker.path}, .version = "", .missing = *failed};
  else
    state = look(kind, libraries, worker, key, stop);
  if (!state.missing.empty()) state.missing = std::string(to_string(kind)) + ": " + state.missing;
  return state;
}

}  // namespace lowtide::engines
