// A clock makes what an engine finds depend on the machine; without one it must not.
#include "lowtide/solve/engine_run.h"

#include <algorithm>
#include <string>

#include "lowtide/solve/sequence.h"

namespace lowtide {

namespace {

constexpr double kStartShare = 0.15;  // of the limits, for other solvers
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
  settings.watcher = [&](const Progress& progress) {
    context.raise_engine_bound(progress.bound.duration);
    if (progress.plan != nullptr &&
        (!context.has_plan() || progress.cost.duration < context.best_cost().duration))
      context.offer(*progress.plan, others.name());
  };
  Context inner(problem, others.name(), std::move(settings));
  const Outcome outcome = others.solve(problem, inner);
  spend_all(context.limits(), inner.limits().work());
  // Some of it may be by word of an engine.
  context.raise_engine_bound(outcome.bound.duration);
  context.raise_floor(outcome.bound.peak);
  if (outcome.plan) context.offer(*outcome.plan, others.name());
  if (!outcome.plan && inner.smallest()) context.offer(*inner.smallest(), others.name());
}

}  // namespace

std::string order_words(const Problem& problem, bool started) {
  return started && problem.order == Order::free ? "in the start's order" : "in the given order";
}

Support small_enough(const Problem& problem, std::size_t most, std::string_view model) {
  if (problem.machine) return Support::no("it recomputes only and cannot use a link to the host");
  if (problem.graph.op_count() > most)
    return Support::no("its " + std::string(model) +
                       " grows with the square of the ops, and more than " + std::to_string(most) +
                       " are too many");
  return least_time_only(problem);
}

OptionSpec start_option() {
  return {.name = "start",
          .usage =
              "begin from the best plan given, from what the other solvers find in a part of the "
              "time, or from nothing",
          .default_choice = "given",
          .choices = {"given", "auto", "none"}};
}

std::optional<std::vector<OpId>> start_from_others(const Problem& problem, Context& context) {
  const std::string_view choice = context.options().choice("start");
  if (choice == "none" || (choice == "given" && context.starts().empty())) return std::nullopt;
  for (const Plan& plan : context.starts()) context.offer(plan);
  const Solver* others = context.solvers() != nullptr ? context.solvers()->find("auto") : nullptr;
  if (choice == "auto" && others != nullptr && others->supports(problem).yes)
    run_others(problem, context, *others);
  if (context.has_plan()) return without_unread(problem, sequence_of(context.best()));
  if (context.smallest()) return without_unread(problem, sequence_of(*context.smallest()));
  return std::nullopt;
}

bool spend_all(Limits& limits, std::int64_t units) {
  for (; units > 0 && !limits.stopped(); units -= Limits::kPollWork)
    limits.spend(std::min(units, Limits::kPollWork));
  return limits.stopped();
}

bool EngineRun::stop() {
  Limits& limits = context_.limits();
  if (!clocked()) {
    const CancelToken* cancel = limits.settings().cancel;
    if (cancel == nullptr || !cancel->cancelled()) return false;
    return limits.spend(Limits::kPollWork);
  }
  const auto now = Clock::now();
  const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(now - last_).count();
  last_ = now;
  return limits.spend(std::max<std::int64_t>(1, passed));
}

EngineLimits EngineRun::limits() {
  EngineLimits result;
  result.seed = context_.seed();
  const LimitSettings left = context_.limits().remaining();
  if (clocked()) {
    result.seconds = *left.seconds;
    result.threads = context_.threads();
  } else if (left.work) {
    result.effort = std::max(1e-6, static_cast<double>(*left.work) / kEffortWork);
  }
  result.stop = [this] { return stop(); };
  last_ = Clock::now();
  return result;
}

bool EngineRun::affords(std::size_t entries) {
  Limits& limits = context_.limits();
  if (clocked()) {
    const bool late = *limits.remaining().seconds < kEntrySeconds * static_cast<double>(entries);
    if (late) limits.stop_at_deadline();
    return !late;
  }
  return !limits.settings().work ||
         limits.work_left() >= kEntryWork * static_cast<std::int64_t>(entries);
}

void EngineRun::charge(const EngineEnd& end) {
  Limits& limits = context_.limits();
  const bool finished =
      end.status == EngineStatus::optimal || end.status == EngineStatus::infeasible;
  if (clocked()) {
    stop();
    if (!finished && !end.stopped && end.failure.empty()) limits.stop_at_deadline();
    return;
  }
  if (!finished && limits.settings().work && end.failure.empty())
    spend_all(limits, limits.work_left());
  else
    spend_all(limits, static_cast<std::int64_t>(std::min(1e15, end.effort * kEffortWork)));
}

}  // namespace lowtide
