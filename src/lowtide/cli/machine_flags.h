// The flags for the techniques that a plan may use and for the links to the host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lowtide/cli/app.h"
#include "lowtide/plan/terms.h"

namespace lowtide::cli {

struct MachineFlags {
  std::string techniques = "default";
  std::optional<std::string> device, link, derate, host_budget, costs;

  // InputError that names the flag, or the graph's file if require_plannable refuses the graph.
  Terms terms(Order order, const Graph& graph, const std::string& graph_path,
              std::vector<Transform> transforms = {}) const;
};

// The value of --techniques; InputError that names the flag.
Techniques asked_techniques(const std::string& list, bool has_machine);

// `flags` must outlive the parsing.
void add_machine_flags(CLI::App& command, MachineFlags& flags);

}  // namespace lowtide::cli
