// A socket pair instead of two pipes: writing to a dead worker is then an error, and not a signal
// that would end this process.
#include "lowtide/engines/process.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lowtide/engines/protocol.h"

extern char** environ;

namespace lowtide::engines {

namespace {

constexpr int kPollMs = 5;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 16;  // bytes between two polls of `stop`

// A killed process takes a while to return its memory; nothing waits for that.
class Reaper {
 public:
  void take(pid_t process) {
    const std::scoped_lock lock(mutex_);
    left_.push_back(process);
    std::erase_if(left_, [](pid_t p) { return waitpid(p, nullptr, WNOHANG) != 0; });
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> left_;
};

Reaper& reaper() {
  static Reaper the_one;
  return the_one;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "crashed (" + std::string(strsignal(WTERMSIG(status))) + ")";
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    return "ended with status " + std::to_string(WEXITSTATUS(status));
  return "ended without an answer";
}

}  // namespace

WorkerProcess::WorkerProcess(const std::string& program) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    failure_ = std::string("cannot be talked to: ") + std::strerror(errno);
    return;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::string name = program;
  char* const arguments[] = {name.data(), nullptr};
  const int error =
      posix_spawn(&process_, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  line_ = ends[0];
  fcntl(line_, F_SETFL, O_NONBLOCK);
  if (error != 0) {
    process_ = -1;
    failure_ = std::string("cannot be started: ") + std::strerror(error);
  }
}

WorkerProcess::~WorkerProcess() { end(); }

void WorkerProcess::end() {
  if (line_ >= 0) close(line_);
  line_ = -1;
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  reaper().take(process_);
  process_ = -1;
}

WorkerProcess::Event WorkerProcess::saw_end() {
  int status = 0;
  // The connection is closed, so the process is about to end; one that closes it and stays is
  // killed.
  pid_t gone = 0;
  for (int tries = 0; tries < 20 && gone == 0; ++tries) {
    gone = waitpid(process_, &status, WNOHANG);
    if (gone == 0) poll(nullptr, 0, kPollMs);
  }
  if (gone == process_) {
    process_ = -1;
    failure_ = how_it_ended(status);
  } else {
    failure_ = "closed its line";
  }
  end();
  return Event::ended;
}

WorkerProcess::Event WorkerProcess::send(std::string_view message,
                                         const std::function<bool()>& stop) {
  // In pieces, since a model can be large.
  const std::string header = frame_header(message.size());
  for (std::string_view rest : {std::string_view(header), message})
    while (!rest.empty()) {
      if (stop && stop()) return Event::stopped;
      const auto sent =
          ::send(line_, rest.data(), std::min(rest.size(), kMostAtOnce), MSG_NOSIGNAL);
      if (sent > 0) {
        rest.remove_prefix(static_cast<std::size_t>(sent));
        continue;
      }
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return saw_end();
      pollfd waiting{line_, POLLOUT, 0};
      poll(&waiting, 1, kPollMs);
    }
  return Event::message;
}

WorkerProcess::Event WorkerProcess::receive(std::string& message, int milliseconds) {
  const auto framed = [&] {
    switch (take_frame(buffer_, message)) {
      case Framed::whole: return Event::message;
      case Framed::nonsense: return Event::nonsense;
      case Framed::none: break;
    }
    return Event::nothing;
  };
  if (const Event event = framed(); event != Event::nothing) return event;
  pollfd waiting{line_, POLLIN, 0};
  if (poll(&waiting, 1, milliseconds) <= 0) return Event::nothing;
  char chunk[kMostAtOnce];
  const auto got = recv(line_, chunk, sizeof chunk, 0);
  if (got > 0) {
    buffer_.append(chunk, static_cast<std::size_t>(got));
    return framed();
  }
  if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return saw_end();
  return Event::nothing;
}

}  // namespace lowtide::engines
