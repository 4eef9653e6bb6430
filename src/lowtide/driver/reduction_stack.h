// Several reductions, one after the other. Private to the room.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/driver/reduction.h"
#include "lowtide/plan/question.h"

namespace lowtide::driver {

// A stack of reductions; each reduces the problem of the one below it. Start plans and watchers go
// up through the stack, the answer comes back down. The original problem must outlive the stack.
class ReductionStack {
 public:
  explicit ReductionStack(const Problem& original) : original_(original) {}

  void push(std::unique_ptr<Reduction> reduction) { stack_.push_back(std::move(reduction)); }

  // The problem that the solver gets: that of the last reduction, or the original one.
  const Problem& problem() const { return stack_.empty() ? original_ : stack_.back()->problem(); }
  bool is_graph_reduced() const { return &problem().graph != &original_.graph; }

  std::vector<Plan> starts(std::vector<Plan> plans) const;
  solve::Watcher translate(solve::Watcher watcher) const;
  void bring_back(Answer& answer) const;

 private:
  const Problem& original_;
  std::vector<std::unique_ptr<Reduction>> stack_;
};

// All reductions that the question needs: apply its transforms, remove techniques that are not
// allowed, convert limits of single ops to workspaces, put network ops on the compute lane. Throws
// as the constructors of the reductions do. The question must outlive the stack. limits: of the
// solve.
ReductionStack reductions_for(const Question& question, const LimitSettings& limits = {});

}  // namespace lowtide::driver
