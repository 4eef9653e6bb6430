// What the computations of a module do when they run once, as fusions and prices need it. Private
// to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

struct Inside {
  std::int64_t operations = 0;
  // False if it draws random numbers, talks to other devices or has another effect.
  bool repeatable = true;
  // For each parameter: the bytes of it that are read (slices, where only slices are), and whether
  // the result can be written over it: each number is read for the number in its place alone.
  std::vector<std::int64_t> read;
  std::vector<bool> over;
  // The bytes that are written of its result: of an update in place, those of the update.
  std::int64_t written = 0;
};

// For each computation of the module. `order`: callees first. InputError (place: the instruction)
// beyond 63 bits.
std::vector<Inside> look_inside(const Module& module, const std::vector<std::uint32_t>& order);

// What one instruction does: operations, and bytes moved. Those of control (while, call,
// conditional) are 0: they depend on how often what they call runs.
struct Work {
  std::int64_t operations = 0, bytes = 0;
};
Work work_of(const Computation& within, const Instruction& instruction,
             const std::vector<Inside>& inside);

// Whether running it twice does what running it once does.
bool is_repeatable(const Instruction& instruction, const std::vector<Inside>& inside);

}  // namespace lowtide::io::hlo
