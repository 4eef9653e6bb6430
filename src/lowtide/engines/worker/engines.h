// One request, answered. Each opens its library, reports, and returns the last report.
#pragma once

#include "lowtide/engines/worker/channel.h"

namespace lowtide::engines {

EngineReport run_cpsat(const EngineRequest& request, Channel& channel);
EngineReport run_highs(const EngineRequest& request, Channel& channel);

// The library with links resolved, since opened through a link elsewhere it misses its neighbours;
// null with `why` as what follows its name.
void* open_library(const std::string& path, std::string& why);

}  // namespace lowtide::engines
