// The flags that say which links to the host a problem has.
#pragma once

#include <optional>
#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/machine.h"

namespace CLI {
class App;
}

namespace lowtide::cli {

struct MachineFlags {
  std::string device, link;

  // Nothing if neither flag is given. InputError that names the flag.
  std::optional<Machine> machine(const Graph& graph) const;
};

// `flags` must outlive the parsing.
void add_machine_flags(CLI::App& command, MachineFlags& flags);

}  // namespace lowtide::cli
