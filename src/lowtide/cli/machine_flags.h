// The flags that say what a plan may use: which techniques, and which links to the host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lowtide/plan/terms.h"

namespace CLI {
class App;
}

namespace lowtide::cli {

struct MachineFlags {
  std::string device, link, techniques = "default";
  std::optional<std::string> derate, host_budget;

  // InputError that names the flag.
  Terms terms(Order order, const Graph& graph, std::vector<Transform> transforms = {}) const;
};

// What --techniques says; InputError that names the flag.
Techniques asked_techniques(const std::string& list, bool has_machine);

// `flags` must outlive the parsing.
void add_machine_flags(CLI::App& command, MachineFlags& flags);

}  // namespace lowtide::cli
