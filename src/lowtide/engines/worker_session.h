// One solve with a worker, from the request to the last report. Private to the room.
#pragma once

#include <functional>
#include <optional>

#include "lowtide/engines/engine.h"
#include "lowtide/engines/protocol.h"

namespace lowtide::engines {

// Sends the request and hands over every report but the last, whose contents are returned. A report
// that `take` refuses (returns a sentence instead of "") ends the worker, and so do silence a
// second after the clock and `limits.stop`.
EngineEnd run_session(const EngineState& engine, const EngineRequest& request,
                      const EngineLimits& limits,
                      const std::function<std::string(const EngineReport&)>& take);

// The request that these limits make.
EngineRequest request_for(EngineKind kind, const EngineState& engine, const EngineLimits& limits);

// What has arrived is counted into the end, however the worker ended: a solution, and the best
// bound that was reported. A claim of an answer without a solution becomes a failure.
void conclude(EngineEnd& end, EngineKind kind, bool solved, std::optional<double> bound);

}  // namespace lowtide::engines
