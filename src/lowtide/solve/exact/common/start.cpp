// Other solvers get a share of the limits. A bound that an external engine has claimed through them
// stays such a claim.
#include "lowtide/solve/exact/common/start.h"

#include <algorithm>
#include <string_view>

#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::exact {

namespace {

constexpr double kStartShare = 0.15;  // of the limits
constexpr double kMostStartSeconds = 8;

void run_others(const Problem& problem, Context& context, const Solver& others) {
  LimitSettings limits = context.limits().remaining(kStartShare);
  if (limits.seconds) limits.seconds = std::min(*limits.seconds, kMostStartSeconds);
  ContextSettings settings{.limits = limits,
                           .seed = context.seed(),
                           .threads = context.threads(),
                           .options = Options(others.options()),
                           .starts = {context.starts().begin(), context.starts().end()},
                           .known = context.own_bound(),
                           .solvers = context.solvers(),
                           .watcher = {}};
  context.part(others.name());
  settings.watcher = [&](const Progress& progress) {
    context.raise_engine_bound(progress.bound.duration);
    if (progress.plan != nullptr &&
        (!context.has_plan() || progress.cost.duration < context.best_cost().duration))
      context.offer(*progress.plan, others.name());
  };
  Context inner(problem, others.name(), std::move(settings));
  const Outcome outcome = others.solve(problem, inner);
  context.limits().spend_all(inner.limits().work());
  context.part(others.name()).seconds = inner.limits().seconds();
  context.part(others.name()).work = inner.limits().work();
  // The bound may be the claim of an engine.
  context.raise_engine_bound(outcome.bound.duration);
  context.raise_floor(outcome.bound.peak);
  if (outcome.plan) context.offer(*outcome.plan, others.name());
  if (!outcome.plan && inner.smallest()) context.offer(*inner.smallest(), others.name());
}

}  // namespace

OptionSpec start_option() {
  return {.name = "start",
          .usage =
              "start plan: the best one given, one that the other solvers find in a share of the "
              "time, or none",
          .default_choice = "given",
          .choices = {"given", "auto", "none"}};
}

std::optional<std::vector<OpId>> start_from_others(const Problem& problem, Context& context) {
  const std::string_view choice = context.options().choice("start");
  if (choice == "none" || (choice == "given" && context.starts().empty())) return std::nullopt;
  for (const Plan& plan : context.starts()) context.offer(plan);
  const Solver* others = nullptr;
  if (context.solvers() != nullptr)
    for (const Solver* portfolio : context.solvers()->with(Trait::portfolio)) others = portfolio;
  if (choice == "auto" && others != nullptr && support_of(*others, problem).yes)
    run_others(problem, context, *others);
  if (context.has_plan()) return without_unread(problem, sequence_of(context.best()));
  if (context.smallest()) return without_unread(problem, sequence_of(*context.smallest()));
  return std::nullopt;
}

}  // namespace lowtide::solve::exact
