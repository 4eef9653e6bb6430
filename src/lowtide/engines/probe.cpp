// The worker reports that it is ready before it opens the library, so that a failure is attributed
// correctly.
#include "lowtide/engines/probe.h"

#include <chrono>
#include <filesystem>
#include <system_error>

#include "lowtide/engines/process.h"
#include "lowtide/engines/protocol.h"

namespace lowtide::engines {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSilence = std::chrono::seconds(3);  // of the worker
constexpr auto kOpening = std::chrono::seconds(5);
constexpr int kPollMs = 5;

}  // namespace

Probe probe(EngineKind kind, const EnginePaths& paths, const std::function<bool()>& stop) {
  using End = Probe::End;
  using Event = WorkerProcess::Event;
  std::error_code error;
  if (paths.library.find('/') != std::string::npos &&
      !std::filesystem::is_regular_file(paths.library, error))
    return {End::refused, "cannot be opened: " + (error ? error.message() : "no file")};

  const auto begin = Clock::now();
  WorkerProcess worker(paths.worker);
  if (!worker.started()) return {End::worker, worker.failure()};
  EngineRequest request;
  request.probe = true;
  request.engine = kind;
  request.library = paths.library;
  bool ready = false;
  std::string message, version;
  EngineReport report;
  // Such a short message is accepted at once or never.
  Event event = worker.send(request.encode(), stop);
  while (event != Event::ended) {
    if (stop && stop()) return {};
    const auto passed = Clock::now() - begin;
    if (!ready && passed > kSilence) return {End::worker, "does not answer"};
    if (passed > kOpening) return {End::hung, "cannot be opened within 5 seconds"};
    event = worker.receive(message, kPollMs);
    if (event == Event::nonsense ||
        (event == Event::message && !EngineReport::decode(message, report)))
      return {End::worker, "talks nonsense"};
    if (event != Event::message) continue;
    ready = true;
    if (report.kind == EngineReport::opened) version = report.text;
    if (report.kind == EngineReport::done) return {End::found, version};
    if (report.kind == EngineReport::failed) return {End::refused, report.text};
  }
  if (!ready) return {End::worker, worker.failure()};
  return {End::refused, "cannot be opened: the worker " + worker.failure()};
}

}  // namespace lowtide::engines
