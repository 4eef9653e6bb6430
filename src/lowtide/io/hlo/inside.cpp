// A fusion reads each parameter once and writes its result once, whatever happens between; where
// it reads only slices of a parameter, or updates a part of one, only those bytes move.
#include "lowtide/io/hlo/inside.h"

#include <algorithm>
#include <string_view>

#include "lowtide/base/units.h"
#include "lowtide/io/hlo/async.h"
#include "lowtide/io/hlo/counts.h"
#include "lowtide/io/hlo/cursor.h"
#include "lowtide/io/hlo/opcode.h"
#include "lowtide/io/hlo/operations.h"
#include "lowtide/io/reader_support.h"

namespace lowtide::io::hlo {

namespace {

std::int64_t bytes_of(const Shape& shape) {
  std::int64_t all = 0;
  for_each_leaf(shape, [&](const Shape& leaf) { all = sum(all, leaf.bytes.count()); });
  return all;
}

bool is_fusion(const Instruction& one) {
  return begun(one.opcode) == "fusion" && one.callee("calls") != kNone;
}

bool takes_slices(std::string_view opcode) {
  return opcode == "dynamic-slice" || opcode == "slice" || opcode == "gather";
}
bool updates(std::string_view opcode) {
  return opcode == "dynamic-update-slice" || opcode == "scatter";
}

// How many of the first operands are updated in place.
std::size_t updated(const Instruction& one) {
  return one.opcode == "scatter" ? (one.operands.size() - 1) / 2 : 1;
}

class Looker {
 public:
  Looker(const Module& module, const Computation& within, const std::vector<Inside>& inside)
      : text_(module.text),
        within_(within),
        inside_(inside),
        over_(within.instructions.size(), true),
        update_of_(within.instructions.size(), kNone) {
    find_results();
  }

  Inside look() {
    Inside found;
    found.read.assign(within_.parameters.size(), 0);
    for (const Instruction& one : within_.instructions) add(one, found);
    std::vector<std::int64_t> read(within_.instructions.size(), 0);
    for (std::size_t i = within_.instructions.size(); i-- > 0;) look_at(i, read);
    for (const std::uint32_t parameter : within_.parameters) {
      const auto number = static_cast<std::size_t>(within_.instructions[parameter].parameter);
      found.read[number] =
          std::min(read[parameter], bytes_of(within_.instructions[parameter].shape));
      found.over.push_back(over_[parameter]);
    }
    for (const std::uint32_t result : results_)
      found.written = capped_sum(found.written, written_by(within_.instructions[result]));
    return found;
  }

 private:
  void add(const Instruction& one, Inside& found) const {
    try {
      (void)bytes_of(one.shape);  // must fit
      found.operations = sum(found.operations, work_of(within_, one, inside_).operations);
    } catch (const OverflowError&) {
      Cursor(text_).refuse_at(one.at, "instruction " + quoted(one.name) +
                                          ": its bytes or its operations, or those of its "
                                          "computation so far, do not fit into 63 bits");
    }
    found.repeatable = found.repeatable && is_repeatable(one, inside_);
  }

  // Hands what is read of the instruction's result, and whether it may be overwritten, on to its
  // operands. All that use it have been seen.
  void look_at(std::size_t at, std::vector<std::int64_t>& read) {
    const Instruction& one = within_.instructions[at];
    const OpcodeKind kind = opcode_of(one.opcode).kind;
    for (std::size_t slot = 0; slot < one.operands.size(); ++slot) {
      const std::uint32_t operand = one.operands[slot];
      const std::int64_t whole = bytes_of(within_.instructions[operand].shape);
      const bool first = slot == 0;
      bool passes = false;
      std::int64_t taken = whole;
      if (kind == OpcodeKind::view) {
        passes = over_[at] && one.opcode != "bitcast";
        taken = at == within_.root || one.opcode == "tuple" ? whole : read[at];
      } else if (takes_slices(one.opcode) && first) {
        passes = one.opcode == "dynamic-slice" && is_where_updated(one);
        taken = bytes_of(one.shape);
      } else if (updates(one.opcode) && slot < updated(one)) {
        passes = over_[at];
        taken = 0;
      } else if (kind == OpcodeKind::elementwise || one.opcode == "copy") {
        passes = over_[at] && same_places(within_.instructions[operand].shape, one.shape);
      }
      over_[operand] = over_[operand] && passes;
      read[operand] = capped_sum(read[operand], taken);
    }
  }

