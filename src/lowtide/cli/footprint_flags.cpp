#include "lowtide/cli/footprint_flags.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "lowtide/base/error.h"

namespace lowtide::cli {

layout::AllocatorSettings allocator_settings(const std::string& given) {
  try {
    return layout::parse_allocator_settings(given);
  } catch (const InputError& error) {
    throw InputError("--allocator: " + error.place(), error.reason());
  }
}

driver::FootprintTerms FootprintFlags::terms() const {
  driver::FootprintTerms terms;
  terms.kind =
      *std::ranges::find(kFootprints, footprint, [](Footprint kind) { return to_string(kind); });
  if (!allocator.empty() && terms.kind != Footprint::reserved)
    throw InputError("--allocator", "is of use with --footprint reserved only");
  terms.allocator = allocator_settings(allocator);
  return terms;
}

void add_footprint_flags(CLI::App& command, FootprintFlags& flags) {
  command
      .add_option("--footprint", flags.footprint,
                  "What the budget limits: bytes that are live, the arena of planned offsets, or "
                  "what PyTorch's caching allocator reserves")
      ->check(CLI::IsMember({"live", "arena", "reserved"}))
      ->capture_default_str();
  command.add_option("--allocator", flags.allocator,
                     "With --footprint reserved: its settings, as in PYTORCH_ALLOC_CONF");
}

}  // namespace lowtide::cli
