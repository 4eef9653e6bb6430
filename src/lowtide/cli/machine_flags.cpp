#include "lowtide/cli/machine_flags.h"

#include <CLI/CLI.hpp>

#include "lowtide/base/error.h"
#include "lowtide/io/device_json.h"

namespace lowtide::cli {

std::optional<Machine> MachineFlags::machine(const Graph& graph) const {
  try {
    std::optional<Device> named;
    if (!device.empty()) named = io::device_of(device);
    return io::asked_machine(named, link, graph);
  } catch (const InputError& error) {
    if (!error.file().empty()) throw;
    throw InputError("--" + error.place(), error.reason());
  }
}

Techniques MachineFlags::allowed() const {
  return asked_techniques(techniques, !device.empty() || !link.empty());
}

Techniques asked_techniques(const std::string& list, bool has_machine) {
  try {
    return parse_techniques(list, has_machine);
  } catch (const InputError& error) {
    throw InputError("--" + error.place() + " " + list, error.reason());
  }
}

void add_machine_flags(CLI::App& command, MachineFlags& flags) {
  command.add_option("--device", flags.device,
                     "Whose link to the host a plan may use: a name ('lowtide devices') or a file");
  command.add_option(
      "--link", flags.link,
      "That link itself: bytes a second and the latency of a transfer (25GB/s,10us)");
  command
      .add_option("--techniques", flags.techniques,
                  "All that a plan may use: a list of recompute, in_place, offload; default; all")
      ->capture_default_str();
}

}  // namespace lowtide::cli
