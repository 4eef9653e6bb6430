// What an op does, beyond the tensors that it links: its operands and results as the op itself
// sees them, and its literal arguments. Planning needs none of it; transforms and equal blocks do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lowtide/base/ids.h"

namespace lowtide {

// A strided part of one tensor's storage. Strides and offset count elements of `dtype`.
struct Operand {
  std::string argument;     // its name in the operator's schema
  std::int64_t index = -1;  // its place where that argument is a list; -1 where it is none
  TensorId tensor;
  std::vector<std::int64_t> shape, strides;
  std::int64_t offset = 0;
  std::string dtype;

  bool operator==(const Operand&) const = default;
  // The same elements in the same places: of two tensors, either could stand for the other.
  bool laid_out_as(const Operand& other) const;
};

// A literal value, as JSON has them. Floats that JSON cannot write are doubles here too.
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
  std::string name;  // in the operator's schema
  Literal value;

  bool operator==(const Argument&) const = default;
};

// Of a number type by its name ("bf16"); nothing for names that are not known.
std::optional<std::int64_t> element_bytes(std::string_view dtype);

// How many elements of a storage the operand spans: one more than the index of the last that it
// reaches, 0 if it has none. Nothing if a stride is negative or leads beyond 63 bits, or if there
// is not one for each extent.
std::optional<std::int64_t> reach_of(const Operand& operand);

}  // namespace lowtide
