// A worker process and the line to it. Private to the room.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace lowtide::engines {

class WorkerProcess {
 public:
  // Starts the program by posix_spawn, in a process group of its own, so that a Ctrl-C at the
  // terminal is not its business. Its standard input is our end of the line, in both directions.
  explicit WorkerProcess(const std::string& program);
  ~WorkerProcess();  // ends it at once
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  bool started() const { return process_ > 0; }
  bool has_ended() const { return process_ <= 0; }
  // What follows its name: why it has not started, or how it ended, once `ended` has been seen.
  const std::string& failure() const { return failure_; }

  enum class Event { message, nothing, ended, nonsense, stopped };
  // Sends a frame of at most kMostFrame bytes; asks `stop` every few milliseconds.
  Event send(std::string_view message, const std::function<bool()>& stop);
  // The next message, or nothing: within so many milliseconds, or because only a part has come.
  Event receive(std::string& message, int milliseconds);
  void end();

 private:
  Event saw_end();

  int process_ = -1, line_ = -1;
  std::string buffer_, failure_;
};

}  // namespace lowtide::engines
