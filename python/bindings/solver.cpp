// lowtide/solve/interface/solver.h: the table, and solvers that are written in Python.
#include "lowtide/solve/interface/solver.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/driver/driver.h"

#include "convert.h"
#include "solver.h"

namespace lowtide::python {

namespace {

using solve::Trait;
using solve::Traits;

struct Registered {
  std::string name, summary;
  Traits traits;
  nb::object solve;
};

// With the interpreter lock held. Never destroyed: it would outlive the interpreter.
std::vector<std::shared_ptr<const Registered>>& registered() {
  static auto* list = new std::vector<std::shared_ptr<const Registered>>;
  return *list;
}

// The thread that solves holds no interpreter lock; it is taken around the call.
class PythonSolver final : public solve::Solver {
 public:
  PythonSolver(std::shared_ptr<const Registered> is, GraphObject graph)
      : is_(std::move(is)), graph_(std::move(graph)) {}

  std::string_view name() const override { return is_->name; }
  std::string_view summary() const override { return is_->summary; }
  Traits traits() const override { return is_->traits; }
  solve::Support supports(const Problem&) const override { return {}; }

  Outcome solve(const Problem& problem, solve::Context& context) const override {
    if (!context.done()) call(problem, context);
    if (!context.engine_believed())
      context.set_note(is_->name +
                       " claimed a lower bound above the duration of a verified plan; the bound is "
                       "ignored");
    return context.finish();
  }

 private:
  void call(const Problem& problem, solve::Context& context) const {
    const nb::gil_scoped_acquire locked;
    const GraphObject graph =
        &problem.graph == graph_.graph.get() ? graph_ : make_graph(Graph(problem.graph));
    nb::object asked = nb::cast(ProblemObject{.graph = graph,
                                              .budget = problem.budget,
                                              .time_limit = problem.time_limit,
                                              .objective = problem.objective,
                                              .terms = {.order = problem.order,
                                                        .machine = problem.machine,
                                                        .techniques = problem.techniques,
                                                        .host_budget = problem.host_budget}});
    struct Handed {
      nb::object context;
      ~Handed() { end_context(context); }
    };
    const Handed handed{make_context(context, graph)};
    const nb::object found = is_->solve(asked, handed.context);
    if (found.is_none()) return;
    if (!nb::isinstance<PlanObject>(found))
      throw nb::type_error(fmt::format("solver \"{}\" returned {}; it must return a Plan or None",
                                       is_->name, nb::type_name(found.type()).c_str())
                               .c_str());
    offer_checked(context, nb::cast<const PlanObject&>(found));
  }

  std::shared_ptr<const Registered> is_;
  GraphObject graph_;
};

constexpr std::array kGiven = {Trait::constructive, Trait::tight,     Trait::anytime,
                               Trait::proving,      Trait::transfers, Trait::external};

Trait given_trait(nb::handle word) {
  if (!nb::isinstance<nb::str>(word)) throw nb::type_error("a trait is a str");
  const auto trait = solve::trait_of(text_of(word));
  if (trait && std::ranges::count(kGiven, *trait) > 0) return *trait;
  std::string words;
  for (const Trait known : kGiven)
    words += (words.empty() ? "" : ", ") + std::string(to_string(known));
  throw InputError(fmt::format("trait \"{}\"", text_of(word)),
                   "is none that a solver may have; there are: " + words);
}

Traits given_traits(nb::handle given) {
  if (nb::isinstance<nb::str>(given))
    throw nb::type_error("traits must be several words, such as (\"constructive\",), not one str");
  Traits traits{Trait::guest};
  for (nb::handle word : given) traits.add(given_trait(word));
  return traits;
}

void require_name(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  if (name.empty() || name.size() > 40 || !std::ranges::all_of(name, fits))
    throw InputError("solver \"" + name + "\"",
                     "is no name; use 1 to 40 letters, digits, dots, hyphens or underscores");
  const auto taken = [&](const auto& solver) { return solver->name() == name; };
  const solve::SolverTable built_in = driver::all_solvers();
  if (std::ranges::any_of(built_in.all(), taken) ||
      std::ranges::any_of(registered(), [&](const auto& other) { return other->name == name; }))
    throw InputError("solver \"" + name + "\"", "there is one of that name; choose another");
}

void register_solver(const std::string& name, nb::object solve, const std::string& summary,
                     nb::handle traits) {
  require_name(name);
  if (!PyCallable_Check(solve.ptr()))
    throw nb::type_error(
        fmt::format("solve must be callable as solve(problem, context), and {} is not",
                    nb::type_name(solve.type()).c_str())
            .c_str());
  registered().push_back(std::make_shared<const Registered>(
      Registered{name, summary, given_traits(traits), std::move(solve)}));
}

}  // namespace

solve::SolverTable all_solvers(const GraphObject& graph, const Guests& guests) {
  solve::SolverTable table = driver::all_solvers();
  if (guests.any()) table.replace(guests.make_hiremate(graph));
  for (const auto& solver : registered()) table.add(std::make_unique<PythonSolver>(solver, graph));
  return table;
}

void bind_solver(nb::module_& module) {
  module.def(
      "solvers",
      [] {
        nb::list list;
        const solve::SolverTable table = all_solvers({});
        for (const auto& solver : table.all()) {
          const nb::object words = nb::cast(solver->traits().words());
          list.append(nb::make_tuple(solver->name(), solver->summary(),
                                     nb::steal<nb::tuple>(PySequence_Tuple(words.ptr()))));
        }
        return list;
      },
      nb::sig("def solvers() -> list[tuple[str, str, tuple[str, ...]]]"),
      "(name, summary, traits) of every solver.");
  module.def(
      "register_solver", &register_solver, nb::arg("name"), nb::arg("solve"), nb::kw_only(),
      nb::arg("summary"), nb::arg("traits") = nb::make_tuple(),
      nb::sig("def register_solver(name: str, solve: collections.abc.Callable[[Problem, Context], "
              "Plan | None], *, summary: str, traits: collections.abc.Iterable[str] = ()) -> "
              "None"),
      "Add a solver to the table of this process: `plan(..., solver=name)` runs it.\n\n"
      "`solve(problem, context)` returns a Plan or None, and may offer plans to the Context; all "
      "are verified. It runs in a thread of its own, holds the interpreter's lock, and must call "
      "`context.should_stop()` often: deadlines, work limits and Ctrl-C act only there. `plan` "
      "raises its exceptions.\n\n"
      "`traits`: \"constructive\", \"tight\", \"anytime\", \"proving\", \"transfers\", "
      "\"external\". A solver with any of the first four also gets its turns in \"auto\". "
      "`summary`: what it is for, in "
      "a line. Raises Error for a name that is taken or a trait that there is not.");
}

}  // namespace lowtide::python
