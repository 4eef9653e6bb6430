// What is known of the opcodes of HLO. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lowtide::io::hlo {

enum class OpcodeKind : std::uint8_t {
  elementwise,  // an operation for each number of the result
  movement,     // bytes alone
  view,         // the result is the storage of its operands
  counted,      // operations.cpp has a formula
  collective,   // bytes over the link between devices
  effect,       // must not run twice
  control,      // runs computations: while, call, conditional
  unknown
};

struct Opcode {
  std::string_view name;
  OpcodeKind kind = OpcodeKind::unknown;
  std::size_t least = 0, most = SIZE_MAX;  // operands
};

// The entry of the table, or one of kind `unknown` that takes any operands.
const Opcode& opcode_of(std::string_view name);

// The part of an opcode before "-start", "-update" or "-done": "all-gather"; empty if it has none
// of these. `copy-start` begins what its `copy-done` ends.
enum class AsyncPart : std::uint8_t { none, start, update, done };
struct AsyncOpcode {
  AsyncPart part = AsyncPart::none;
  std::string_view wrapped;
};
AsyncOpcode async_of(std::string_view opcode);

// What a "-start" begins, as `fusion` of `fusion-start`; any other opcode itself.
std::string_view begun(std::string_view opcode);

}  // namespace lowtide::io::hlo
