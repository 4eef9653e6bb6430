// A computation on the way to a graph: the draft, and which tensors each instruction's result is.
// Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/io/hlo/draft.h"
#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// An array as an instruction sees it. `wait`: an op without outputs that must run before any that
// reads it, or -1.
struct Leaf {
  TensorIndex tensor;
  OpIndex wait = -1;
};

// A run of leaves: the arrays of a result, in order.
struct Value {
  std::uint32_t first = 0, count = 0;
};

class Body {
 public:
  Body(std::string_view text, const Computation& within)
      : text_(text),
        within_(within),
        values_(within.instructions.size()),
        op_of_(within.instructions.size(), -1) {}

  Draft draft;

  const Computation& within() const { return within_; }
  // InputError for the instruction.
  [[noreturn]] void refuse(const Instruction& one, const std::string& reason) const;

  std::span<Leaf> leaves(Value value) {
    return std::span(leaves_).subspan(value.first, value.count);
  }
  Value value(std::uint32_t instruction) const { return values_[instruction]; }
  Value operand(const Instruction& one, std::size_t slot) const {
    return values_[one.operands[slot]];
  }
  const Shape& operand_shape(const Instruction& one, std::size_t slot) const {
    return within_.instructions[one.operands[slot]].shape;
  }
  void set_value(std::uint32_t instruction, Value value) { values_[instruction] = value; }

  // Leaves for the arrays of the instruction: new tensors, but where passes(leaf) points to a leaf,
  // that one.
  using Passes = std::function<const Leaf*(std::size_t)>;
  Value add_leaves(const Instruction& one, Role role, const Passes& passes = {});
  Value add_leaves(std::span<const Leaf> leaves);
  // The leaves of values one after the other; a copy.
  Value copy_of(Value value);
  Value all_operands(const Instruction& one);

  // Ops that must come before the instruction beside the producers of its operands.
  std::vector<std::int64_t> waits(const Instruction& one);
  // Appends an op that reads all operands and makes those leaves of `result` that none of them is.
  OpIndex add_op(std::uint32_t instruction, Op op, Value result, Overwrites over);
  // Appends an op without outputs that reads the operands if `reads`, and comes after what the
  // instruction waits for. The leaves of `value` wait for it.
  void add_wait(std::uint32_t instruction, Op op, Value value, bool reads);

  // The tensors of the chosen operands that none of the other operands has.
  std::vector<TensorIndex> tensors_of(const Instruction& one, const std::vector<bool>& chosen);

 private:
  OpIndex op_of(std::uint32_t instruction);
  void add_inputs(const Instruction& one, OpLinks& links);

  std::string_view text_;
  const Computation& within_;
  std::vector<Leaf> leaves_;
  std::vector<Value> values_;               // by instruction
  std::vector<OpIndex> op_of_;              // by instruction; -1: none
  std::vector<OpIndex> seen_by_, kept_by_;  // by tensor: the last op that reads it, that keeps it
  std::size_t links_ = 0;
};

}  // namespace lowtide::io::hlo
