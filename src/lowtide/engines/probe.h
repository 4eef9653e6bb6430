// Tries to open a library in the worker. Private to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lowtide/engines/engine.h"

namespace lowtide::engines {

struct Probe {
  enum class End : std::uint8_t {
    found,    // `text` is the version
    refused,  // by the library; `text` follows its name in the message
    hung,     // while it was opened; likewise
    worker,   // the worker fails; `text` follows its name in the message
    stopped   // by `stop`
  };
  End end = End::stopped;
  std::string text;
};

// Takes at most five seconds: from a cold disk libortools takes one. Polls `stop` every few
// milliseconds.
Probe probe(EngineKind kind, const EnginePaths& paths, const std::function<bool()>& stop);

}  // namespace lowtide::engines
