// Finds the engines on this machine.
#pragma once

#include <functional>
#include <string>

#include "lowtide/engines/engine.h"

namespace lowtide::engines {

// Searches for the library: in `paths`, then in LOWTIDE_CPSAT or LOWTIDE_HIGHS, then at the offered
// paths, then where pip puts it beside the program, then by its plain name. And for the worker
// program: in `paths`, then in LOWTIDE_WORKER, then at the offered paths, beside the program or
// library that contains this code, then in PATH. The worker opens the library and reports its
// version, which takes half a second the first time, five at most. Results are remembered as long
// as the paths stay the same, a failure for ten seconds. A search ends as soon as `stop` returns
// true, with a missing engine. Any thread.
EngineState find_engine(EngineKind kind, const EnginePaths& paths = {},
                        const std::function<bool()>& stop = {});

// Offers paths that the caller knows, before any search; the Python package does so.
void offer_library(EngineKind kind, std::string path);
void offer_worker(std::string path);

}  // namespace lowtide::engines
