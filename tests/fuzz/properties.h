// What must hold for any bytes whatever: a reader refuses them with an InputError, or returns
// something that can be written and read again. Anything else is a std::logic_error, or a crash.
// Shared by the fuzzers and by the test that mutates the seeds.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/device/cards.h"
#include "lowtide/graph/builder.h"
#include "lowtide/graph/hash.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/io/hlo_text.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/io/text_file.h"
#include "lowtide/layout/xla_total.h"
#include "lowtide/report/dot.h"
#include "lowtide/rewrite/substitutions.h"
#include "lowtide/rewrite/survey.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/transforms/apply.h"

namespace lowtide {

inline void demand(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

// What a file of these bytes holds: unpacked if they are gzip's.
inline std::string content_of(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b") ? io::gunzip(bytes) : std::string(bytes);
}

// In the given order; without a link nothing brings what is at home on the host.
inline bool holds_as_given(const Graph& graph) {
  return graph.has_tensors_on_host() || !simulate(graph, own_plan(graph)).violation;
}

// What is said to be splittable can be split, and takes as long as is said.
inline void fuzz_regions(const Graph& graph) {
  constexpr std::size_t kMostOps = 64, kMost = 16;
  if (graph.op_count() > kMostOps) return;
  try {
    const Device& device = *find_built_in_device("a100");
    const Applied base = rewrite::hoisted(graph, device, nullptr);
    rewrite::Survey survey = rewrite::survey(base.now.graph, device, nullptr);
    if (survey.found.size() > kMost) survey.found.resize(kMost);
    for (const rewrite::Surveyed& one : survey.found) {
      std::vector<Transform> transforms = base.transforms;
      transforms.emplace_back(rewrite::split_of(base.now, one, device, nullptr));
      const TransformedGraph made = apply_transforms(graph, transforms);
      demand(made.graph.total_time() == one.time, "a split takes another time than it is said to");
      demand(holds_as_given(made.graph), "parts do not hold");
    }
  } catch (const OverflowError&) {     // sizes or times that are too large once there are parts
  } catch (const TransformRefused&) {  // as a whole: too many ops, or a sum that is too large
  }
}

// What a rule is said to replace can be replaced, and saves what is said.
inline void fuzz_substitutions(const Graph& graph) {
  constexpr std::size_t kMostOps = 64;
  if (graph.op_count() > kMostOps) return;
  const TransformedGraph now = apply_transforms(graph, {});
  const PartPricer pricer(now.graph, *find_built_in_device("a100"), nullptr);
  for (const rewrite::Proposed& one : rewrite::substitutions(now, pricer)) {
    try {
      const TransformedGraph made = apply_transforms(graph, std::vector<Transform>{one.substitute});
      demand(graph.total_time() - made.graph.total_time() == one.saved,
             "a substitution saves another time than it is said to");
      demand(holds_as_given(made.graph), "what a rule makes does not hold");
    } catch (const TransformRefused&) {  // one op would wait for itself, or sums are too large
    }
  }
}

// Says whether the bytes were a graph.
inline bool fuzz_graph(std::string_view bytes) {
  try {
    const io::GraphFile file = io::read_graph_text(content_of(bytes), "fuzz");
    const std::string text = io::write_graph(file.graph);
    try {
      const io::GraphFile again = io::read_graph_text(text, "again");
      demand(again.warnings.empty(), "we warn of what we wrote");
      demand(graph_hash(again.graph) == graph_hash(file.graph), "another hash when read again");
      demand(io::write_graph(again.graph) == text, "another text when written again");
    } catch (const InputError& error) {
      throw std::logic_error(std::string("we refuse what we wrote: ") + error.what());
    }
    demand(holds_as_given(file.graph), "its own plan does not hold");
    demand(!report::write_dot(file.graph).empty(), "no picture");
    fuzz_regions(file.graph);
    fuzz_substitutions(file.graph);
    return true;
  } catch (const InputError& error) {
    demand(!error.reason().empty(), "refused without a reason");
    return false;
  }
}

// The same for HLO text; what does not begin as a module does, is made to. With outputs held from
// the start it is a graph, too.
inline bool fuzz_hlo(std::string_view bytes) {
  std::string text = content_of(bytes);
  if (!io::is_hlo_text(text)) text.insert(0, "HloModule fuzz\n");
  if (!fuzz_graph(text)) return false;
  const io::GraphFile held = io::read_graph_text(text, "held", {.outputs_from_start = true});
  demand(holds_as_given(held.graph), "its own plan does not hold with outputs from the start");
  const Plan plan = plan_from_sequence(held.graph, held.graph.order());
  demand(layout::xla_total(held.graph, plan) >= simulate(held.graph, plan).cost.peak,
         "XLA takes less than what is live");
  return true;
}

// x -> relu -> y -> relu -> z, of six rows each, so that fuzzed steps have something to run on and
// fuzzed transforms something to split.
inline Graph fuzz_chain() {
  GraphBuilder builder;
  for (int i = 0; i < 3; ++i) {
    Tensor tensor;
    tensor.bytes = Bytes(96);
    tensor.shape = {6, 4};
    tensor.dtype = "f32";
    builder.add_tensor(std::move(tensor));
  }
  for (const std::size_t i : {0u, 1u}) {
    Op op;
    op.kind = "aten.relu";
    op.operands = {{"self", -1, TensorId(i), {6, 4}, {4, 1}, 0, "f32"}};
    op.results = {{"", -1, TensorId(i + 1), {6, 4}, {4, 1}, 0, "f32"}};
    builder.add_op(std::move(op), std::vector{TensorId(i)}, {TensorId(i + 1)});
  }
  builder.set_outputs({2});
  return builder.build();
}

// Says whether the bytes were a plan.
inline bool fuzz_plan(std::string_view bytes) {
  try {
    PlanFile file = io::read_plan_text(content_of(bytes), "fuzz");
    const std::string text = io::write_plan(file);
    try {
      const PlanFile again = io::read_plan_text(text, "again");
      demand(again.warnings.empty(), "we warn of what we wrote");
      demand(again.plan.steps == file.plan.steps && again.plan.machine == file.plan.machine,
             "other steps when read again");
      demand(again.plan.transforms == file.plan.transforms, "other transforms when read again");
      demand(again.claims == file.claims && again.budget == file.budget &&
                 again.order == file.order && again.graph_hash == file.graph_hash,
             "another file when read again");
      demand(io::write_plan(again) == text, "another text when written again");
    } catch (const InputError& error) {
      throw std::logic_error(std::string("we refuse what we wrote: ") + error.what());
    }
    static const Graph graph = fuzz_chain();
    static const std::string hash = graph_hash(graph);
    file.graph_hash = hash;
    static const std::string transforms = transform_hash(graph);
    file.transform_hash = transforms;
    const PlanVerdict verdict = check_plan(graph, file);
    demand(verdict.reason.empty() == (verdict.kind == PlanVerdict::Kind::holds),
           "a verdict without a reason");
    if (verdict.kind == PlanVerdict::Kind::holds && !file.plan.transforms.empty()) {
      const AppliedPlan applied = apply_plan(graph, file);
      const PlanVerdict ordinary = check_plan(applied.graph, applied.file);
      demand(ordinary.kind == verdict.kind && ordinary.cost == verdict.cost,
             "the applied pair does not hold");
    }
    return true;
  } catch (const InputError& error) {
    demand(!error.reason().empty(), "refused without a reason");
    return false;
  }
}

}  // namespace lowtide
