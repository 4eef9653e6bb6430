// lowtide/driver/driver.h
#include <chrono>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"

#include "problem.h"
#include "run.h"
#include "search.h"
#include "solver.h"

namespace lowtide::python {

namespace {

// A Progress that outlives the call it came with.
struct News {
  GraphObject graph;
  double seconds;
  std::string solver;
  std::optional<Cost> cost;
  std::optional<Bytes> smallest_peak;
  Bound bound;
};

std::string option_text(nb::handle value) {
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True ? "on" : "off";
  return nb::str(value).c_str();
}

void add_option(std::vector<std::pair<std::string, std::string>>& options, std::string_view name,
                nb::handle value) {
  if (!nb::isinstance<nb::dict>(value)) {
    options.emplace_back(name, option_text(value));
    return;
  }
  for (const auto& [ops, own] : nb::cast<nb::dict>(value)) {
    const std::string which = PyLong_Check(ops.ptr()) ? "#" + std::string(nb::str(ops).c_str())
                                                      : std::string(text_of(ops));
    options.emplace_back(name, which + ":" + option_text(own));
  }
}

std::vector<Plan> starts_of(nb::handle start) {
  std::vector<Plan> starts;
  if (start.is_none()) return starts;
  if (nb::isinstance<PlanObject>(start)) {
    starts.push_back(nb::cast<const PlanObject&>(start).file->plan);
    return starts;
  }
  for (nb::handle entry : start) {
    if (!nb::isinstance<PlanObject>(entry)) throw nb::type_error("start must be a Plan or several");
    starts.push_back(nb::cast<const PlanObject&>(entry).file->plan);
  }
  return starts;
}

ProblemObject asked_of(nb::handle graph, nb::handle budget, const std::string& objective,
                       nb::handle time_limit, const GivenTerms& terms,
                       const std::optional<nb::dict>& live_limits) {
  if (!nb::isinstance<ProblemObject>(graph)) {
    if (!nb::isinstance<GraphObject>(graph))
      throw nb::type_error("plan() takes a Graph or a Problem");
    return make_problem(nb::cast<const GraphObject&>(graph), budget, objective, time_limit, terms,
                        live_limits);
  }
  if (!budget.is_none() || objective != "time" || !time_limit.is_none() || terms.any() ||
      live_limits)
    throw nb::type_error(
        "a Problem has budget, order, objective, time_limit, device, link, techniques, derate, "
        "host_budget, live_limits, transforms and costs itself");
  return nb::cast<ProblemObject>(graph);
}

OutcomeObject plan(nb::handle graph, nb::handle budget, const std::string& order,
                   const std::string& objective, nb::handle time_limit, const std::string& solver,
                   std::optional<double> time, std::optional<std::int64_t> work, std::uint64_t seed,
                   int threads, std::optional<nb::dict> options, nb::handle start,
                   nb::object progress, nb::handle device, const std::optional<std::string>& link,
                   nb::handle techniques, nb::handle derate, nb::handle host_budget,
                   const std::optional<nb::dict>& live_limits, nb::handle transforms,
                   nb::handle costs, const std::string& footprint, const std::string& allocator) {
  OutcomeObject result;
  result.footprint = footprint_of(footprint, allocator);
  result.asked = asked_of(graph, budget, objective, time_limit,
                          {order, device, link, techniques, derate, host_budget, costs, transforms},
                          live_limits);
  const Search search{time, work, seed, threads};
  CancelToken token;
  driver::Request request;
  request.solver = solver;
  request.limits = search.limits(token);
  request.seed = seed;
  request.threads = search.thread_count();
  GivenOptions own = options_of(solver, options);
  request.options = std::move(own.texts);
  request.starts = starts_of(start);
  result.how = search.found_by(solver, request.limits);

  Courier<News> courier(std::move(progress));
  const GraphObject& told = result.asked.graph;
  if (courier.wanted())
    request.watcher = [&](const solve::Progress& now) {
      courier.post({told, now.seconds, std::string(now.solver),
                    now.plan != nullptr ? std::optional(now.cost) : std::nullopt, now.smallest_peak,
                    now.bound});
    };
  const Question question = result.asked.question();
  const auto begun = std::chrono::steady_clock::now();
  const solve::SolverTable solvers = all_solvers(result.asked.graph, own.guests);
  driver::FootprintAnswer found;
  run_beside(
      token, [&] { found = driver::solve_within(solvers, question, request, result.footprint); },
      [&](bool last) { courier.deliver(last); });
  driver::Answer& answer = found.answer;
  result.taken = std::move(found.taken);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  result.outcome = std::make_shared<const Outcome>(std::move(answer.outcome));
  result.supported = answer.support.yes;
  return result;
}

void bind_progress(nb::module_& module) {
  nb::class_<News>(module, "Progress",
                   "The state of a solve, with the attributes of Outcome. Unknown values are None.")
      .def_ro("seconds", &News::seconds, "Since the solve began.")
      .def_ro("solver", &News::solver)
      .def_prop_ro(
          "duration",
          [](const News& n) {
            return if_any(n.cost.has_value(), n.cost ? n.cost->duration.count() : 0);
          },
          nb::sig("def duration(self) -> int | None"))
      .def_prop_ro(
          "peak",
          [](const News& n) {
            return if_any(n.cost.has_value(), n.cost ? n.cost->peak.count() : 0);
          },
          nb::sig("def peak(self) -> int | None"))
      .def_prop_ro("bound", [](const News& n) { return n.bound.duration.count(); })
      .def_prop_ro("floor", [](const News& n) { return n.bound.peak.count(); })
      .def_prop_ro(
          "smallest_peak",
          [](const News& n) {
            return if_any(n.smallest_peak.has_value(),
                          n.smallest_peak ? n.smallest_peak->count() : 0);
          },
          nb::sig("def smallest_peak(self) -> int | None"))
      .def_prop_ro(
          "overhead",
          [](const News& n) {
            return if_any(
                n.cost.has_value(),
                n.cost ? overhead_percent(n.cost->duration, own_duration(*n.graph)) / 100 : 0.0);
          },
          nb::sig("def overhead(self) -> float | None"))
      .def_prop_ro(
          "gap",
          [](const News& n) {
            return if_any(n.cost.has_value(),
                          n.cost ? gap_percent(n.cost->duration, n.bound.duration) / 100 : 0.0);
          },
          nb::sig("def gap(self) -> float | None"))
      .def("__repr__", [](const News& n) {
        return fmt::format("<lowtide.Progress: {}, {:.3f} s, duration {}, bound {}>", n.solver,
                           n.seconds, n.cost ? fmt::to_string(n.cost->duration.count()) : "none",
                           n.bound.duration.count());
      });
}

}  // namespace

driver::FootprintTerms footprint_of(const std::string& word, const std::string& allocator) {
  driver::FootprintTerms terms;
  for (const Footprint kind : kFootprints) {
    if (to_string(kind) != word) continue;
    terms.kind = kind;
    if (!allocator.empty() && kind != Footprint::reserved)
      throw InputError("allocator", "is of use with footprint=\"reserved\" only");
    terms.allocator = layout::parse_allocator_settings(allocator);
    return terms;
  }
  throw InputError("footprint \"" + word + "\"", "is not one of live, arena, reserved");
}

Search::Search(std::optional<double> time, std::optional<std::int64_t> work, std::uint64_t seed,
               int threads)
    : time_(time), work_(work), seed_(seed), threads_(threads) {
  if (time && !(*time >= 0 && *time <= std::numeric_limits<double>::max()))
    throw InputError(fmt::format("time {}", *time), "is not a number of seconds, 0 or more");
  if (work && *work < 0)
    throw InputError(fmt::format("work {}", *work), "is not a whole number, 0 or more");
  if (threads < 0 || threads > 4096)
    throw InputError(fmt::format("threads {}", threads),
                     "is not in range [1 - 4096], or 0 for all cores");
}

GivenOptions options_of(const std::string& solver, const std::optional<nb::dict>& given) {
  GivenOptions options;
  if (!given) return options;
  for (const auto& [key, value] : *given) {
    const std::string_view name = text_of(key);
    if (Guests::may_be(solver, name))
      options.texts.emplace_back(name, options.guests.text_of_option(name, value));
    else
      add_option(options.texts, name, value);
  }
  return options;
}

FoundBy Search::found_by(const std::string& solver, const LimitSettings& limits) const {
  FoundBy found;
  found.solver = solver;
  found.seed = seed_;
  found.time_limit = limits.seconds;
  found.work_limit = limits.work;
  return found;
}

void bind_driver(nb::module_& module) {
  bind_progress(module);
  module.def(
      "plan", &plan, nb::arg("graph"), nb::arg("budget") = nb::none(), nb::kw_only(),
      nb::arg("order") = "free", nb::arg("objective") = "time", nb::arg("time_limit") = nb::none(),
      nb::arg("solver") = "auto", nb::arg("time") = nb::none(), nb::arg("work") = nb::none(),
      nb::arg("seed") = 0, nb::arg("threads") = 0, nb::arg("options") = nb::none(),
      nb::arg("start") = nb::none(), nb::arg("progress") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("link") = nb::none(),
      nb::arg("techniques") = nb::none(), nb::arg("derate") = nb::none(),
      nb::arg("host_budget") = nb::none(), nb::arg("live_limits") = nb::none(),
      nb::arg("transforms") = nb::none(), nb::arg("costs") = nb::none(),
      nb::arg("footprint") = "live", nb::arg("allocator") = "",
      nb::sig(
          "def plan(graph: Graph | Problem, budget: int | str | None = None, *, order: str = "
          "\"free\", objective: str = \"time\", time_limit: int | str | None = None, solver: "
          "str = \"auto\", time: float | None = None, work: int | None = None, seed: int = 0, "
          "threads: int = 0, options: dict[str, typing.Any] | None = None, start: Plan | "
          "collections.abc.Iterable[Plan] | None = None, progress: "
          "collections.abc.Callable[[Progress], typing.Any] | None = None, device: Device | str "
          "| os.PathLike[str] | None = None, link: str | None = None, techniques: str | "
          "collections.abc.Iterable[str] | None = None, derate: str | float | None = None, "
          "host_budget: int | str | None = None, live_limits: dict[int, int | str] | None "
          "= None, transforms: collections.abc.Sequence[dict[str, typing.Any]] | None = None, "
          "costs: "
          "str | os.PathLike[str] | None = None, footprint: str = \"live\", allocator: str = \"\") "
          "-> Outcome"),
      "Plan a graph for a memory budget. The plan is verified.\n\n"
      "`budget`, `order`, `objective`, `time_limit`, `device`, `link`, `techniques`, `derate`, "
      "`host_budget`, `live_limits`, `transforms`, `costs`: see Problem. `time`: time limit in "
      "seconds (10; none with `work`). `work`: limit on counted work, with the same result on "
      "every machine. `threads`: 0 is all cores. `options`: of the solver, by name, as `lowtide "
      "solvers --options` lists them. A dict sets an option for single ops. `partition`, `block` "
      "and `top` of `hiremate` also accept your own objects, alone or in a list with names. "
      "`footprint`: what the budget limits: \"live\" bytes, the \"arena\" of planned offsets, or "
      "what PyTorch's caching allocator has \"reserved\" under the settings `allocator`. "
      "`start`: start plans, the best first. `progress` is called in the calling thread with a "
      "Progress, at most 20 times a second; an exception in it ends the solve and is "
      "raised.\n\nThe solve releases the interpreter's lock. Ctrl-C ends it and returns the best "
      "plan so far, with stopped_by \"cancelled\"; a second one raises "
      "KeyboardInterrupt.\n\nRaises Error.");
}

}  // namespace lowtide::python
