// lowtide/plan/plan.h, and the files of it.
#include "lowtide/plan/plan.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/hash.h"
#include "lowtide/io/text_file.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/verify.h"
#include "lowtide/transforms/apply.h"

#include "convert.h"
#include "errors.h"
#include "objects.h"

namespace lowtide::python {

namespace {

void add_step(Plan& plan, nb::handle entry) {
  const auto refuse = [&](const std::string& what) {
    throw InputError("step " + std::to_string(plan.steps.size()),
                     what +
                         "; a step is (\"compute\", \"free\", \"offload\" or \"prefetch\", "
                         "index), or (\"compute_in_place\", op, tensor, ...)");
  };
  const auto index_of = [&](nb::handle item) {
    std::int64_t index = 0;
    if (!nb::try_cast(item, index)) refuse("is no word with indices");
    if (index < 0 || index > 0x7fffffff) refuse(std::to_string(index) + " is no index");
    return index;
  };
  std::string word;
  if (!nb::isinstance<nb::sequence>(entry) || nb::len(entry) < 2 || !nb::try_cast(entry[0], word))
    refuse("is no word with indices");
  const auto kind = std::ranges::find(kStepKinds, word,
                                      [](StepKind known) { return std::string(to_string(known)); });
  if (kind == kStepKinds.end()) refuse("\"" + word + "\" is no kind of step");
  Step step{*kind, static_cast<std::int32_t>(index_of(entry[1]))};
  if (step.is_transfer() && !plan.machine)
    refuse("a plan that transfers needs the links that it does so over: name machine");
  const bool in_place = step.kind == StepKind::compute_in_place;
  if (in_place ? nb::len(entry) < 3 : nb::len(entry) != 2) refuse("has another number of indices");
  if (!in_place) return plan.steps.push_back(step);
  std::vector<TensorId> overwritten;
  for (std::size_t i = 2; i < nb::len(entry); ++i)
    overwritten.emplace_back(static_cast<std::size_t>(index_of(entry[i])));
  plan.add_compute(step.op(), overwritten);
}

PlanObject from_steps(nb::handle steps, nb::handle machine) {
  PlanFile file;
  file.plan.machine = machine_from(machine);
  for (nb::handle entry : steps) add_step(file.plan, entry);
  if (!transfers(file.plan)) file.plan.machine.reset();
  return {std::make_shared<const PlanFile>(std::move(file))};
}

// What plan_from_sequence demands, said in the words of the sequence.
PlanObject from_sequence(const GraphObject& graph, nb::handle sequence) {
  std::vector<OpId> ops;
  std::vector<bool> made(graph->tensor_count());
  for (std::size_t i = 0; i < made.size(); ++i)
    made[i] = graph->is_input(TensorId(i)) && !graph->on_host(TensorId(i));
  for (nb::handle entry : sequence) {
    const auto refuse = [&](const std::string& what) {
      throw InputError("sequence[" + std::to_string(ops.size()) + "]", what);
    };
    std::int64_t index = 0;
    if (!nb::try_cast(entry, index)) refuse("is no index of an op");
    if (index < 0 || index >= static_cast<std::int64_t>(graph->op_count()))
      refuse(fmt::format("the graph has {} ops, and none of index {}", graph->op_count(), index));
    const OpId op(static_cast<std::size_t>(index));
    for (const TensorId input : graph->inputs(op))
      if (!made[input.index()])
        refuse(graph->label(op) + " reads " + graph->label(input) +
               ", which nothing before it makes");
    for (const TensorId output : graph->outputs(op)) made[output.index()] = true;
    ops.push_back(op);
  }
  PlanFile file;
  file.plan = plan_from_sequence(*graph, ops);
  return {std::make_shared<const PlanFile>(std::move(file))};
}

nb::list steps_of(const PlanObject& plan) {
  std::array<nb::object, kStepKinds.size()> words;
  for (const StepKind kind : kStepKinds) {
    const std::string_view word = to_string(kind);
    words[static_cast<std::size_t>(kind)] = nb::str(word.data(), word.size());
  }
  nb::list list;
  for (const Step& step : plan.file->plan.steps) {
    nb::object entry = nb::make_tuple(words[static_cast<std::size_t>(step.kind)], step.index);
    if (step.count > 0) {
      nb::list longer(entry);
      for (const TensorId gone : plan.file->plan.overwritten(step)) longer.append(gone.index());
      entry = nb::tuple(longer);
    }
    list.append(entry);
  }
  return list;
}

PlanObject from_json(nb::handle text, const std::string& name) {
  PlanFile file;
  {
    const std::string_view read = text_or_bytes(text);
    const nb::gil_scoped_release released;
    file = io::read_plan_text(read, name);
  }
  warn(name, file.warnings);
  file.warnings.clear();
  return {std::make_shared<const PlanFile>(std::move(file))};
}

PlanObject load(nb::handle path) {
  const std::string name = path_of(path);
  PlanFile file;
  {
    const nb::gil_scoped_release released;
    file = io::read_plan(name);
  }
  warn(io::name_of_file(name), file.warnings);
  file.warnings.clear();
  return {std::make_shared<const PlanFile>(std::move(file))};
}

// A plan of bare steps claims what it costs, and no more.
PlanFile claimed(const PlanFile& bare, const Graph& graph) {
  PlanFile file = bare;
  file.graph_hash = graph_hash(graph);
  file.graph_name = graph.name();
  const Verdict verdict = verify(
      {.graph = graph, .budget = Bytes::max(), .order = file.order, .machine = file.plan.machine},
      file.plan);
  if (!verdict.ok) throw PlanRefused(verdict.violation->reason, verdict.violation->step);
  file.claims = {
      .status = Status::feasible, .duration = verdict.cost.duration, .peak = verdict.cost.peak};
  return file;
}

std::string text_of(const PlanFile& file, const GraphObject* graph) {
  if (file.graph_hash.empty()) {
    if (graph == nullptr)
      throw InputError("graph", "is missing: a plan made of steps does not know its graph");
    return io::write_plan(claimed(file, **graph));
  }
  if (graph != nullptr)
    if (const std::string hash = graph_hash(**graph); hash != file.graph_hash)
      throw WrongGraph("the plan is for another graph: its hash is " + file.graph_hash +
                       ", this graph's " + hash);
  return io::write_plan(file);
}

void save(const PlanObject& plan, nb::handle path, const GraphObject* graph) {
  const std::string name = path_of(path);
  const nb::gil_scoped_release released;
  io::write_text_file(name, text_of(*plan.file, graph));
}

std::string to_json(const PlanObject& plan, const GraphObject* graph) {
  const nb::gil_scoped_release released;
  return text_of(*plan.file, graph);
}

nb::object apply(const GraphObject& graph, const PlanObject& plan) {
  const PlanFile& file = *plan.file;
  if (!file.graph_hash.empty() && graph_hash(*graph) != file.graph_hash)
    throw WrongGraph("the plan is for another graph: its hash is " + file.graph_hash +
                     ", this graph's " + graph_hash(*graph));
  AppliedPlan applied = apply_plan(*graph, file);
  if (file.graph_hash.empty()) applied.file.graph_hash.clear();
  return nb::make_tuple(make_graph(std::move(applied.graph)),
                        PlanObject{std::make_shared<const PlanFile>(std::move(applied.file))});
}

nb::dict transform(const GraphObject& graph, nb::handle list) {
  const std::vector<Transform> transforms = transforms_from(list);
  TransformedGraph made = [&] {
    const nb::gil_scoped_release released;
    return apply_transforms(*graph, transforms);
  }();
  nb::list ops, tensors, sources, parts;
  for (const OpId op : AllIds<OpId>(made.graph.op_count())) {
    ops.append(made.op_index[op].index());
    sources.append(
        if_any(made.source[op].valid(), static_cast<std::int64_t>(made.source[op].index())));
    nb::list of;
    for (const PartOf& part : made.parts[op]) of.append(nb::make_tuple(part.transform, part.part));
    parts.append(of);
  }
  for (const TensorId tensor : AllIds<TensorId>(made.graph.tensor_count()))
    tensors.append(made.tensor_index[tensor].index());
  nb::dict result;
  result["graph"] = make_graph(std::move(made.graph));
  result["ops"] = ops;
  result["tensors"] = tensors;
  result["sources"] = sources;
  result["parts"] = parts;
  return result;
}

template <class Unit>
nb::object if_there(const std::optional<Unit>& value) {
  return if_any(value.has_value(), value ? value->count() : 0);
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<PlanObject>(
      module, "Plan",
      "All steps of a run, in order: (\"compute\", op), (\"compute_in_place\", op, tensor, ...) "
      "that overwrites these inputs, (\"free\", tensor), and in plans with transfers (\"offload\", "
      "tensor), (\"prefetch\", tensor). Immutable.\n\nA plan of a file or an Outcome has its "
      "graph's hash, its budget and its claims; Plan(steps) has none of these.")
      .def(
          "__init__",
          [](PlanObject* self, nb::handle steps, nb::handle machine) {
            new (self) PlanObject(from_steps(steps, machine));
          },
          nb::arg("steps"), nb::kw_only(), nb::arg("machine") = nb::none(),
          nb::sig("def __init__(self, steps: collections.abc.Iterable[tuple[typing.Any, ...]], *, "
                  "machine: dict[str, dict[str, int]] | None = None) -> None"),
          "`machine`: the links of a plan that transfers, as in `Problem.machine`.")
      .def_static("from_sequence", &from_sequence, nb::arg("graph"), nb::arg("sequence"),
                  nb::sig("def from_sequence(graph: Graph, sequence: "
                          "collections.abc.Iterable[int]) -> Plan"),
                  "The plan that computes these ops in this order, possibly some of them several "
                  "times. It frees every tensor as early as possible, and runs ops in place if the "
                  "graph allows. Raises Error for an op whose inputs are not computed before it.")
      .def_static("load", &load, nb::arg("path"),
                  nb::sig("def load(path: str | os.PathLike[str]) -> Plan"),
                  "Read a plan file. Raises Error. Does not verify the plan.")
      .def_static("from_json", &from_json, nb::arg("text"), nb::arg("name") = "<text>",
                  nb::sig("def from_json(text: str | bytes, name: str = \"<text>\") -> Plan"),
                  "Read a plan from the text of a file; errors call it `name`.")
      .def("save", &save, nb::arg("path"), nb::arg("graph") = nb::none(),
           nb::sig(
               "def save(self, path: str | os.PathLike[str], graph: Graph | None = None) -> None"),
           "Write a plan file, compressed if the path ends in .gz.\n\n"
           "A plan made of steps needs its graph, and is verified first: PlanError.")
      .def("to_json", &to_json, nb::arg("graph") = nb::none(),
           nb::sig("def to_json(self, graph: Graph | None = None) -> str"),
           "The text of the file that `save` writes.")
      .def_prop_ro("steps", &steps_of, nb::sig("def steps(self) -> list[tuple[typing.Any, ...]]"),
                   "A new list of the steps.")
      .def_prop_ro(
          "transforms",
          [](const PlanObject& plan) { return transforms_list(plan.file->plan.transforms); },
          nb::sig("def transforms(self) -> list[dict[str, typing.Any]]"),
          "The transforms, as in a plan file. The steps refer to the transformed graph, see "
          "`apply`.")
      .def_prop_ro(
          "sequence",
          [](const PlanObject& plan) {
            nb::list list;
            for (const OpId op : computations(plan.file->plan)) list.append(op.index());
            return list;
          },
          nb::sig("def sequence(self) -> list[int]"), "Indices of the computed ops, in order.")
      .def_prop_ro(
          "graph_hash",
          [](const PlanObject& plan) -> std::optional<std::string> {
            if (plan.file->graph_hash.empty()) return std::nullopt;
            return plan.file->graph_hash;
          },
          "Hash of its graph, or None.")
      .def_prop_ro(
          "budget", [](const PlanObject& plan) { return if_there(plan.file->budget); },
          nb::sig("def budget(self) -> int | None"), "Its budget in bytes, or None.")
      .def_prop_ro(
          "footprint", [](const PlanObject& plan) { return to_string(plan.file->footprint); },
          "What its budget limits: \"live\", \"arena\" or \"reserved\" bytes.")
      .def_prop_ro(
          "offsets", [](const PlanObject& plan) { return offsets_list(plan.file->offsets); },
          nb::sig("def offsets(self) -> list[tuple[int | None, int | None, int]]"),
          "(step, tensor, offset) as in a plan file; empty if it has none. See `place`.")
      .def_prop_ro(
          "alignment", [](const PlanObject& plan) { return if_there(plan.file->alignment); },
          nb::sig("def alignment(self) -> int | None"), "Of the offsets, or None.")
      .def_prop_ro(
          "claimed_arena", [](const PlanObject& plan) { return if_there(plan.file->claims.arena); },
          nb::sig("def claimed_arena(self) -> int | None"), "In bytes, or None.")
      .def_prop_ro("order", [](const PlanObject& plan) { return to_string(plan.file->order); })
      .def_prop_ro(
          "machine",
          [](const PlanObject& plan) { return machine_or_none(plan.file->plan.machine); },
          nb::sig("def machine(self) -> dict[str, dict[str, int]] | None"),
          "The derated link in ticks, as in a plan file, or None.")
      .def_prop_ro(
          "full_link", [](const PlanObject& plan) { return machine_or_none(plan.file->full_link); },
          nb::sig("def full_link(self) -> dict[str, dict[str, int]] | None"),
          "The link before derating, or None.")
      .def_prop_ro(
          "techniques",
          [](const PlanObject& plan) -> nb::object {
            if (!plan.file->techniques) return nb::none();
            return names_from(*plan.file->techniques);
          },
          nb::sig("def techniques(self) -> list[str] | None"),
          "The allowed techniques, or None if its file has none.")
      .def_prop_ro(
          "host_budget", [](const PlanObject& plan) { return if_there(plan.file->host_budget); },
          nb::sig("def host_budget(self) -> int | None"), "Its host budget in bytes, or None.")
      .def_prop_ro(
          "claimed_duration",
          [](const PlanObject& plan) { return if_there(plan.file->claims.duration); },
          nb::sig("def claimed_duration(self) -> int | None"), "In ticks; `verify` checks it.")
      .def_prop_ro(
          "claimed_peak", [](const PlanObject& plan) { return if_there(plan.file->claims.peak); },
          nb::sig("def claimed_peak(self) -> int | None"), "In bytes; `verify` checks it.")
      .def_prop_ro(
          "claimed_bound", [](const PlanObject& plan) { return if_there(plan.file->claims.bound); },
          nb::sig("def claimed_bound(self) -> int | None"),
          "The lower bound on the duration in ticks.")
      .def_prop_ro(
          "bound_scope",
          [](const PlanObject& plan) -> std::optional<std::string> {
            const auto& scope = plan.file->claims.bound_scope;
            if (!scope) return std::nullopt;
            return std::string(to_string(*scope));
          },
          "With transforms: the plans for which the bound holds, \"graph\" (of this transformed "
          "graph) or \"techniques\" (with any transforms); otherwise None.")
      .def_prop_ro(
          "claimed_duration_full_link",
          [](const PlanObject& plan) { return if_there(plan.file->claims.duration_full_link); },
          nb::sig("def claimed_duration_full_link(self) -> int | None"),
          "Duration over `full_link` in ticks; `verify` checks it.")
      .def("__len__", [](const PlanObject& plan) { return plan.file->plan.steps.size(); })
      .def("__getstate__", [](const PlanObject& plan) { return io::write_plan(*plan.file); })
      .def("__setstate__",
           [](PlanObject* self, const std::string& text) {
             new (self)
                 PlanObject{std::make_shared<const PlanFile>(io::read_plan_text(text, "<pickle>"))};
           })
      .def("__repr__", [](const PlanObject& plan) {
        return fmt::format("<lowtide.Plan: {} steps>", plan.file->plan.steps.size());
      });
  module.def("apply", &apply, nb::arg("graph"), nb::arg("plan"),
             nb::sig("def apply(graph: Graph, plan: Plan) -> tuple[Graph, Plan]"),
             "The transformed graph, with new indices, and the same plan for it without "
             "transforms.\n\nRaises PlanError for an illegal transform, WrongGraphError for a plan "
             "for another graph.");
  module.def("transform", &transform, nb::arg("graph"), nb::arg("transforms"),
             nb::sig("def transform(graph: Graph, transforms: "
                     "collections.abc.Sequence[dict[str, typing.Any]]) -> dict[str, typing.Any]"),
             "Apply transforms, in the form of `Plan.transforms`. Returns a dict: \"graph\", with "
             "new indices; \"ops\" and \"tensors\", their indices in plans; \"sources\", for each "
             "op the original op that it is, computes a part of, or joins the parts of, or None; "
             "\"parts\", for each op a list of pairs of a transform and a part (-1 for work before "
             "the parts), the outermost first.\n\nRaises PlanError for an illegal transform.");
}

}  // namespace lowtide::python
