// lowtide/plan/outcome.h
#include "lowtide/plan/outcome.h"

#include <fmt/format.h>

#include "lowtide/io/text_file.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"

#include "problem.h"

namespace lowtide::python {

namespace {

std::string_view status_of(const OutcomeObject& o) {
  return o.supported ? to_string(o->status) : "unsupported";
}

// A bound is about plans that there are.
bool bounded(const OutcomeObject& o) { return o.supported && o->status != Status::infeasible; }

double overhead_of(const OutcomeObject& o, const Cost& cost) {
  return overhead_percent(cost.duration, own_duration(*o.asked.graph)) / 100;
}

std::optional<PlanObject> plan_of(const OutcomeObject& o) {
  if (!o->plan) return std::nullopt;
  if (!o.file) o.file = std::make_shared<const PlanFile>(file_of(o));
  return PlanObject{o.file};
}

void bind_cost(nb::module_& module) {
  nb::class_<Cost>(module, "Cost", "The cost of a plan.")
      .def_prop_ro(
          "duration", [](const Cost& c) { return c.duration.count(); }, "In ticks.")
      .def_prop_ro(
          "peak", [](const Cost& c) { return c.peak.count(); }, "In bytes.")
      .def_prop_ro(
          "host_peak", [](const Cost& c) { return c.host_peak.count(); },
          "Bytes of copies on the host.")
      .def("__repr__", [](const Cost& c) {
        return fmt::format("<lowtide.Cost: duration {}, peak {}>", c.duration.count(),
                           c.peak.count());
      });
  nb::class_<Incumbent>(module, "Incumbent", "An improvement during the solve.")
      .def_ro("seconds", &Incumbent::seconds, "Since the solve began.")
      .def_ro("work", &Incumbent::work)
      .def_prop_ro("duration", [](const Incumbent& i) { return i.cost.duration.count(); })
      .def_prop_ro("peak", [](const Incumbent& i) { return i.cost.peak.count(); })
      .def("__repr__", [](const Incumbent& i) {
        return fmt::format("<lowtide.Incumbent: duration {}, peak {}, after {:.3f} s>",
                           i.cost.duration.count(), i.cost.peak.count(), i.seconds);
      });
  nb::class_<PortfolioPart>(module, "Part",
                            "Statistics of one solver of a portfolio, over all of its calls.")
      .def_ro("name", &PortfolioPart::name, "The solver's name.")
      .def_ro("seconds", &PortfolioPart::seconds, "Summed over threads.")
      .def_ro("work", &PortfolioPart::work)
      .def_ro("plans", &PortfolioPart::plans, "How often its plan became the incumbent.")
      .def_prop_ro(
          "won", [](const PortfolioPart& p) { return p.won.count(); },
          "Ticks by which those plans were shorter than the incumbent before.")
      .def_prop_ro(
          "bound", [](const PortfolioPart& p) { return p.bound.count(); },
          "Ticks by which it raised the bound.")
      .def("__repr__", [](const PortfolioPart& p) {
        return fmt::format("<lowtide.Part: {}, plans {}, won {}>", p.name, p.plans, p.won.count());
      });
  nb::class_<ModelClaim>(
      module, "ModelClaim",
      "What a solver proved of its own model, which is narrower than the problem.")
      .def_ro("name", &ModelClaim::name, "The model, and what it leaves out.")
      .def_prop_ro(
          "status", [](const ModelClaim& m) { return to_string(status_of(m)); },
          "\"optimal\": its best plan was found. \"infeasible\": it has no plan. Otherwise "
          "\"feasible\".")
      .def_prop_ro(
          "bound", [](const ModelClaim& m) { return if_any(!m.infeasible, m.bound.count()); },
          nb::sig("def bound(self) -> int | None"), "In ticks: none of its plans is shorter.")
      .def("__repr__", [](const ModelClaim& m) {
        return fmt::format("<lowtide.ModelClaim: {}, {}>", m.name, to_string(status_of(m)));
      });
}

nb::object taken_of(const OutcomeObject& o, Footprint kind) {
  const bool there = o.footprint.kind == kind && o.taken.has_value();
  return if_any(there, there ? o.taken->bytes.count() : 0);
}

}  // namespace

PlanFile file_of(const OutcomeObject& o) {
  PlanFile file = plan_file(o.asked.question(), *o.outcome, o.how);
  claim_full_link(file, *o.asked.graph, o.asked.terms.full_link);
  driver::claim_footprint(file, o.footprint, o.taken);
  return file;
}

void bind_outcome(nb::module_& module) {
  bind_cost(module);
  nb::class_<OutcomeObject>(
      module, "Outcome",
      "The result of a solve: the best plan, and the proven bounds. Unknown values are None.")
      .def_prop_ro("status", &status_of,
                   "\"optimal\": a plan, proven optimal. \"feasible\": a plan. \"infeasible\": "
                   "proven that there is no plan. \"unknown\": no plan was found. \"unsupported\": "
                   "the solver rejects the problem; `note` says why.")
      .def_prop_ro(
          "stopped_by", [](const OutcomeObject& o) { return to_string(o->stopped_by); },
          "\"finished\", \"deadline\", \"work limit\", \"cancelled\" (by Ctrl-C), or \"gave up\": "
          "the solver ended by itself, with neither a plan nor a proof.")
      .def_prop_ro("plan", &plan_of)
      .def_prop_ro("graph", [](const OutcomeObject& o) { return o.asked.graph; })
      .def_prop_ro(
          "budget", [](const OutcomeObject& o) { return budget_or_none(o.asked); },
          nb::sig("def budget(self) -> int | None"), "The budget of the problem in bytes.")
      .def_prop_ro(
          "footprint", [](const OutcomeObject& o) { return to_string(o.footprint.kind); },
          "What the budget limits: \"live\", \"arena\" or \"reserved\".")
      .def_prop_ro(
          "arena", [](const OutcomeObject& o) { return taken_of(o, Footprint::arena); },
          nb::sig("def arena(self) -> int | None"),
          "Bytes of the plan's arena, if the budget limits it.")
      .def_prop_ro(
          "reserved", [](const OutcomeObject& o) { return taken_of(o, Footprint::reserved); },
          nb::sig("def reserved(self) -> int | None"),
          "Bytes that the allocator reserves for the plan, if the budget limits them.")
      .def_prop_ro("order", [](const OutcomeObject& o) { return to_string(o.asked.terms.order); })
      .def_prop_ro(
          "duration",
          [](const OutcomeObject& o) {
            return if_any(o->plan.has_value(), o->cost.duration.count());
          },
          nb::sig("def duration(self) -> int | None"), "The plan's duration in ticks.")
      .def_prop_ro(
          "peak",
          [](const OutcomeObject& o) { return if_any(o->plan.has_value(), o->cost.peak.count()); },
          nb::sig("def peak(self) -> int | None"), "The plan's peak in bytes.")
      .def_prop_ro(
          "bound",
          [](const OutcomeObject& o) { return if_any(bounded(o), o->bound.duration.count()); },
          nb::sig("def bound(self) -> int | None"),
          "The lower bound on the duration in ticks: proven for every plan of the problem.")
      .def_prop_ro(
          "overhead",
          [](const OutcomeObject& o) {
            return if_any(o->plan.has_value(), overhead_of(o, o->cost));
          },
          nb::sig("def overhead(self) -> float | None"),
          "duration / (duration of computing each op once) - 1.")
      .def_prop_ro(
          "gap",
          [](const OutcomeObject& o) {
            return if_any(o->plan.has_value(),
                          gap_percent(o->cost.duration, o->bound.duration) / 100);
          },
          nb::sig("def gap(self) -> float | None"),
          "(duration - bound) / bound; infinite if the bound alone is 0.")
      .def_prop_ro(
          "link_price", [](const OutcomeObject& o) { return o->link_price; },
          nb::sig("def link_price(self) -> float | None"),
          "With a link: per cent by which the bound falls for one per cent more bandwidth, "
          "approximately. 0: the link is no bottleneck.")
      .def_prop_ro(
          "floor",
          [](const OutcomeObject& o) { return if_any(o.supported, o->bound.peak.count()); },
          nb::sig("def floor(self) -> int | None"),
          "The lower bound on the peak in bytes: proven for every plan, of any duration.")
      .def_prop_ro(
          "smallest_peak",
          [](const OutcomeObject& o) {
            const auto& peak = o->smallest_peak;
            return if_any(peak.has_value(), peak ? peak->count() : 0);
          },
          nb::sig("def smallest_peak(self) -> int | None"),
          "The smallest peak of all plans seen, within the budget or not, in bytes.")
      .def_prop_ro(
          "history",
          [](const OutcomeObject& o) {
            nb::list list;
            for (const Incumbent& entry : o->history) list.append(entry);
            return list;
          },
          nb::sig("def history(self) -> list[Incumbent]"), "The improvements, in order.")
      .def_prop_ro(
          "parts",
          [](const OutcomeObject& o) {
            nb::list list;
            for (const PortfolioPart& part : o->parts) list.append(part);
            return list;
          },
          nb::sig("def parts(self) -> list[Part]"),
          "Statistics of each solver of a portfolio (\"auto\").")
      .def_prop_ro(
          "found_by", [](const OutcomeObject& o) { return o->found_by; },
          "The solver that found the plan.")
      .def_prop_ro(
          "model", [](const OutcomeObject& o) { return o->model; },
          nb::sig("def model(self) -> ModelClaim | None"),
          "What the solver proved of its own, narrower model, if it has one.")
      .def_prop_ro(
          "note", [](const OutcomeObject& o) { return o->note; },
          "A sentence for people, or empty.")
      .def_ro("seconds", &OutcomeObject::seconds, "Duration of the solve.")
      .def(
          "save",
          [](const OutcomeObject& o, nb::handle path) {
            const std::string name = path_of(path);
            const nb::gil_scoped_release released;
            io::write_text_file(name, io::write_plan(file_of(o)));
          },
          nb::arg("path"), nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
          "Write the plan file that `lowtide plan -o` writes: without steps if there is no plan.")
      .def("__repr__", [](const OutcomeObject& o) {
        const auto& cost = o->cost;
        const std::string found = o->plan
                                      ? fmt::format(", peak {}, overhead {:.2f} %",
                                                    cost.peak.count(), 100 * overhead_of(o, cost))
                                      : std::string();
        return fmt::format("<lowtide.Outcome: {}{}>", status_of(o), found);
      });
}

}  // namespace lowtide::python
