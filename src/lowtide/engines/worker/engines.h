// Handle one request. Each opens its library, reports, and returns the last report.
#pragma once

#include "lowtide/engines/worker/channel.h"

namespace lowtide::engines {

EngineReport run_cpsat(const EngineRequest& request, Channel& channel);
EngineReport run_highs(const EngineRequest& request, Channel& channel);

// Opens the library after resolving links, since a link from elsewhere would miss its neighbours;
// null with `why` as the text after its name.
void* open_library(const std::string& path, std::string& why);

}  // namespace lowtide::engines
