// A depth-first search with a stack of its own, since files may nest calls as deep as they are
// long.
#include "lowtide/io/hlo/order.h"

#include <cstddef>
#include <string>

#include "lowtide/io/hlo/cursor.h"
#include "lowtide/io/reader_support.h"

namespace lowtide::io::hlo {

namespace {

enum class State : std::uint8_t { unseen, open, done };

// Where the search is in one computation: the next callee of the next instruction.
struct Visit {
  std::uint32_t computation;
  std::size_t instruction = 0, callee = 0;
};

[[noreturn]] void refuse_cycle(const Module& module, const Instruction& caller,
                               std::uint32_t computation) {
  Cursor(module.text)
      .refuse_at(caller.at, "instruction " + quoted(caller.name) + ": computation " +
                                quoted(module.computations[computation].name) +
                                " calls itself through it; calls must not form a cycle");
}

}  // namespace

std::vector<std::uint32_t> callees_first(const Module& module) {
  const auto count = static_cast<std::uint32_t>(module.computations.size());
  std::vector<State> states(count, State::unseen);
  std::vector<std::uint32_t> order;
  std::vector<Visit> stack;
  for (std::uint32_t start = 0; start < count; ++start) {
    if (states[start] != State::unseen) continue;
    stack.push_back({start});
    states[start] = State::open;
    while (!stack.empty()) {
      Visit& top = stack.back();
      const auto& instructions = module.computations[top.computation].instructions;
      if (top.instruction == instructions.size()) {
        states[top.computation] = State::done;
        order.push_back(top.computation);
        stack.pop_back();
        continue;
      }
      const Instruction& caller = instructions[top.instruction];
      if (top.callee == caller.called.size()) {
        ++top.instruction;
        top.callee = 0;
        continue;
      }
      const std::uint32_t next = caller.called[top.callee++].computation;
      if (states[next] == State::open) refuse_cycle(module, caller, next);
      if (states[next] == State::done) continue;
      states[next] = State::open;
      stack.push_back({next});
    }
  }
  return order;
}

}  // namespace lowtide::io::hlo
