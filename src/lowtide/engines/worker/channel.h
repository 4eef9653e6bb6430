// The worker's end of the connection: its standard input, in both directions.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "lowtide/engines/protocol.h"

namespace lowtide::engines {

class Channel {
 public:
  // nullopt if the library has gone, sends garbage, or sends out of turn.
  std::optional<EngineRequest> receive();
  // Any thread. Ends the process if nobody reads any more.
  void send(const EngineReport& report);
  // From now on the process ends as soon as the library has gone. Once.
  void watch();

 private:
  std::mutex mutex_;
};

}  // namespace lowtide::engines
