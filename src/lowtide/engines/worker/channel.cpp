// Plain blocking reads and writes: the worker has nothing else to do.
#include "lowtide/engines/worker/channel.h"

#include <cerrno>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lowtide::engines {

std::optional<EngineRequest> Channel::receive() {
  std::string buffer, message;
  for (;;) {
    if (const Framed framed = take_frame(buffer, message); framed == Framed::whole)
      break;
    else if (framed == Framed::nonsense)
      return std::nullopt;
    char chunk[1 << 16];
    const auto got = read(0, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    buffer.append(chunk, static_cast<std::size_t>(got));
  }
  EngineRequest request;
  if (!EngineRequest::decode(message, request)) return std::nullopt;
  return request;
}

void Channel::send(const EngineReport& report) {
  const std::string bytes = frame(report.encode());
  const std::scoped_lock lock(mutex_);
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const auto sent = ::send(0, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) _exit(1);
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void Channel::watch() {
  std::thread([] {
    // This thread must not read another request, which may come.
    pollfd line{0, POLLRDHUP, 0};
    while (poll(&line, 1, -1) < 0 && errno == EINTR) {
    }
    _exit(1);
  }).detach();
}

}  // namespace lowtide::engines
