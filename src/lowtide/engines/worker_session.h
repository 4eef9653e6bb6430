// Solves with a worker, from the request to the last report. Private to the room.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "lowtide/engines/engine.h"
#include "lowtide/engines/process.h"
#include "lowtide/engines/protocol.h"

namespace lowtide::engines {

// The worker stays from a request with `more` to the next one. A worker that ended, was killed, or
// needs another number of threads is replaced, so its failures affect one request. Not shared
// between threads.
class WorkerSession {
 public:
  explicit WorkerSession(EngineState engine) : engine_(std::move(engine)) {}

  using Take = std::function<std::string(const EngineReport&)>;
  // Sends the request, and passes on every report but the last, whose contents are returned. The
  // worker is killed if `take` rejects a report (returns a sentence instead of ""), if it is silent
  // a second after the time limit, and by `limits.stop`.
  EngineEnd run(const EngineRequest& request, const EngineLimits& limits, const Take& take);

  const EngineState& engine() const { return engine_; }

 private:
  class Conversation;
  EngineState engine_;
  std::unique_ptr<WorkerProcess> worker_;
  std::int64_t threads_ = 0;  // of the worker; an engine sets it once
};

// The request for these limits.
EngineRequest request_for(EngineKind kind, const EngineState& engine, const EngineLimits& limits);

// Adds the reports so far to the result, however the worker ended: a solution, and the best
// reported bound. A claim of a solution without values becomes a failure.
void conclude(EngineEnd& end, EngineKind kind, bool solved, std::optional<double> bound);

}  // namespace lowtide::engines
