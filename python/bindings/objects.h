// What the Python objects hold. They share their graphs and plans, which never change, so that a
// copy costs nothing and every object may outlive the one it came from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
// A file without these would take the same types for classes of its own.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "lowtide/driver/footprint.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/layout/place_plan.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/plan/question.h"

namespace lowtide::python {

namespace nb = nanobind;

struct GraphObject {
  std::shared_ptr<const Graph> graph;
  // Computed when first asked for.
  mutable std::optional<Bytes> own_peak = std::nullopt;
  mutable std::string hash = {};

  const Graph& operator*() const { return *graph; }
  const Graph* operator->() const { return graph.get(); }
};

GraphObject make_graph(Graph graph);
const std::string& graph_hash_of(const GraphObject& graph);

// A plan of a file or of an outcome knows which graph it is for and what it claims; one made of
// steps alone has an empty hash and claims nothing.
struct PlanObject {
  std::shared_ptr<const PlanFile> file;
};

struct ProblemObject {
  GraphObject graph;
  Bytes budget;
  std::optional<Ticks> time_limit;
  Objective objective = Objective::least_time;
  Terms terms = {};
  std::vector<LiveLimit> live_limits = {};

  Question question() const {
    Question question = question_on(*graph, budget, terms);
    question.problem.time_limit = time_limit;
    question.problem.objective = objective;
    question.live_limits = live_limits;
    return question;
  }
};

struct OutcomeObject {
  ProblemObject asked;
  std::shared_ptr<const Outcome> outcome;
  FoundBy how;  // it was asked for: solver, seed, limits
  bool supported = true;
  double seconds = 0;
  driver::FootprintTerms footprint = {};  // what the budget limits
  std::optional<Taken> taken = {};        // of it, by the plan
  // Made when first asked for.
  mutable std::shared_ptr<const PlanFile> file = nullptr;

  const Outcome* operator->() const { return outcome.get(); }
};

// Operands and arguments as a graph file has them.
nb::list operand_list(const std::vector<Operand>& list);
nb::dict argument_dict(const std::vector<Argument>& list);

// Offsets as tuples (step, tensor, offset), None as in a plan file.
nb::list offsets_list(const std::vector<PlannedOffset>& offsets);

// The file that `lowtide plan -o` writes for it.
PlanFile file_of(const OutcomeObject& outcome);

// One for each header that has something to say to Python.
void bind_errors(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_blocks(nb::class_<GraphObject>& graph);
void bind_repeats(nb::module_& module, nb::class_<GraphObject>& graph);
void bind_dimensions(nb::module_& module, nb::class_<GraphObject>& graph);
void bind_edited(nb::class_<GraphObject>& graph);
void bind_regions(nb::class_<GraphObject>& graph);
void bind_substitution_rules(nb::module_& module);
void bind_generate(nb::module_& module);
void bind_device(nb::module_& module);
void bind_roofline(nb::module_& module);
void bind_op_price(nb::module_& module);
void bind_place(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_problem(nb::module_& module);
void bind_outcome(nb::module_& module);
void bind_simulate(nb::module_& module);
void bind_verify(nb::module_& module);
void bind_context(nb::module_& module);
void bind_partition(nb::module_& module);
void bind_pictures(nb::module_& module);
void bind_block_solver(nb::module_& module);
void bind_solver(nb::module_& module);
void bind_driver(nb::module_& module);
void bind_tradeoff(nb::module_& module);
void bind_report(nb::module_& module);
void bind_run(nb::module_& module);
void bind_engines(nb::module_& module);
void bind_replay(nb::module_& module);
void bind_footprint(nb::module_& module);

}  // namespace lowtide::python
