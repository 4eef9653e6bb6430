// What a file of a graph holds, and what may be chosen when it is read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/device/device.h"
#include "lowtide/graph/graph.h"

namespace lowtide::io {

// Choices for HLO text, which says neither how long an instruction takes nor where an output lies
// before it is computed.
struct HloOptions {
  // Prices the instructions; absent: kHloDevice.
  std::optional<Device> device = std::nullopt;
  // Outputs take their bytes from the start to the end, as in XLA's totals.
  bool outputs_from_start = false;
};
inline constexpr std::string_view kHloDevice = "a100";

struct GraphFile {
  Graph graph;
  std::vector<std::string> warnings;  // whole sentences, without the file's name
};

}  // namespace lowtide::io
