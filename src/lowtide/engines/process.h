// A worker process, and the connection to it. Private to the room.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace lowtide::engines {

class WorkerProcess {
 public:
  // Starts the program by posix_spawn, in a process group of its own, so that a Ctrl-C at the
  // terminal does not reach it. Its standard input is the connection, in both directions.
  explicit WorkerProcess(const std::string& program);
  ~WorkerProcess();  // ends it at once
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  bool started() const { return process_ > 0; }
  bool has_ended() const { return process_ <= 0; }
  // The text after its name in a message: why it has not started, or how it ended (valid after
  // `ended`).
  const std::string& failure() const { return failure_; }

  enum class Event { message, nothing, ended, nonsense, stopped };
  // Sends a frame of at most kMostFrame bytes; polls `stop` every few milliseconds.
  Event send(std::string_view message, const std::function<bool()>& stop);
  // The next message; nullopt after so many milliseconds, or if only a part has arrived.
  Event receive(std::string& message, int milliseconds);
  void end();

 private:
  Event saw_end();

  int process_ = -1, line_ = -1;
  std::string buffer_, failure_;
};

}  // namespace lowtide::engines
