// Where the engines' libraries, and the program that they run in, may lie. Private to the room.
#pragma once

#include <string>
#include <vector>

#include "lowtide/engines/engine.h"

namespace lowtide::engines {

// A path, and what to call it where it fails: VARIABLE=path if a variable names it.
struct NamedPath {
  std::string path, label;
};

struct LibraryPaths {
  bool named = false;             // by the caller or a variable, so that nothing else counts
  std::vector<NamedPath> places;  // never empty, best first
};
LibraryPaths library_paths(EngineKind kind, const std::string& asked, const std::string& offered);

// An empty path if there is none.
NamedPath worker_path(const std::string& asked, const std::string& offered);

// What to do where nothing is named and nothing is found.
std::string how_to_install(EngineKind kind);
inline constexpr const char* kNoWorker =
    "lowtide-worker was not built or installed; install all of Lowtide or set LOWTIDE_WORKER";

}  // namespace lowtide::engines
