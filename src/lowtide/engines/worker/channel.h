// The worker's end of the line: its standard input, in both directions.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "lowtide/engines/protocol.h"

namespace lowtide::engines {

class Channel {
 public:
  // None if whoever asks is gone, talks nonsense or speaks out of turn.
  std::optional<EngineRequest> receive();
  // Any thread. Ends the process if nobody listens any more.
  void send(const EngineReport& report);
  // From now on the process ends as soon as whoever asked is gone. Once.
  void watch();

 private:
  std::mutex mutex_;
};

}  // namespace lowtide::engines
