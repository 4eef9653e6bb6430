#include "lowtide/cli/machine_flags.h"

#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "lowtide/base/error.h"
#include "lowtide/cli/input.h"
#include "lowtide/io/device_json.h"
#include "lowtide/io/text_file.h"

namespace lowtide::cli {

namespace {

// The flag that an error's place speaks of, which begins with the name of a member.
std::string flag_of(const InputError& error) {
  std::string place = "--" + error.place();
  constexpr std::string_view kHostBudget = "--host_budget";
  if (place.starts_with(kHostBudget)) place.replace(0, kHostBudget.size(), "--host-budget");
  return place;
}

}  // namespace

Terms MachineFlags::terms(Order order, const Graph& graph, const std::string& graph_path,
                          std::vector<Transform> transforms) const {
  try {
    Terms terms =
        terms_of({.order = order,
                  .device = device ? std::optional(io::device_of(*device)) : std::nullopt,
                  .link = link,
                  .techniques = techniques,
                  .derate = derate,
                  .host_budget = host_budget,
                  .transforms = std::move(transforms),
                  .costs = costs ? std::make_shared<const CostTable>(load_costs(*costs)) : nullptr},
                 graph);
    require_plannable(question_on(graph, Bytes::max(), terms).problem);
    return terms;
  } catch (const InputError& error) {
    if (!error.file().empty()) throw;
    if (error.place().starts_with('/')) throw error.in_file(io::name_of_file(graph_path));
    throw InputError(flag_of(error), error.reason());
  }
}

Techniques asked_techniques(const std::string& list, bool has_machine) {
  try {
    return parse_techniques(list, has_machine);
  } catch (const InputError& error) {
    throw InputError(flag_of(error), error.reason());
  }
}

void add_machine_flags(CLI::App& command, MachineFlags& flags) {
  command.add_option(
      "--device", flags.device,
      "Device whose link to the host plans may use: a name ('lowtide devices') or a file");
  command.add_option("--link", flags.link,
                     "Link to the host: bytes a second and latency of a transfer (25GB/s,10us); "
                     "overrides the device's");
  command.add_option("--derate", flags.derate,
                     "Share of link bandwidth reserved for other traffic (10%)");
  command.add_option("--host-budget", flags.host_budget,
                     "Most bytes of host memory that a plan may use (64GiB)");
  command.add_option(
      "--costs", flags.costs,
      "Measured costs of parts of ops (a file); they override the device's roofline");
  command
      .add_option("--techniques", flags.techniques,
                  "Techniques that a plan may use: a list of recompute, in_place, offload, split, "
                  "hoist, substitute; default; all")
      ->capture_default_str();
}

}  // namespace lowtide::cli
