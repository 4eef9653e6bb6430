// A worker that misbehaves: LOWTIDE_FAKE says how, LOWTIDE_FAKE_VALUE the number in which it lies
// (1e9 unless set; inf and nan are numbers too). It speaks the protocol by its own means.
#include <cstdlib>
#include <optional>
#include <string>

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lowtide/engines/mip_model.h"
#include "lowtide/engines/protocol.h"
#include "lowtide/engines/wire.h"

namespace {

using lowtide::engines::EngineReport;
using lowtide::engines::EngineRequest;
using lowtide::engines::EngineStatus;

void say(const lowtide::engines::EngineReport& report) {
  const std::string bytes = lowtide::engines::frame(report.encode());
  if (send(0, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) _exit(1);
}

lowtide::engines::EngineReport make(lowtide::engines::EngineReport::Kind kind, double value = 0) {
  lowtide::engines::EngineReport report;
  report.kind = kind;
  report.value = value;
  report.has_bound = true;
  return report;
}

double value() {
  const char* set = std::getenv("LOWTIDE_FAKE_VALUE");
  return set == nullptr ? 1e9 : std::strtod(set, nullptr);
}

// Ends with that claim.
void claim(lowtide::engines::EngineStatus status, std::optional<double> bound = {},
           double effort = 0) {
  lowtide::engines::EngineReport last =
      make(lowtide::engines::EngineReport::done, bound.value_or(0));
  last.has_bound = bound.has_value();
  last.status = status;
  last.effort = effort;
  say(last);
}

lowtide::engines::EngineRequest listen() {
  std::string buffer, message;
  while (lowtide::engines::take_frame(buffer, message) != lowtide::engines::Framed::whole) {
    char chunk[4096];
    const auto got = read(0, chunk, sizeof chunk);
    if (got <= 0) _exit(3);
    buffer.append(chunk, static_cast<std::size_t>(got));
  }
  lowtide::engines::EngineRequest request;
  lowtide::engines::EngineRequest::decode(message, request);
  return request;
}

std::size_t variables(const lowtide::engines::EngineRequest& request) {
  if (request.engine == lowtide::engines::EngineKind::highs) {
    lowtide::engines::MipModel model;
    model.decode(request.model);
    return model.column_count();
  }
  std::size_t count = 0;
  for (lowtide::engines::WireReader in(request.model); in.next();) count += in.field() == 2;
  return count;
}

// Numbers that are none, and claims with nothing to show for them.
void lie(const std::string& how, const lowtide::engines::EngineRequest& request) {
  lowtide::engines::EngineReport solution = make(lowtide::engines::EngineReport::incumbent);
  if (how == "infeasible") claim(lowtide::engines::EngineStatus::infeasible);
  if (how == "bound") claim(lowtide::engines::EngineStatus::optimal, value());
  if (how == "effort") claim(lowtide::engines::EngineStatus::unknown, {}, value());
  if (how == "bound_first" || how == "bound_hang")
    say(make(lowtide::engines::EngineReport::bound, value()));
  if (how == "bound_first") claim(lowtide::engines::EngineStatus::unknown);
  if (how == "objective") {
    say(make(lowtide::engines::EngineReport::objective, value()));
    claim(lowtide::engines::EngineStatus::unknown);
  }
  if (how == "value") {  // of every column
    solution.reals.assign(variables(request), value());
    say(solution);
    claim(lowtide::engines::EngineStatus::feasible);
  }
  if (how == "zeros") {
    solution.numbers.assign(variables(request), 0);
    say(solution);
  }
  if (how.starts_with("zeros") && how.size() > 5) {
    solution.numbers.assign(static_cast<std::size_t>(std::atoi(how.c_str() + 5)), 0);
    say(solution);
  }
  if (how == "size") {
    solution.numbers.assign(request.model.size(), 0);
    say(solution);
  }
  if (how == "liar") {  // gives the start back, and a bound above it
    lowtide::engines::MipModel model;
    model.decode(request.model);
    const auto view = model.view();
    solution.reals.assign(view.cost.size(), 0);
    for (std::size_t i = 0; i < view.start_columns.size(); ++i)
      solution.reals[static_cast<std::size_t>(view.start_columns[i])] = view.start_values[i];
    say(solution);
    claim(lowtide::engines::EngineStatus::optimal, value());
  }
}

// What is no report at all.
void babble(const std::string& how) {
  if (how == "nonsense") send(0, "\xff\xff\xff\xffnonsense", 12, MSG_NOSIGNAL);
  if (how == "noise") {
    const std::string bytes = lowtide::engines::frame("\xff\xff\xff");
    send(0, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  if (how == "flood")
    for (;;) say(make(lowtide::engines::EngineReport::bound, 0));
  if (how == "endless") {  // one frame, slowly, that never comes to its end
    std::string piece =
        lowtide::engines::frame_header(lowtide::engines::kMostFrame) + std::string(4096, 'x');
    while (send(0, piece.data(), piece.size(), MSG_NOSIGNAL) > 0) usleep(1000);
  }
}

// Answers with how many it has been asked, for as long as there may be more.
int serve(const std::string& how, lowtide::engines::EngineRequest request) {
  for (int count = 1;; ++count) {
    if (how == "serve_crash" && count == 2) {
      say(make(lowtide::engines::EngineReport::ready));
      raise(SIGABRT);
    }
    claim(lowtide::engines::EngineStatus::unknown, {}, count);
    if (!request.more || (how == "serve_two" && count == 2)) return 0;
    request = listen();
  }
}

}  // namespace

int main() {
  const char* set = std::getenv("LOWTIDE_FAKE");
  const std::string how = set == nullptr ? "" : set;
  if (how == "deaf") sleep(100);
  const lowtide::engines::EngineRequest request = listen();
  lowtide::engines::EngineReport opened = make(lowtide::engines::EngineReport::opened);
  opened.text = "0.0 (fake)";
  say(opened);
  if (request.probe) {
    say(make(lowtide::engines::EngineReport::done));
    return 0;
  }
  if (how.starts_with("serve")) return serve(how, request);
  if (how == "crash") raise(SIGABRT);
  if (how == "quit") return 7;
  if (how == "hang") sleep(100);
  if (how == "close") {
    close(0);
    sleep(100);
  }
  babble(how);
  lie(how, request);
  sleep(100);
  return 0;
}
