// One look at a library, in the worker. Private to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lowtide/engines/engine.h"

namespace lowtide::engines {

struct Probe {
  enum class End : std::uint8_t {
    found,    // `text` is the version
    refused,  // by the library; `text` is what follows its name
    hung,     // in opening it; likewise
    worker,   // fails; `text` is what follows the worker's name
    stopped   // by `stop`
  };
  End end = End::stopped;
  std::string text;
};

// At most five seconds: from a cold disk libortools takes one. Asks `stop` every few milliseconds.
Probe probe(EngineKind kind, const EnginePaths& paths, const std::function<bool()>& stop);

}  // namespace lowtide::engines
