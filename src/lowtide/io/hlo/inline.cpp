// A walk with a stack of its own, since calls may be nested as deep as a file is long. Each
// instruction is moved once.
#include "lowtide/io/hlo/inline.h"

#include <cstddef>
#include <utility>

namespace lowtide::io::hlo {

namespace {

// Where the walk is in one computation.
struct Visit {
  std::uint32_t computation;
  std::vector<std::uint32_t> given;  // by number of a parameter: the argument
  std::vector<std::uint32_t> now;    // by index in the computation: the index in the entry
  std::size_t next = 0;
};

class Inliner {
 public:
  explicit Inliner(Module& module) : module_(module), callers_(module.computations.size(), 0) {
    for (const Computation& computation : module.computations)
      for (const Instruction& one : computation.instructions)
        for (const Callee& callee : one.called) ++callers_[callee.computation];
  }

  void run() {
    stack_.push_back(visit(module_.entry, {}));
    while (!stack_.empty()) step();
    main().instructions = std::move(made_);
  }

 private:
  Computation& main() { return module_.computations[module_.entry]; }

  Visit visit(std::uint32_t computation, std::vector<std::uint32_t> given) const {
    return {computation, std::move(given),
            std::vector<std::uint32_t>(module_.computations[computation].instructions.size(), 0)};
  }

  void step() {
    Visit& top = stack_.back();
    Computation& from = module_.computations[top.computation];
    const bool is_main = top.computation == module_.entry;
    if (top.next == from.instructions.size()) {
      finish();
      return;
    }
    Instruction& one = from.instructions[top.next];
    for (std::uint32_t& operand : one.operands) operand = top.now[operand];
    for (std::uint32_t& before : one.control) before = top.now[before];
    if (const std::uint32_t callee = replaced_by(one); callee != kNone) {
      stack_.push_back(visit(callee, one.operands));
    } else if (one.parameter >= 0 && !is_main) {
      top.now[top.next++] = top.given[static_cast<std::size_t>(one.parameter)];
    } else {
      top.now[top.next++] = static_cast<std::uint32_t>(made_.size());
      made_.push_back(std::move(one));
    }
  }

  // The end of a computation: its root is the result of the call.
  void finish() {
    const Visit done = std::move(stack_.back());
    stack_.pop_back();
    Computation& computation = module_.computations[done.computation];
    const std::uint32_t root = done.now[computation.root];
    computation.instructions.clear();
    if (!stack_.empty()) {
      stack_.back().now[stack_.back().next++] = root;
      return;
    }
    computation.root = root;
    for (std::uint32_t& parameter : computation.parameters) parameter = done.now[parameter];
  }

  // The computation that stands in the place of the instruction; kNone: it stays.
  std::uint32_t replaced_by(const Instruction& one) const {
    if (one.opcode != "call" || !one.control.empty()) return kNone;
    const std::uint32_t callee = one.callee("to_apply");
    const bool only = callee != kNone && callers_[callee] == 1 && callee != module_.entry;
    return only ? callee : kNone;
  }

  Module& module_;
  std::vector<std::size_t> callers_;  // by computation
  std::vector<Visit> stack_;
  std::vector<Instruction> made_;
};

}  // namespace

void inline_calls(Module& module) { Inliner(module).run(); }

}  // namespace lowtide::io::hlo
