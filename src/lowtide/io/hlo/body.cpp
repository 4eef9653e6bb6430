#include "lowtide/io/hlo/body.h"

#include <algorithm>
#include <utility>

#include "lowtide/io/hlo/cursor.h"
#include "lowtide/io/hlo/describe.h"
#include "lowtide/io/reader_support.h"

namespace lowtide::io::hlo {

namespace {

// A file of a few megabytes can ask for more links than memory holds.
constexpr std::size_t kMostLinks = std::size_t{1} << 26;

void sort_out(std::vector<std::int64_t>& ops) {
  std::ranges::sort(ops);
  const auto repeated = std::ranges::unique(ops);
  ops.erase(repeated.begin(), repeated.end());
}

}  // namespace

void Body::refuse(const Instruction& one, const std::string& reason) const {
  Cursor(text_).refuse_at(one.at, "instruction " + quoted(one.name) + ": " + reason);
}

Value Body::add_leaves(const Instruction& one, Role role, const Passes& passes) {
  Value value{static_cast<std::uint32_t>(leaves_.size()), 0};
  for_each_named_leaf(one.name, one.shape, [&](std::string name, const Shape& leaf) {
    const Leaf* passed = passes ? passes(value.count) : nullptr;
    ++value.count;
    if (passed != nullptr) {
      const Leaf same = *passed;  // of leaves_, which grows
      leaves_.push_back(same);
      return;
    }
    const bool takes_none = leaf.space == kHostSpace || role == Role::constant;
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.bytes = takes_none ? Bytes(0) : leaf.bytes;
    tensor.role = role;
    tensor.shape = leaf.dims;
    tensor.dtype = leaf.type->dtype;
    leaves_.push_back({draft.add_tensor(std::move(tensor))});
  });
  return value;
}

Value Body::add_leaves(std::span<const Leaf> leaves) {
  const auto first = static_cast<std::uint32_t>(leaves_.size());
  leaves_.insert(leaves_.end(), leaves.begin(), leaves.end());
  return {first, static_cast<std::uint32_t>(leaves.size())};
}

Value Body::copy_of(Value value) {
  const auto first = static_cast<std::uint32_t>(leaves_.size());
  for (std::uint32_t i = 0; i < value.count; ++i) {
    const Leaf leaf = leaves_[value.first + i];
    leaves_.push_back(leaf);
  }
  return {first, value.count};
}

Value Body::all_operands(const Instruction& one) {
  if (one.operands.size() == 1) return values_[one.operands[0]];
  Value all{static_cast<std::uint32_t>(leaves_.size()), 0};
  for (const std::uint32_t operand : one.operands) all.count += copy_of(values_[operand]).count;
  return all;
}

// The op that stands for an instruction as a predecessor. If it has none, it gets one that only
// comes after what makes its arrays.
OpIndex Body::op_of(std::uint32_t instruction) {
  OpIndex& known = op_of_[instruction];
  if (known >= 0) return known;
  const Instruction& one = within_.instructions[instruction];
  OpLinks links;
  for (const Leaf& leaf : leaves(values_[instruction])) {
    const OpIndex producer = draft.producers[index(leaf.tensor)];
    if (producer >= 0) links.after.push_back(producer);
    if (leaf.wait >= 0) links.after.push_back(leaf.wait);
  }
  sort_out(links.after);
  Op op = describe(one, 0);
  op.recomputable = false;
  return known = draft.add_op(std::move(op), std::move(links), {}, one.at);
}

std::vector<std::int64_t> Body::waits(const Instruction& one) {
  std::vector<std::int64_t> after;
  after.reserve(one.control.size());
  for (const std::uint32_t before : one.control) after.push_back(op_of(before));
  for (const std::uint32_t operand : one.operands)
    for (const Leaf& leaf : leaves(values_[operand]))
      if (leaf.wait >= 0) after.push_back(leaf.wait);
  sort_out(after);
  return after;
}

void Body::add_inputs(const Instruction& one, OpLinks& links) {
  const auto op = static_cast<OpIndex>(draft.ops.size());
  seen_by_.resize(draft.tensors.size(), -1);
  for (const std::uint32_t operand : one.operands)
    for (const Leaf& leaf : leaves(values_[operand])) {
      OpIndex& seen = seen_by_[index(leaf.tensor)];
      if (seen != op) links.inputs.push_back(leaf.tensor);
      seen = op;
    }
  links_ += links.inputs.size() + links.after.size();
  if (links_ > kMostLinks)
    refuse(one, "its computation has more than " + std::to_string(kMostLinks) +
                    " operands; read arrays from a tuple where they are used");
}

OpIndex Body::add_op(std::uint32_t instruction, Op op, Value result, Overwrites over) {
  const Instruction& one = within_.instructions[instruction];
  OpLinks links;
  links.after = waits(one);
  add_inputs(one, links);
  const auto added = static_cast<OpIndex>(draft.ops.size());
  for (const Leaf& leaf : leaves(result)) {
    OpIndex& seen = seen_by_[index(leaf.tensor)];
    if (seen != added) links.outputs.push_back(leaf.tensor);
    seen = added;
  }
  return op_of_[instruction] =
             draft.add_op(std::move(op), std::move(links), std::move(over), one.at);
}

void Body::add_wait(std::uint32_t instruction, Op op, Value value, bool reads) {
  const Instruction& one = within_.instructions[instruction];
  OpLinks links;
  links.after = waits(one);
  if (reads) add_inputs(one, links);
  const OpIndex added = draft.add_op(std::move(op), std::move(links), {}, one.at);
  op_of_[instruction] = added;
  for (Leaf& leaf : leaves(value)) leaf.wait = added;
}

std::vector<TensorIndex> Body::tensors_of(const Instruction& one, const std::vector<bool>& chosen) {
  std::vector<TensorIndex> tensors;
  const auto op = static_cast<OpIndex>(draft.ops.size());
  kept_by_.resize(draft.tensors.size(), -1);
  for (const bool wanted : {false, true})
    for (std::size_t slot = 0; slot < chosen.size(); ++slot) {
      if (chosen[slot] != wanted) continue;
      for (const Leaf& leaf : leaves(operand(one, slot))) {
        OpIndex& kept = kept_by_[index(leaf.tensor)];
        if (wanted && kept != op) tensors.push_back(leaf.tensor);
        kept = op;
      }
    }
  return tensors;
}

}  // namespace lowtide::io::hlo
