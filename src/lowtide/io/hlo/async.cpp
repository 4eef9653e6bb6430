// XLA's conventions: a copy-start returns (destination, source, context), an all-gather-start or
// collective-permute-start (operands, result, ...), an async-start ((operands...), result, ...), a
// send (data, context, token), a recv (data, context, token), an all-reduce-start its result.
#include "lowtide/io/hlo/async.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "lowtide/io/hlo/opcode.h"

namespace lowtide::io::hlo {

std::vector<std::int64_t> started_leaves(const Computation& within, const Instruction& start) {
  std::vector<std::int64_t> leaves(start.shape.leaves, -1);
  const auto& elements = start.shape.elements;
  if (elements.size() < 2 || start.operands.empty() || start.opcode == "all-reduce-start" ||
      start.opcode == "recv")
    return leaves;
  const Shape& first = within.instructions[start.operands[0]].shape;
  const Shape& source = elements[start.opcode == "copy-start" ? 1 : 0];
  std::uint32_t all = 0;
  for (const std::uint32_t operand : start.operands)
    all += within.instructions[operand].shape.leaves;
  const bool one = compatible(source, first);
  if (one || source.leaves == all)
    std::iota(leaves.begin() + source.first_leaf,
              leaves.begin() + source.first_leaf + source.leaves, 0);
  return leaves;
}

const Shape& made_shape(const Instruction& one) {
  const AsyncOpcode async = async_of(one.opcode);
  const auto& elements = one.shape.elements;
  if (async.part != AsyncPart::start || elements.size() < 2 || async.wrapped == "all-reduce")
    return one.shape;
  const bool first = async.wrapped == "copy" || async.wrapped == "send" || async.wrapped == "recv";
  return elements[first ? 0 : 1];
}

std::optional<std::vector<std::uint32_t>> finished_leaves(std::string_view opcode,
                                                          const Shape& started,
                                                          const Shape& result) {
  const auto of = [](const Shape& part) {
    std::vector<std::uint32_t> leaves(part.leaves);
    std::iota(leaves.begin(), leaves.end(), part.first_leaf);
    return leaves;
  };
  if (compatible(started, result)) {
    std::vector<std::uint32_t> leaves(started.leaves);
    std::iota(leaves.begin(), leaves.end(), 0);
    return leaves;
  }
  const auto& elements = started.elements;
  if (elements.size() < 2) return std::nullopt;
  // The result stands second; of a copy, first; the token of a send, last.
  const std::size_t usual = opcode == "copy-done" ? 0 : 1;
  for (const std::size_t at : {usual, 1 - usual, elements.size() - 1})
    if (compatible(elements[at], result)) return of(elements[at]);
  // recv-done: (data, token), of (data, context, token)
  if (result.elements.size() == 2 && compatible(elements.front(), result.elements.front()) &&
      compatible(elements.back(), result.elements.back())) {
    std::vector<std::uint32_t> leaves = of(elements.front());
    std::ranges::copy(of(elements.back()), std::back_inserter(leaves));
    return leaves;
  }
  return std::nullopt;
}

}  // namespace lowtide::io::hlo
