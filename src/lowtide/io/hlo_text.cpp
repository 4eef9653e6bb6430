// Parses, checks, puts calls in line, and lowers: first the computations that control runs, callees
// first, then the entry.
#include "lowtide/io/hlo_text.h"

#include <set>
#include <utility>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/device/cards.h"
#include "lowtide/io/hlo/check.h"
#include "lowtide/io/hlo/inline.h"
#include "lowtide/io/hlo/lower.h"
#include "lowtide/io/hlo/opcode.h"
#include "lowtide/io/hlo/order.h"
#include "lowtide/io/hlo/parse.h"
#include "lowtide/io/reader_support.h"
#include "lowtide/plan/plan.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::io {

namespace {

using namespace hlo;

// Which computations run on their own, and not inside of another instruction.
std::vector<bool> run_by_control(const Module& module) {
  std::vector<bool> runs(module.computations.size(), false);
  for (const Computation& computation : module.computations)
    for (const Instruction& one : computation.instructions)
      if (opcode_of(one.opcode).kind == OpcodeKind::control || one.opcode == "async-start")
        for (const Callee& callee : one.called) runs[callee.computation] = true;
  return runs;
}

Run run_of(Known& known, std::uint32_t computation) {
  Lowered lowered = lower(known, computation, false);
  leave_temporaries(lowered.draft);
  const Graph graph =
      build(std::move(lowered.draft), known.module.text, known.module.computations[computation].at);
  const Timeline timeline = simulate(graph, plan_from_sequence(graph, graph.order()));
  lowered.run.temporaries = timeline.cost.peak;
  return std::move(lowered.run);
}

void warn(const Known& known, std::vector<std::string>& warnings) {
  const Module& module = known.module;
  if (!module.scheduled)
    warnings.push_back(
        "the module is not scheduled (is_scheduled=true is missing): its order is none that XLA "
        "runs, and its peak may be far from XLA's; dump it after optimization "
        "(compiled.as_text())");
  if (known.uncounted_loops > 0)
    warnings.push_back(
        std::to_string(known.uncounted_loops) +
        " of its loops have no known_trip_count and do not count from one constant to another: "
        "each counts as one trip");
  std::set<std::string_view> unknown;
  for (const Computation& computation : module.computations)
    for (const Instruction& one : computation.instructions)
      if (opcode_of(one.opcode).kind == OpcodeKind::unknown &&
          async_of(one.opcode).part == AsyncPart::none)
        unknown.insert(one.opcode);
  if (unknown.empty()) return;
  std::string names;
  for (const std::string_view name : unknown) names += (names.empty() ? "" : ", ") + quoted(name);
  warnings.push_back("unknown opcodes, which count as moving their operands: " + names);
}

}  // namespace

bool is_hlo_text(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.empty() || text.front() == '{' || text.front() == '[') return false;
  try {
    return Cursor(text).take("HloModule");
  } catch (const InputError&) {
    return false;  // a comment without an end
  }
}

GraphFile read_hlo(std::string_view text, const HloOptions& options) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  Module module = parse_module(text);
  std::vector<std::uint32_t> order = callees_first(module);
  check_module(module);
  inline_calls(module);
  std::erase_if(order,
                [&](std::uint32_t one) { return module.computations[one].instructions.empty(); });
  const Device& device = options.device ? *options.device : *find_built_in_device(kHloDevice);
  Known known{.module = module,
              .device = device,
              .inside = look_inside(module, order),
              .runs = std::vector<Run>(module.computations.size())};
  const std::vector<bool> runs = run_by_control(module);
  for (const std::uint32_t computation : order)
    if (runs[computation] && computation != module.entry)
      known.runs[computation] = run_of(known, computation);
  Draft draft = lower(known, module.entry, true).draft;
  if (options.outputs_from_start) hold_outputs(draft);
  GraphFile file{build(std::move(draft), text, module.main().at), {}};
  warn(known, file.warnings);
  return file;
}

}  // namespace lowtide::io
