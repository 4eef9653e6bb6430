// Whether an engine is on this machine, and where.
#pragma once

#include <functional>
#include <string>

#include "lowtide/engines/engine.h"

namespace lowtide::engines {

// Looks for the library: `paths`, then LOWTIDE_CPSAT or LOWTIDE_HIGHS, then what was offered, then
// where pip puts it beside the program, then the plain name; and for the program that it runs in:
// `paths`, then LOWTIDE_WORKER, then what was offered, beside the program or library that this code
// is part of, then PATH. The worker opens the library and says its version, half a second the first
// time, five at most. What was found is remembered for as long as the paths stay the same, a
// failure for ten seconds. A look ends as soon as `stop` says so, with an engine that is missing.
// Any thread.
EngineState find_engine(EngineKind kind, const EnginePaths& paths = {},
                        const std::function<bool()>& stop = {});

// Where one may be, for whoever knows before it is looked for; the Python package does.
void offer_library(EngineKind kind, std::string path);
void offer_worker(std::string path);

}  // namespace lowtide::engines
