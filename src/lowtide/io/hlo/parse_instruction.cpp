// "ROOT %add.5 = f32[8]{0} add(%a, f32[8]{0} %b), attribute=value, ...".
#include "lowtide/io/hlo/parse_instruction.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/io/hlo/attributes.h"
#include "lowtide/io/reader_support.h"

namespace lowtide::io::hlo {

namespace {

// Attributes whose values are computations.
constexpr std::array<std::string_view, 11> kCalls = {"calls",
                                                     "to_apply",
                                                     "body",
                                                     "condition",
                                                     "branch_computations",
                                                     "true_computation",
                                                     "false_computation",
                                                     "select",
                                                     "scatter",
                                                     "called_computations",
                                                     "async_wrapped_computation"};

}  // namespace

void InstructionParser::parse() {
  Instruction instruction;
  const std::size_t before = cursor_.at();
  const bool root = cursor_.word() == "ROOT";
  if (!root) cursor_.seek(before);
  cursor_.skip_space();
  instruction.at = cursor_.at();
  instruction.name = cursor_.name();
  if (instruction.name.empty())
    cursor_.refuse("expected an instruction, such as \"x = f32[] ...\"");
  const auto index = static_cast<std::uint32_t>(into_.instructions.size());
  try {
    parse_rest(instruction);
  } catch (const InputError& error) {
    throw InputError(error.place(),
                     "instruction " + quoted(instruction.name) + ": " + error.reason());
  }
  if (!index_of_.emplace(instruction.name, index).second)
    cursor_.refuse_at(instruction.at, "two instructions of computation " + quoted(into_.name) +
                                          " have the name " + quoted(instruction.name));
  if (root || !has_root_) into_.root = index;  // without ROOT, the last
  has_root_ = has_root_ || root;
  into_.instructions.push_back(std::move(instruction));
}

void InstructionParser::parse_rest(Instruction& instruction) {
  cursor_.expect('=', "after the instruction's name");
  instruction.shape = parse_shape(cursor_);
  instruction.opcode = cursor_.word();
  if (instruction.opcode.empty()) cursor_.refuse("expected an opcode after the shape");
  if (instruction.opcode == "parameter" || instruction.opcode == "constant") {
    parse_literal(instruction);
  } else {
    parse_operands(instruction);
  }
  read_attributes(instruction);
}

// A constant may be as long as the rest of the file: it is skipped, not read.
void InstructionParser::parse_literal(Instruction& instruction) {
  cursor_.skip_space();
  const std::size_t at = cursor_.at();
  if (cursor_.peek() != '(') cursor_.expect('(', "after the opcode");
  if (instruction.opcode == "constant") {
    instruction.literal = cursor_.group();
    return;
  }
  cursor_.take('(');
  instruction.parameter = cursor_.integer();
  if (instruction.parameter < 0) cursor_.refuse_at(at, "the number of a parameter is negative");
  cursor_.expect(')', "after the parameter's number");
}

void InstructionParser::parse_operands(Instruction& instruction) {
  cursor_.expect('(', "after the opcode");
  while (!cursor_.take(')')) {
    cursor_.skip_space();
    const std::size_t at = cursor_.at();
    // The type is optional; it is the defining instruction's.
    if (cursor_.peek() == '(') {
      parse_shape(cursor_);
    } else if (cursor_.peek() != '%') {
      cursor_.word();
      const bool typed = cursor_.peek() == '[';
      cursor_.seek(at);
      if (typed) parse_shape(cursor_);
    }
    cursor_.skip_space();
    const std::size_t named = cursor_.at();
    const std::string_view name = cursor_.name();
    if (name.empty()) cursor_.refuse_at(named, "expected the name of an operand");
    const std::uint32_t operand = defined(name);
    if (operand == kNone)
      cursor_.refuse_at(named, "operand " + quoted(name) +
                                   " is not defined before it is used; each instruction must "
                                   "stand after those that it reads");
    instruction.operands.push_back(operand);
    if (!cursor_.take(',') && cursor_.peek() != ')') cursor_.expect(')', "after the operands");
  }
}

void InstructionParser::read_attributes(Instruction& instruction) {
  instruction.attributes = parse_attributes(cursor_);
  for (const Attribute& one : instruction.attributes) {
    if (one.name == "control-predecessors") {
      for (const std::string_view name : names_in(one.value)) {
        const std::uint32_t before = defined(name);
        if (before == kNone)
          cursor_.refuse_at(instruction.at,
                            "control predecessor " + quoted(name) + " is not defined before it");
        instruction.control.push_back(before);
      }
    } else if (std::ranges::find(kCalls, one.name) != kCalls.end()) {
      for (const std::string_view name : names_in(one.value))
        calls_.push_back(
            {computation_, static_cast<std::uint32_t>(into_.instructions.size()), one.name, name});
    }
  }
}

std::uint32_t InstructionParser::defined(std::string_view name) const {
  const auto found = index_of_.find(name);
  return found == index_of_.end() ? kNone : found->second;
}

}  // namespace lowtide::io::hlo
