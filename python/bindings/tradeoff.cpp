// lowtide/plan/tradeoff.h, lowtide/driver/curve.h and fit.h, and what lowtide/io writes of them.
#include "lowtide/plan/tradeoff.h"

#include <chrono>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/driver/curve.h"
#include "lowtide/driver/fit.h"
#include "lowtide/io/curve_data.h"
#include "lowtide/io/text_file.h"
#include "lowtide/report/curve_html.h"
#include "lowtide/report/curve_text.h"
#include "lowtide/report/units_text.h"

#include "convert.h"
#include "objects.h"
#include "run.h"
#include "search.h"
#include "solver.h"

namespace lowtide::python {

namespace {

struct CurveObject {
  GraphObject graph;
  driver::FootprintTerms footprint;
  std::shared_ptr<const Tradeoff> curve;
  FoundBy how;
  io::RunFacts facts;
};
struct FitObject {
  GraphObject graph;
  driver::FootprintTerms footprint;
  std::shared_ptr<const Fit> fit;
  FoundBy how;
  io::RunFacts facts;
};

// The point belongs to `whole` and keeps it alive.
template <class Object, class Whole>
OutcomeObject outcome_of(const Object& from, const std::shared_ptr<const Whole>& whole,
                         const TradeoffPoint& point) {
  OutcomeObject outcome;
  outcome.asked.graph = from.graph;
  outcome.asked.budget = point.budget;
  outcome.asked.terms = whole->terms;
  outcome.outcome = {whole, &point.outcome};
  outcome.how = from.how;
  outcome.footprint = from.footprint;
  outcome.taken = point.taken;
  return outcome;
}

std::int64_t checked_points(std::int64_t points) {
  if (points < 2 || points > 10000)
    throw InputError("points " + std::to_string(points), "is not in range [2 - 10000]");
  return points;
}

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

report::TerminalStyle style_of(std::size_t width, bool colour, bool unicode) {
  return {.width = width, .colour = colour, .unicode = unicode};
}

CurveObject draw(const GraphObject& graph, nb::handle from, nb::handle to, std::int64_t points,
                 const std::string& order, const std::string& solver, std::optional<double> time,
                 std::optional<std::int64_t> work, std::uint64_t seed, int threads,
                 const std::optional<nb::dict>& options, nb::object progress, nb::handle device,
                 const std::optional<std::string>& link, nb::handle techniques, nb::handle derate,
                 nb::handle host_budget, nb::handle costs, const std::string& footprint,
                 const std::string& allocator) {
  const Search search{time, work, seed, threads};
  CancelToken token;
  driver::CurveRequest request;
  request.footprint = footprint_of(footprint, allocator);
  request.terms = terms_of({order, device, link, techniques, derate, host_budget, costs}, *graph);
  request.from = budget_of(from, *graph, "from_");
  request.to = budget_of(to, *graph, "to");
  if (request.from > request.to)
    throw InputError(std::string("from_ ") + nb::str(from).c_str(),
                     fmt::format("is more than to {}: {} against {}; give the smaller first",
                                 nb::str(to).c_str(), report::bytes_text(request.from),
                                 report::bytes_text(request.to)));
  request.points = static_cast<std::size_t>(checked_points(points));
  GivenOptions own = options_of(solver, options);
  request.settings = {.solver = solver,
                      .options = std::move(own.texts),
                      .limits = search.limits(token),
                      .seed = seed,
                      .threads = search.thread_count()};
  Courier<driver::CurveProgress> courier(std::move(progress));
  if (courier.wanted())
    request.watcher = [&](const driver::CurveProgress& now) { courier.post(now); };
  CurveObject result;
  result.graph = graph;
  result.footprint = request.footprint;
  result.how = search.found_by(solver, request.settings.limits);
  const solve::SolverTable solvers = all_solvers(graph, own.guests);
  const auto begun = std::chrono::steady_clock::now();
  run_beside(
      token,
      [&] {
        result.curve = std::make_shared<const Tradeoff>(driver::curve(solvers, *graph, request));
      },
      [&](bool last) { courier.deliver(last); });
  result.facts = {seed, seconds_since(begun)};
  return result;
}

FitObject smallest(const GraphObject& graph, nb::handle overhead, const std::string& order,
                   const std::string& solver, std::optional<double> time,
                   std::optional<std::int64_t> work, std::uint64_t seed, int threads,
                   const std::optional<nb::dict>& options, nb::object progress, nb::handle device,
                   const std::optional<std::string>& link, nb::handle techniques, nb::handle derate,
                   nb::handle host_budget, nb::handle costs, const std::string& footprint,
                   const std::string& allocator) {
  const Search search{time, work, seed, threads};
  CancelToken token;
  driver::FitRequest request;
  request.footprint = footprint_of(footprint, allocator);
  request.terms = terms_of({order, device, link, techniques, derate, host_budget, costs}, *graph);
  request.time_limit = overhead_limit_of(overhead, *graph);
  GivenOptions own = options_of(solver, options);
  request.settings = {.solver = solver,
                      .options = std::move(own.texts),
                      .limits = search.limits(token),
                      .seed = seed,
                      .threads = search.thread_count()};
  Courier<driver::FitProgress> courier(std::move(progress));
  if (courier.wanted())
    request.watcher = [&](const driver::FitProgress& now) { courier.post(now); };
  FitObject result;
  result.graph = graph;
  result.footprint = request.footprint;
  result.how = search.found_by(solver, request.settings.limits);
  const solve::SolverTable solvers = all_solvers(graph, own.guests);
  const auto begun = std::chrono::steady_clock::now();
  run_beside(
      token,
      [&] { result.fit = std::make_shared<const Fit>(driver::fit(solvers, *graph, request)); },
      [&](bool last) { courier.deliver(last); });
  result.facts = {seed, seconds_since(begun)};
  return result;
}

// Of which the curve beside it, if any, is one of the same graph.
std::string page_of(const CurveObject& c, const CurveObject* beside) {
  if (beside != nullptr && graph_hash_of(beside->graph) != graph_hash_of(c.graph))
    throw InputError("beside", "is a curve of another graph: give one of the same");
  return report::html_curve(*c.graph, *c.curve, beside != nullptr ? beside->curve.get() : nullptr);
}

void bind_progress(nb::module_& module) {
  nb::class_<driver::CurveProgress>(module, "CurveProgress", "The progress of a curve.")
      .def_ro("points", &driver::CurveProgress::points)
      .def_ro("planned", &driver::CurveProgress::planned, "Points with a plan.")
      .def_ro("settled", &driver::CurveProgress::settled, "Points with nothing left to find.")
      .def_prop_ro(
          "widest_gap", [](const driver::CurveProgress& p) { return p.widest_gap / 100; },
          "Largest difference between overhead and bound, over all points.")
      .def_prop_ro(
          "smallest", [](const driver::CurveProgress& p) { return p.smallest.count(); },
          "The smallest budget with a known plan, in bytes.");
  nb::class_<driver::FitProgress>(module, "FitProgress", "The progress of a fit.")
      .def_prop_ro(
          "floor", [](const driver::FitProgress& p) { return p.floor.count(); },
          "In bytes: proven that no smaller budget has such a plan.")
      .def_prop_ro(
          "budget", [](const driver::FitProgress& p) { return p.budget.count(); },
          "In bytes: the smallest budget with a known plan.");
}

void bind_curve(nb::module_& module) {
  nb::class_<CurveObject>(module, "Curve",
                          "The trade-off of time and memory: a plan for each budget of a range.")
      .def_prop_ro(
          "points",
          [](const CurveObject& c) {
            nb::list list;
            for (const TradeoffPoint& point : c.curve->points)
              list.append(outcome_of(c, c.curve, point));
            return list;
          },
          nb::sig("def points(self) -> list[Outcome]"), "One for each budget, ascending.")
      .def_prop_ro(
          "smallest",
          [](const CurveObject& c) -> std::optional<OutcomeObject> {
            if (!c.curve->smallest) return std::nullopt;
            return outcome_of(c, c.curve, *c.curve->smallest);
          },
          "The outcome for the smallest budget with a plan, or None.")
      .def_prop_ro(
          "floor", [](const CurveObject& c) { return c.curve->floor.count(); },
          "The lower bound on the peak in bytes.")
      .def_prop_ro(
          "own_peak", [](const CurveObject& c) { return c.curve->own_peak.count(); },
          "The baseline peak in bytes.")
      .def_prop_ro("stopped_by",
                   [](const CurveObject& c) { return to_string(c.curve->stopped_by); })
      .def_prop_ro("seconds", [](const CurveObject& c) { return c.facts.seconds; })
      .def_prop_ro("graph", [](const CurveObject& c) { return c.graph; })
      .def(
          "to_csv", [](const CurveObject& c) { return io::curve_csv(*c.graph, *c.curve); },
          "As `lowtide curve --csv` writes it.")
      .def(
          "to_json",
          [](const CurveObject& c) { return io::curve_json(*c.graph, *c.curve, c.facts); },
          "As `lowtide curve --json` prints it.")
      .def(
          "to_html",
          [](const CurveObject& c, const CurveObject* beside) { return page_of(c, beside); },
          nb::arg("beside") = nb::none(),
          "One self-contained page. beside: another curve of the graph, drawn as a line.")
      .def(
          "save_html",
          [](const CurveObject& c, nb::handle path, const CurveObject* beside) {
            const std::string name = path_of(path);
            const std::string page = page_of(c, beside);
            const nb::gil_scoped_release released;
            io::write_text_file(name, page);
          },
          nb::arg("path"), nb::arg("beside") = nb::none(),
          nb::sig("def save_html(self, path: str | os.PathLike[str], beside: Curve | None = None) "
                  "-> None"))
      .def(
          "to_text",
          [](const CurveObject& c, std::size_t width, bool colour, bool unicode) {
            return report::curve_text(*c.graph, *c.curve, style_of(width, colour, unicode));
          },
          nb::arg("width") = 80, nb::kw_only(), nb::arg("colour") = false,
          nb::arg("unicode") = true, "As `lowtide curve` prints it.")
      .def("__str__",
           [](const CurveObject& c) {
             return report::curve_text(*c.graph, *c.curve, style_of(80, false, true));
           })
      .def("__len__", [](const CurveObject& c) { return c.curve->points.size(); })
      .def("__repr__", [](const CurveObject& c) {
        return fmt::format("<lowtide.Curve: {} points>", c.curve->points.size());
      });
  module.def(
      "curve", &draw, nb::arg("graph"), nb::arg("from_") = "20%", nb::arg("to") = "100%",
      nb::arg("points") = 16, nb::kw_only(), nb::arg("order") = "free", nb::arg("solver") = "auto",
      nb::arg("time") = nb::none(), nb::arg("work") = nb::none(), nb::arg("seed") = 0,
      nb::arg("threads") = 0, nb::arg("options") = nb::none(), nb::arg("progress") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("link") = nb::none(),
      nb::arg("techniques") = nb::none(), nb::arg("derate") = nb::none(),
      nb::arg("host_budget") = nb::none(), nb::arg("costs") = nb::none(),
      nb::arg("footprint") = "live", nb::arg("allocator") = "",
      nb::sig(
          "def curve(graph: Graph, from_: int | str = \"20%\", to: int | str = \"100%\", "
          "points: int = 16, *, order: str = \"free\", solver: str = \"auto\", time: float | None "
          "= "
          "None, work: int | None = None, seed: int = 0, threads: int = 0, options: dict[str, "
          "typing.Any] | None = None, progress: "
          "collections.abc.Callable[[CurveProgress], typing.Any] | None = None, device: Device "
          "| str | os.PathLike[str] | None = None, link: str | None = None, "
          "techniques: str | collections.abc.Iterable[str] | None = None, derate: str | float "
          "| None = None, host_budget: int | str | None = None, costs: str | os.PathLike[str] | "
          "None = None, footprint: str = \"live\", allocator: str = \"\") -> Curve"),
      "Plan `points` budgets, evenly spaced from `from_` to `to`, in one run.\n\n"
      "The limits are for the whole curve; otherwise as `plan`. Raises Error.");
}

void bind_fit(nb::module_& module) {
  nb::class_<FitObject>(module, "Fit", "The smallest budget for a given overhead.")
      .def_prop_ro(
          "outcome",
          [](const FitObject& f) -> std::optional<OutcomeObject> {
            if (!f.fit->point) return std::nullopt;
            return outcome_of(f, f.fit, *f.fit->point);
          },
          "The outcome for the smallest budget with such a plan, or None.")
      .def_prop_ro(
          "budget",
          [](const FitObject& f) {
            return if_any(f.fit->point.has_value(),
                          f.fit->point ? f.fit->point->budget.count() : 0);
          },
          nb::sig("def budget(self) -> int | None"), "In bytes: what that plan needs.")
      .def_prop_ro(
          "floor", [](const FitObject& f) { return f.fit->floor.count(); },
          "In bytes: proven that no smaller budget has such a plan.")
      .def_prop_ro(
          "time_limit", [](const FitObject& f) { return f.fit->time_limit.count(); },
          "The allowed duration in ticks.")
      .def_prop_ro("own_peak", [](const FitObject& f) { return f.fit->own_peak.count(); })
      .def_prop_ro("stopped_by", [](const FitObject& f) { return to_string(f.fit->stopped_by); })
      .def_prop_ro("seconds", [](const FitObject& f) { return f.facts.seconds; })
      .def(
          "to_json", [](const FitObject& f) { return io::fit_json(*f.graph, *f.fit, f.facts, ""); },
          "As `lowtide fit --json` prints it.")
      .def("__str__",
           [](const FitObject& f) {
             return report::fit_text(*f.graph, *f.fit, style_of(80, false, true));
           })
      .def("__repr__", [](const FitObject& f) {
        return f.fit->point ? fmt::format("<lowtide.Fit: budget {}>", f.fit->point->budget.count())
                            : std::string("<lowtide.Fit: no plan>");
      });
  module.def(
      "fit", &smallest, nb::arg("graph"), nb::arg("overhead"), nb::kw_only(),
      nb::arg("order") = "free", nb::arg("solver") = "auto", nb::arg("time") = nb::none(),
      nb::arg("work") = nb::none(), nb::arg("seed") = 0, nb::arg("threads") = 0,
      nb::arg("options") = nb::none(), nb::arg("progress") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("link") = nb::none(),
      nb::arg("techniques") = nb::none(), nb::arg("derate") = nb::none(),
      nb::arg("host_budget") = nb::none(), nb::arg("costs") = nb::none(),
      nb::arg("footprint") = "live", nb::arg("allocator") = "",
      nb::sig(
          "def fit(graph: Graph, overhead: str | float, *, order: str = \"free\", solver: str = "
          "\"auto\", time: float | None = None, work: int | None = None, seed: int = 0, threads: "
          "int = 0, options: dict[str, typing.Any] | None = None, progress: "
          "collections.abc.Callable[[FitProgress], typing.Any] | None = None, device: Device | str "
          "| "
          "os.PathLike[str] | None = None, link: str | None = None, techniques: str | "
          "collections.abc.Iterable[str] | None = None, derate: str | float | None = None, "
          "host_budget: int | str | None = None, costs: str | os.PathLike[str] | None = None, "
          "footprint: str = \"live\", allocator: str = \"\") -> Fit"),
      "Find the smallest budget within which a plan has at most that overhead: a percentage as "
      "the command takes it (\"5%\"), or a fraction (0.05).\n\nOtherwise as `plan`. Raises Error.");
}

}  // namespace

void bind_tradeoff(nb::module_& module) {
  bind_progress(module);
  bind_curve(module);
  bind_fit(module);
}

}  // namespace lowtide::python