  // Whether a slice is read from where its source is updated afterwards.
  bool is_where_updated(const Instruction& slice) const {
    const std::uint32_t update = update_of_[slice.operands[0]];
    if (update == kNone) return false;
    const auto& operands = within_.instructions[update].operands;
    return std::equal(slice.operands.begin() + 1, slice.operands.end(), operands.begin() + 2,
                      operands.end());
  }

  // The instructions whose results are those of the computation; bitcasts are looked through.
  void find_results() {
    std::vector<std::uint32_t> behind(within_.instructions.size());
    for (std::uint32_t i = 0; i < behind.size(); ++i) {
      const Instruction& one = within_.instructions[i];
      behind[i] = one.opcode == "bitcast" ? behind[one.operands[0]] : i;
    }
    const Instruction& root = within_.instructions[within_.root];
    if (root.opcode == "tuple") {
      for (const std::uint32_t operand : root.operands) results_.push_back(behind[operand]);
    } else {
      results_.push_back(behind[within_.root]);
    }
    for (const std::uint32_t result : results_) {
      const Instruction& one = within_.instructions[result];
      if (one.opcode == "dynamic-update-slice") update_of_[one.operands[0]] = result;
    }
  }
  std::int64_t written_by(const Instruction& one) const {
    if (!updates(one.opcode)) return bytes_of(one.shape);
    return bytes_of(within_.instructions[one.operands[updated(one)]].shape);
  }

  const std::string_view text_;
  const Computation& within_;
  const std::vector<Inside>& inside_;
  std::vector<bool> over_;  // by instruction: whether the result can be written over it
  std::vector<std::uint32_t> results_;
  std::vector<std::uint32_t> update_of_;  // by instruction: a result that updates a slice of it
};

std::int64_t moved(const Computation& within, const Instruction& one,
                   const std::vector<Inside>& inside) {
  const auto operand = [&](std::size_t at) {
    return bytes_of(within.instructions[one.operands[at]].shape);
  };
  const Shape& made = made_shape(one);
  std::int64_t all = 0;
  if (is_fusion(one)) {
    const Inside& fused = inside[one.callee("calls")];
    for (const std::int64_t read : fused.read) all = sum(all, read);
    return sum(all, fused.written);
  }
  if (takes_slices(one.opcode)) {
    all = sum(bytes_of(made), bytes_of(made));
    return one.opcode == "gather" ? sum(all, operand(1)) : all;
  }
  const std::size_t first = updates(one.opcode) ? updated(one) : 0;
  for (std::size_t i = first; i < one.operands.size(); ++i) all = sum(all, operand(i));
  return sum(all, updates(one.opcode) ? operand(first) : bytes_of(made));
}

}  // namespace

std::vector<Inside> look_inside(const Module& module, const std::vector<std::uint32_t>& order) {
  std::vector<Inside> inside(module.computations.size());
  for (const std::uint32_t computation : order)
    inside[computation] = Looker(module, module.computations[computation], inside).look();
  return inside;
}

Work work_of(const Computation& within, const Instruction& instruction,
             const std::vector<Inside>& inside) {
  const OpcodeKind kind = opcode_of(instruction.opcode).kind;
  const bool is_free = kind == OpcodeKind::view || kind == OpcodeKind::control ||
                       instruction.parameter >= 0 || instruction.opcode == "constant" ||
                       async_of(instruction.opcode).part == AsyncPart::done ||
                       async_of(instruction.opcode).part == AsyncPart::update;
  if (is_free) return {};
  Work work;
  work.operations = is_fusion(instruction) ? inside[instruction.callee("calls")].operations
                                           : operations_of(within, instruction);
  work.bytes = moved(within, instruction, inside);
  return work;
}

bool is_repeatable(const Instruction& instruction, const std::vector<Inside>& inside) {
  const auto is_effect = [](OpcodeKind kind) {
    return kind == OpcodeKind::effect || kind == OpcodeKind::collective;
  };
  if (is_effect(opcode_of(instruction.opcode).kind)) return false;
  const AsyncOpcode async = async_of(instruction.opcode);
  if (async.part != AsyncPart::none) return false;
  if (instruction.attribute("custom_call_has_side_effect") == "true") return false;
  return std::ranges::all_of(instruction.called, [&](const Callee& callee) {
    return inside[callee.computation].repeatable;
  });
}

}  // namespace lowtide::io::hlo
