// Only what the planner relies on: numbers of operands, and shapes where storage passes through.
#include "lowtide/io/hlo/check.h"

#include <algorithm>
#include <array>
#include <string>

#include "lowtide/io/hlo/attributes.h"
#include "lowtide/io/hlo/cursor.h"
#include "lowtide/io/hlo/opcode.h"
#include "lowtide/io/reader_support.h"

namespace lowtide::io::hlo {

namespace {

std::string count_of(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

class Checker {
 public:
  Checker(const Module& module, const Computation& within, const Instruction& instruction)
      : module_(module), within_(within), one_(instruction) {}

  void check() const {
    check_count();
    if (one_.opcode == "tuple") check_tuple();
    if (one_.opcode == "get-tuple-element") check_element();
    if (one_.opcode == "while") check_while();
    if (one_.opcode == "conditional") check_branches();
    if (one_.opcode == "fusion" || one_.opcode == "call") check_call();
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    Cursor(module_.text).refuse_at(one_.at, "instruction " + quoted(one_.name) + ": " + reason);
  }
  const Shape& operand(std::size_t at) const {
    return within_.instructions[one_.operands[at]].shape;
  }
  const Computation& called(std::uint32_t computation) const {
    return module_.computations[computation];
  }

  void check_count() const {
    const Opcode& opcode = opcode_of(one_.opcode);
    const std::size_t count = one_.operands.size();
    const AsyncPart part = async_of(one_.opcode).part;
    const bool ends = part == AsyncPart::done || part == AsyncPart::update;
    const std::size_t least = ends ? 1 : opcode.least, most = ends ? 1 : opcode.most;
    if (count >= least && count <= most) return;
    refuse(std::string(one_.opcode) + " has " + count_of(count, "operand") + ", and takes " +
           (least == most ? "" : "at least ") + std::to_string(count < least ? least : most));
  }

  void check_tuple() const {
    if (!one_.shape.is_tuple() || one_.shape.elements.size() != one_.operands.size())
      refuse("its shape is no tuple of " + count_of(one_.operands.size(), "element"));
    for (std::size_t i = 0; i < one_.operands.size(); ++i)
      if (!compatible(one_.shape.elements[i], operand(i)))
        refuse("operand " + std::to_string(i) + " has another shape than the tuple says");
  }

  void check_element() const {
    const auto index = integers_in(one_.attribute("index"));
    if (index.empty()) refuse("it has no index; it must have one, such as index=0");
    const Shape& from = operand(0);
    const auto at = static_cast<std::size_t>(index.front());
    if (!from.is_tuple() || at >= from.elements.size())
      refuse("its operand has no element " + std::to_string(at));
    if (!compatible(one_.shape, from.elements[at]))
      refuse("its shape is not that of element " + std::to_string(at));
  }

  void check_takes(const Computation& computation, std::size_t first, std::size_t count) const {
    if (computation.parameters.size() != count)
      refuse("it passes " + count_of(count, "operand") + " to computation " +
             quoted(computation.name) + ", which has " +
             count_of(computation.parameters.size(), "parameter"));
    for (std::size_t i = 0; i < count; ++i)
      if (!compatible(computation.instructions[computation.parameters[i]].shape,
                      operand(first + i)))
        refuse("operand " + std::to_string(first + i) + " has another shape than parameter " +
               std::to_string(i) + " of computation " + quoted(computation.name));
  }
  void check_returns(const Computation& computation) const {
    if (!compatible(computation.instructions[computation.root].shape, one_.shape))
      refuse("its shape is not what computation " + quoted(computation.name) + " returns");
  }
  std::uint32_t required(std::string_view role) const {
    const std::uint32_t found = one_.callee(role);
    if (found == kNone) refuse("it has no " + std::string(role) + "=...");
    return found;
  }

  void check_call() const {
    const Computation& callee = called(required(one_.opcode == "call" ? "to_apply" : "calls"));
    check_takes(callee, 0, one_.operands.size());
    check_returns(callee);
  }

  void check_while() const {
    for (const std::string_view role : {"condition", "body"})
      check_takes(called(required(role)), 0, 1);
    check_returns(called(one_.callee("body")));
    if (!compatible(operand(0), one_.shape)) refuse("its shape is not that of its operand");
  }

  // The first operand chooses a branch; each of the others is what one branch takes.
  void check_branches() const {
    if (one_.called.empty()) refuse("it has no branch_computations={...}");
    if (one_.called.size() != one_.operands.size() - 1)
      refuse("it has " + std::to_string(one_.called.size()) + " branches" + " and " +
             count_of(one_.operands.size(), "operand") +
             "; it must have one for each, and one "
             "that chooses");
    for (std::size_t i = 0; i < one_.called.size(); ++i) {
      check_takes(called(one_.called[i].computation), i + 1, 1);
      check_returns(called(one_.called[i].computation));
    }
  }

  const Module& module_;
  const Computation& within_;
  const Instruction& one_;
};

}  // namespace

void check_module(const Module& module) {
  for (const Computation& computation : module.computations)
    for (const Instruction& one : computation.instructions)
      Checker(module, computation, one).check();
}

}  // namespace lowtide::io::hlo
