// The flags that say what a plan may use: which techniques, and which links to the host.
#pragma once

#include <optional>
#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/machine.h"
#include "lowtide/plan/techniques.h"

namespace CLI {
class App;
}

namespace lowtide::cli {

struct MachineFlags {
  std::string device, link, techniques = "default";

  // Nothing if neither flag is given. InputError that names the flag.
  std::optional<Machine> machine(const Graph& graph) const;
  // InputError that names the flag.
  Techniques allowed() const;
};

// What --techniques says; InputError that names the flag.
Techniques asked_techniques(const std::string& list, bool has_machine);

// `flags` must outlive the parsing.
void add_machine_flags(CLI::App& command, MachineFlags& flags);

}  // namespace lowtide::cli
