// The meaning of an op beyond its links: its operands and results as the op itself sees them, and
// its literal arguments. Transforms and equal blocks use these; planning does not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lowtide/base/ids.h"

namespace lowtide {

// A strided view of one tensor's storage. Strides and offset count elements of `dtype`.
struct Operand {
  std::string argument;     // the argument's name in the operator's schema
  std::int64_t index = -1;  // the index in the argument's list; -1 if the argument is no list
  TensorId tensor;
  std::vector<std::int64_t> shape, strides;
  std::int64_t offset = 0;
  std::string dtype;

  bool operator==(const Operand&) const = default;
  // Whether both views have the same elements in the same places, although of different tensors.
  bool laid_out_as(const Operand& other) const;
};

// A literal value of JSON. Floats that JSON cannot write are doubles here too.
struct Literal {
  struct Member;
  using List = std::vector<Literal>;
  using Members = std::vector<Member>;  // {"dtype": "bf16"}
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Members> value;

  bool operator==(const Literal& other) const;
};

struct Literal::Member {
  std::string name;
  Literal value;

  bool operator==(const Member&) const = default;
};

struct Argument {
  std::string name;  // as in the operator's schema
  Literal value;

  bool operator==(const Argument&) const = default;
};

// The bytes of an element of a number type ("bf16"); nullopt for unknown types.
std::optional<std::int64_t> element_bytes(std::string_view dtype);

// The number of elements of the storage that the operand spans: the index of its last element + 1,
// or 0 if it is empty. nullopt if a stride is negative, if the result exceeds 63 bits, or if the
// numbers of strides and extents differ.
std::optional<std::int64_t> reach_of(const Operand& operand);

}  // namespace lowtide
