// A module of HLO as its text has it. Views point into the text, which must outlive them. Private
// to the room.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/io/hlo/shape.h"

namespace lowtide::io::hlo {

inline constexpr std::uint32_t kNone = UINT32_MAX;

// `name=value` after the operands; both as written, strings in quotes.
struct Attribute {
  std::string_view name, value;
};

// A computation that an instruction calls, and the attribute that names it: "body".
struct Callee {
  std::string_view role;
  std::uint32_t computation = kNone;
};

struct Instruction {
  std::string_view name, opcode;
  Shape shape;
  std::vector<std::uint32_t> operands;  // indices in the computation, all smaller than its own
  std::int64_t parameter = -1;          // the number of a parameter
  std::string_view literal;             // of a constant, as written, in parentheses
  std::vector<Attribute> attributes;
  std::vector<std::uint32_t> control;  // those that must run before; indices as of `operands`
  std::vector<Callee> called;          // in the order of the text
  std::size_t at = 0;                  // the place of its name in the text

  // The value; empty if there is no such attribute.
  std::string_view attribute(std::string_view wanted) const {
    for (const Attribute& one : attributes)
      if (one.name == wanted) return one.value;
    return {};
  }
  // The first computation of that role; kNone if there is none.
  std::uint32_t callee(std::string_view role) const {
    for (const Callee& one : called)
      if (one.role == role) return one.computation;
    return kNone;
  }
};

struct Computation {
  std::string_view name;
  std::vector<Instruction> instructions;  // each after its operands
  std::uint32_t root = 0;
  std::vector<std::uint32_t> parameters;  // by number
  std::size_t at = 0;
};

// Indices of a leaf in nested tuples: {1,0}.
using ShapeIndex = std::vector<std::int64_t>;

// The buffer of a parameter is that of an output.
struct AliasEntry {
  ShapeIndex output;
  std::int64_t parameter = 0;
  ShapeIndex index;  // in the parameter
};

struct Module {
  std::string_view text, name;
  bool scheduled = false;
  std::vector<AliasEntry> aliases;                           // input_output_alias
  std::vector<std::pair<std::int64_t, ShapeIndex>> donated;  // buffer_donor: parameter and index
  std::vector<Computation> computations;
  std::uint32_t entry = 0;

  const Computation& main() const { return computations[entry]; }
};

}  // namespace lowtide::io::hlo
