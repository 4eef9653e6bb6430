// lowtide/solve/interface/context.h, for solvers that are written in Python.
#include "lowtide/solve/interface/context.h"

#include <algorithm>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/sim/verify.h"

#include "convert.h"
#include "errors.h"
#include "solver.h"

namespace lowtide::python {

namespace {

// Used with the interpreter lock held throughout, so that threads of the solver take turns.
class ContextObject {
 public:
  ContextObject(solve::Context& context, GraphObject graph)
      : context_(&context), graph_(std::move(graph)) {}

  void end() { context_ = nullptr; }
  solve::Context& operator*() const {
    if (context_ == nullptr)
      throw std::runtime_error(
          "this context is of a solve that has ended; use it only before solve() returns");
    return *context_;
  }
  solve::Context* operator->() const { return &**this; }
  bool ended() const { return context_ == nullptr; }

 private:
  solve::Context* context_;
  GraphObject graph_;  // outlives what refers to it
};

PlanObject bare(const Plan& plan) {
  PlanFile file;
  file.plan = plan;
  return {std::make_shared<const PlanFile>(std::move(file))};
}

bool should_stop(const ContextObject& context, std::int64_t work) {
  if (work < 0) throw InputError(fmt::format("work {}", work), "is not a whole number, 0 or more");
  Limits& limits = context->limits();
  // Work may be counted seldom; the clock and a cancel are looked at each time.
  if (!limits.spend_all(work) && limits.over()) limits.spend_all(Limits::kPollWork);
  return context->done();
}

}  // namespace

bool offer_checked(solve::Context& context, const PlanObject& plan) {
  Problem open = context.problem();
  open.budget = Bytes::max();
  open.time_limit.reset();
  const Verdict verdict = verify(open, plan.file->plan);
  if (!verdict.ok) throw PlanRefused(verdict.violation->reason, verdict.violation->step);
  return context.offer(plan.file->plan);
}

nb::object make_context(solve::Context& context, const GraphObject& graph) {
  return nb::cast(ContextObject(context, graph));
}

void end_context(nb::handle context) { nb::cast<ContextObject&>(context).end(); }

void bind_context(nb::module_& module) {
  nb::class_<ContextObject>(
      module, "Context",
      "The second argument of a solver registered with `register_solver`: limits, start plans, and "
      "the best results so far. Valid until the solver returns.")
      .def("should_stop", &should_stop, nb::arg("work") = 100,
           "Count units of work (about a microsecond each), and return whether to stop: at the "
           "deadline, when the work is used up, on Ctrl-C, or when the plan is proven optimal. "
           "Call it at least every 50 ms; a solver that never calls it cannot be stopped.")
      .def(
          "offer",
          [](const ContextObject& c, const PlanObject& plan) { return offer_checked(*c, plan); },
          nb::arg("plan"),
          "Offer a plan, within the budget or not. Returns whether it is the best so far within "
          "the budget. Raises PlanError for a plan that breaks a rule.")
      .def(
          "raise_bound",
          [](const ContextObject& c, std::int64_t duration) {
            c->raise_engine_bound(Ticks(duration));
          },
          nb::arg("duration"),
          "Claim a lower bound on the duration in ticks. If a plan beats it, all claims of the "
          "solver are dropped.")
      .def_prop_ro(
          "seconds_left",
          [](const ContextObject& c) {
            const Limits& limits = c->limits();
            const auto most = limits.settings().seconds;
            return if_any(most.has_value(), std::max(0.0, most.value_or(0) - limits.seconds()));
          },
          nb::sig("def seconds_left(self) -> float | None"), "None without a time limit.")
      .def_prop_ro(
          "work_left",
          [](const ContextObject& c) {
            const Limits& limits = c->limits();
            return if_any(limits.settings().work.has_value(),
                          std::max(std::int64_t{0}, limits.work_left()));
          },
          nb::sig("def work_left(self) -> int | None"), "None without a work limit.")
      .def_prop_ro(
          "seed", [](const ContextObject& c) { return c->seed(); },
          "Seed of random numbers: the same seed and work limit must give the same plan.")
      .def_prop_ro("threads", [](const ContextObject& c) { return c->threads(); })
      .def_prop_ro(
          "starts",
          [](const ContextObject& c) {
            nb::list list;
            for (const Plan& plan : c->starts()) list.append(bare(plan));
            return list;
          },
          nb::sig("def starts(self) -> list[Plan]"),
          "Start plans, the best first; they may exceed the budget.")
      .def_prop_ro(
          "best",
          [](const ContextObject& c) -> std::optional<PlanObject> {
            if (!c->has_plan()) return std::nullopt;
            return bare(c->best());
          },
          "The best plan within the budget so far, or None.")
      .def_prop_ro(
          "best_cost",
          [](const ContextObject& c) -> std::optional<Cost> {
            if (!c->has_plan()) return std::nullopt;
            return c->best_cost();
          },
          "Its cost.")
      .def_prop_ro(
          "bound", [](const ContextObject& c) { return c->bound().duration.count(); },
          "The lower bound on the duration in ticks.")
      .def_prop_ro(
          "floor", [](const ContextObject& c) { return c->bound().peak.count(); },
          "The lower bound on the peak in bytes.")
      .def_prop_ro(
          "smallest_peak",
          [](const ContextObject& c) {
            const auto& peak = c->smallest_peak();
            return if_any(peak.has_value(), peak ? peak->count() : 0);
          },
          nb::sig("def smallest_peak(self) -> int | None"),
          "The smallest peak of all plans seen, within the budget or not, in bytes.")
      .def("__repr__", [](const ContextObject& c) {
        return std::string(c.ended() ? "<lowtide.Context: ended>" : "<lowtide.Context>");
      });
}

}  // namespace lowtide::python
