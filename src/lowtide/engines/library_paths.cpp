// Only existence of files is checked here. Libraries are opened in the worker, including the plain
// names that only the system's loader can resolve.
#include "lowtide/engines/library_paths.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <dlfcn.h>
#include <unistd.h>

namespace lowtide::engines {

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

const Facts& facts(EngineKind kind) { return kFacts[static_cast<std::size_t>(kind)]; }

std::string variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? "" : value;
}

NamedPath at(const fs::path& path) { return {path, path}; }
NamedPath named_by(std::string_view name, const std::string& path) {
  return {path, std::string(name) + "=" + path};
}

bool runs(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// The folders in which our worker may be: that of the program, or of the library that contains this
// function.
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

// The place of an engine that pip installed beside the program: bin/.. has lib/python*/.
void add_beside_program(EngineKind kind, std::vector<NamedPath>& places) {
  std::error_code error;
  const fs::path program = fs::canonical("/proc/self/exe", error);
  if (error) return;
  const fs::path folder = program.parent_path().parent_path() / "lib";
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with("python")) continue;
    const fs::path library = entry.path() / "site-packages" / facts(kind).packaged;
    if (fs::exists(library, error)) places.push_back(at(library));
  }
}

}  // namespace

std::string_view to_string(EngineKind kind) { return facts(kind).name; }

LibraryPaths library_paths(EngineKind kind, const std::string& asked, const std::string& offered) {
  const Facts& about = facts(kind);
  if (!asked.empty()) return {true, {at(asked)}};
  if (const std::string set = variable(about.variable); !set.empty())
    return {true, {named_by(about.variable, set)}};
  LibraryPaths found;
  if (!offered.empty()) found.places.push_back(at(offered));
  add_beside_program(kind, found.places);
  for (const char* plain : about.plain) found.places.push_back(at(plain));
  return found;
}

NamedPath worker_path(const std::string& asked, const std::string& offered) {
  if (!asked.empty()) return at(asked);
  if (const std::string set = variable("LOWTIDE_WORKER"); !set.empty())
    return named_by("LOWTIDE_WORKER", set);
  if (!offered.empty() && runs(offered)) return at(offered);
  for (const fs::path& folder : own_folders())
    if (runs(folder / kWorkerName)) return at(folder / kWorkerName);
  const std::string path = variable("PATH");
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const fs::path candidate = fs::path(path.substr(begin, end - begin)) / kWorkerName;
    if (end > begin && runs(candidate)) return at(candidate);
    begin = end + 1;
  }
  return {};
}

std::string how_to_install(EngineKind kind) {
  const Facts& about = facts(kind);
  return "not found; pip install " + std::string(about.package) + ", or set " +
         std::string(about.variable) + " to the library";
}

}  // namespace lowtide::engines
