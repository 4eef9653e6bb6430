// Looking for engines. The plain names are tried in the worker, like every library, so that nothing
// is ever opened in the process that plans.
#include "lowtide/engines/engine.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include <dlfcn.h>
#include <unistd.h>

#include "lowtide/engines/conversation.h"

namespace lowtide {

namespace {

namespace fs = std::filesystem;

struct Facts {
  std::string_view name, variable, package, packaged;
  std::array<const char*, 2> plain;
};

constexpr std::array<Facts, 2> kFacts = {{
    {"CP-SAT",
     "LOWTIDE_CPSAT",
     "ortools",
     "ortools/.libs/libortools.so.9",
     {"libortools.so.9", "libortools.so"}},
    {"HiGHS",
     "LOWTIDE_HIGHS",
     "highsbox",
     "highsbox/highs_dist/lib/libhighs.so",
     {"libhighs.so", "libhighs.so.1"}},
}};
constexpr std::string_view kWorkerName = "lowtide-worker";
constexpr double kProbeSeconds = 20;

const Facts& facts(EngineKind kind) { return kFacts[static_cast<std::size_t>(kind)]; }

struct Shared {
  std::mutex mutex;
  std::array<std::string, 2> offered;
  std::string offered_worker;
  std::map<std::tuple<EngineKind, std::string, std::string>, EngineState> known;
};

Shared& shared() {
  static Shared the_one;
  return the_one;
}

std::string variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? "" : value;
}

bool runs(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// The folders in which a worker that belongs to us may lie: where the program is, or the library
// that this function has become part of.
std::vector<fs::path> own_folders() {
  std::vector<fs::path> folders;
  std::error_code error;
  const auto add = [&](const fs::path& file) {
    const fs::path folder = fs::canonical(file, error).parent_path();
    if (error) return;
    folders.push_back(folder);
    folders.push_back(folder / "bin");
    folders.push_back(folder.parent_path());
  };
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&runs), &info) != 0 && info.dli_fname != nullptr)
    add(info.dli_fname);
  add("/proc/self/exe");
  return folders;
}

std::string find_worker(const std::string& asked, const std::string& offered) {
  if (!asked.empty()) return asked;
  if (std::string named = variable("LOWTIDE_WORKER"); !named.empty()) return named;
  if (!offered.empty() && runs(offered)) return offered;
  for (const fs::path& folder : own_folders())
    if (runs(folder / kWorkerName)) return folder / kWorkerName;
  const std::string path = variable("PATH");
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const fs::path candidate = fs::path(path.substr(at, end - at)) / kWorkerName;
    if (end > at && runs(candidate)) return candidate;
    at = end + 1;
  }
  return {};
}

// Where pip puts an engine that is installed beside the program: bin/.. has lib/python*/.
std::vector<std::string> beside_program(EngineKind kind) {
  std::vector<std::string> found;
  std::error_code error;
  const fs::path program = fs::canonical("/proc/self/exe", error);
  if (error) return found;
  const fs::path folder = program.parent_path().parent_path() / "lib";
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with("python")) continue;
    const fs::path library = entry.path() / "site-packages" / facts(kind).packaged;
    if (fs::exists(library, error)) found.push_back(library);
  }
  return found;
}

// Its version, or why not.
std::pair<std::string, std::string> probe(EngineKind kind, const EnginePaths& paths) {
  EngineState state;
  state.paths = paths;
  EngineLimits limits;
  limits.seconds = kProbeSeconds;
  Request request = request_for(kind, state, limits);
  request.probe = true;
  std::string version;
  const EngineEnd end = converse(state, request, limits, [&](const Report& report) {
    if (report.kind == Report::opened) version = report.text;
    return std::string();
  });
  return {version, end.failure};
}

EngineState look(EngineKind kind, const std::vector<std::string>& candidates,
                 const std::string& worker) {
  EngineState state;
  state.paths.worker = worker;
  const Facts& about = facts(kind);
  const std::string name(about.name);
  if (worker.empty()) {
    state.missing = "the program " + std::string(kWorkerName) +
                    " beside it, in PATH or named by LOWTIDE_WORKER, to run " + name + " in";
    return state;
  }
  std::string why;
  for (const std::string& candidate : candidates) {
    state.paths.library = candidate;
    auto [version, failure] = probe(kind, state.paths);
    if (failure.empty()) {
      state.version = version;
      return state;
    }
    const std::string before = name + ": ";
    if (why.empty()) why = failure.starts_with(before) ? failure.substr(before.size()) : failure;
  }
  state.paths.library.clear();
  state.missing = name + " (pip install " + std::string(about.package) + "; " + why + ")";
  return state;
}

}  // namespace

std::string_view to_string(EngineKind kind) { return facts(kind).name; }

void offer_library(EngineKind kind, std::string path) {
  const std::scoped_lock lock(shared().mutex);
  shared().offered[static_cast<std::size_t>(kind)] = std::move(path);
}

void offer_worker(std::string path) {
  const std::scoped_lock lock(shared().mutex);
  shared().offered_worker = std::move(path);
}

EngineState find_engine(EngineKind kind, const EnginePaths& paths) {
  const std::scoped_lock lock(shared().mutex);
  const std::string worker = find_worker(paths.worker, shared().offered_worker);
  std::vector<std::string> candidates;
  if (!paths.library.empty()) {
    candidates = {paths.library};
  } else if (std::string named = variable(facts(kind).variable); !named.empty()) {
    candidates = {std::move(named)};
  } else {
    const std::string& offered = shared().offered[static_cast<std::size_t>(kind)];
    if (!offered.empty()) candidates.push_back(offered);
    std::ranges::copy(beside_program(kind), std::back_inserter(candidates));
    for (const char* plain : facts(kind).plain) candidates.emplace_back(plain);
  }
  const auto key = std::tuple(kind, candidates.front(), worker);
  if (const auto known = shared().known.find(key); known != shared().known.end())
    return known->second;
  return shared().known[key] = look(kind, candidates, worker);
}

}  // namespace lowtide
