// Solves with a worker, each from the request to the last report. Private to the room.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "lowtide/engines/engine.h"
#include "lowtide/engines/process.h"
#include "lowtide/engines/protocol.h"

namespace lowtide::engines {

// The worker stays from one request that has `more` to the next. One that ended, was ended or would
// need other threads is replaced by a new one, so whatever happens to it costs one request. Not
// shared between threads.
class WorkerSession {
 public:
  explicit WorkerSession(EngineState engine) : engine_(std::move(engine)) {}

  using Take = std::function<std::string(const EngineReport&)>;
  // Sends the request and hands over every report but the last, whose contents are returned. A
  // report that `take` refuses (returns a sentence instead of "") ends the worker, and so do
  // silence a second after the clock and `limits.stop`.
  EngineEnd run(const EngineRequest& request, const EngineLimits& limits, const Take& take);

  const EngineState& engine() const { return engine_; }

 private:
  class Conversation;
  EngineState engine_;
  std::unique_ptr<WorkerProcess> worker_;
  std::int64_t threads_ = 0;  // of the worker, which an engine sets up once
};

// The request that these limits make.
EngineRequest request_for(EngineKind kind, const EngineState& engine, const EngineLimits& limits);

// What has arrived is counted into the end, however the worker ended: a solution, and the best
// bound that was reported. A claim of an answer without a solution becomes a failure.
void conclude(EngineEnd& end, EngineKind kind, bool solved, std::optional<double> bound);

}  // namespace lowtide::engines
