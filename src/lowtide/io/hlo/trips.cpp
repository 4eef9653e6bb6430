// The pattern: the condition compares element k of what is carried with a constant, the body adds a
// constant to it, and it begins as a constant.
#include "lowtide/io/hlo/trips.h"

#include <string_view>
#include <vector>

#include "lowtide/io/hlo/attributes.h"

namespace lowtide::io::hlo {

namespace {

using Number = std::optional<std::int64_t>;

class Counting {
 public:
  Counting(const Module& module, const Computation& within, const Instruction& loop)
      : within_(within),
        loop_(loop),
        condition_(module.computations[loop.callee("condition")]),
        body_(module.computations[loop.callee("body")]) {}

  Number trips() const {
    const Instruction& test = condition_.instructions[condition_.root];
    if (test.opcode != "compare" || test.attribute("direction") != "LT") return {};
    const Number element = carried(condition_, test.operands[0]);
    const Number end = constant(condition_, test.operands[1]);
    if (!element || !end) return {};
    const Number begin = initial(*element), step = added(*element);
    if (!begin || !step || *step <= 0 || *begin < 0 || *begin > *end) return {};
    const std::int64_t distance = *end - *begin;
    return distance / *step + (distance % *step != 0);
  }

 private:
  // Copies are looked through.
  static const Instruction& at(const Computation& within, std::uint32_t index) {
    const Instruction* one = &within.instructions[index];
    while (one->opcode == "copy") one = &within.instructions[one->operands[0]];
    return *one;
  }
  static Number constant(const Computation& within, std::uint32_t index) {
    const std::string_view literal = at(within, index).literal;
    const std::vector<std::int64_t> numbers = integers_in(literal);
    if (numbers.size() != 1 || literal.find_first_of("-.") != std::string_view::npos) return {};
    return numbers.front();
  }
  // The element of the parameter that the instruction is.
  static Number carried(const Computation& within, std::uint32_t index) {
    const Instruction& one = at(within, index);
    const bool element =
        one.opcode == "get-tuple-element" && within.instructions[one.operands[0]].parameter == 0;
    if (!element) return {};
    return integers_in(one.attribute("index")).front();
  }

  Number initial(std::int64_t element) const {
    const Instruction& given = at(within_, loop_.operands[0]);
    if (given.opcode != "tuple") return {};
    return constant(within_, given.operands[static_cast<std::size_t>(element)]);
  }
  Number added(std::int64_t element) const {
    const Instruction& result = body_.instructions[body_.root];
    if (result.opcode != "tuple") return {};
    const Instruction& next = at(body_, result.operands[static_cast<std::size_t>(element)]);
    if (next.opcode != "add") return {};
    for (const std::size_t one : {0U, 1U})
      if (carried(body_, next.operands[one]) == element)
        return constant(body_, next.operands[1 - one]);
    return {};
  }

  const Computation& within_;
  const Instruction& loop_;
  const Computation& condition_;
  const Computation& body_;
};

}  // namespace

std::optional<std::int64_t> trips_of(const Module& module, const Computation& within,
                                     const Instruction& loop) {
  const auto stated = numbers_under(loop.attribute("backend_config"), "known_trip_count");
  if (!stated.empty()) return stated.front();
  return Counting(module, within, loop).trips();
}

}  // namespace lowtide::io::hlo
