// The places of the engines' libraries and of the worker program. Private to the room.
#pragma once

#include <string>
#include <vector>

#include "lowtide/engines/engine.h"

namespace lowtide::engines {

// A path, and its name in messages: VARIABLE=path if a variable names it.
struct NamedPath {
  std::string path, label;
};

struct LibraryPaths {
  bool named = false;             // by the caller or a variable, so that no other place counts
  std::vector<NamedPath> places;  // never empty, best first
};
LibraryPaths library_paths(EngineKind kind, const std::string& asked, const std::string& offered);

// An empty path if there is none.
NamedPath worker_path(const std::string& asked, const std::string& offered);

// The remedy if nothing is named and nothing is found.
std::string how_to_install(EngineKind kind);
inline constexpr const char* kNoWorker =
    "lowtide-worker was not built or installed; install all of Lowtide or set LOWTIDE_WORKER";

}  // namespace lowtide::engines
