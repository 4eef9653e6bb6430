// A worker that misbehaves: LOWTIDE_FAKE says how. It speaks the protocol by its own means.
#include <cstdlib>
#include <string>

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lowtide/engines/mip_model.h"
#include "lowtide/engines/protocol.h"
#include "lowtide/engines/wire.h"

namespace {

using lowtide::Report;
using lowtide::Request;

void say(const Report& report) {
  const std::string bytes = lowtide::frame(report.encode());
  send(0, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

Report make(Report::Kind kind, double value = 0) {
  Report report;
  report.kind = kind;
  report.value = value;
  report.has_bound = true;
  return report;
}

Request listen() {
  std::string buffer, message;
  while (lowtide::take_frame(buffer, message) != lowtide::Framed::whole) {
    char chunk[4096];
    const auto got = read(0, chunk, sizeof chunk);
    if (got <= 0) _exit(3);
    buffer.append(chunk, static_cast<std::size_t>(got));
  }
  Request request;
  Request::decode(message, request);
  return request;
}

}  // namespace

int main() {
  const char* set = std::getenv("LOWTIDE_FAKE");
  const std::string how = set == nullptr ? "" : set;
  if (how == "deaf") sleep(100);
  const Request request = listen();
  Report opened = make(Report::opened);
  opened.text = "0.0 (fake)";
  say(opened);
  if (request.probe) {
    say(make(Report::done));
    return 0;
  }
  Report solution = make(Report::incumbent);
  solution.numbers.assign(request.model.size(), 0);
  if (how == "crash") raise(SIGABRT);
  if (how == "quit") return 7;
  if (how == "hang") sleep(100);
  if (how == "close") {
    close(0);
    sleep(100);
  }
  if (how == "nonsense") send(0, "\xff\xff\xff\xffnonsense", 12, MSG_NOSIGNAL);
  if (how == "noise") {
    const std::string bytes = lowtide::frame("\xff\xff\xff");
    send(0, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  if (how == "size") say(solution);
  if (how == "infeasible") {
    Report last = make(Report::done);
    last.status = lowtide::EngineStatus::infeasible;
    last.has_bound = false;
    say(last);
  }
  if (how == "zeros") {
    solution.numbers.clear();
    for (lowtide::WireReader in(request.model); in.next();)
      if (in.field() == 2) solution.numbers.push_back(0);
    say(solution);
  }
  if (how == "liar") {  // gives the start back, and a bound above it
    lowtide::MipModel model;
    model.decode(request.model);
    const auto view = model.view();
    solution.numbers.clear();
    solution.reals.assign(view.cost.size(), 0);
    for (std::size_t i = 0; i < view.start_columns.size(); ++i)
      solution.reals[static_cast<std::size_t>(view.start_columns[i])] = view.start_values[i];
    say(solution);
    Report last = make(Report::done, 1e9);
    last.status = lowtide::EngineStatus::optimal;
    say(last);
  }
  if (how.starts_with("zeros") && how.size() > 5) {
    solution.numbers.assign(static_cast<std::size_t>(std::atoi(how.c_str() + 5)), 0);
    say(solution);
  }
  if (how == "bound") {
    Report last = make(Report::done, 1e9);
    last.status = lowtide::EngineStatus::optimal;
    say(last);
  }
  sleep(100);
  return 0;
}
