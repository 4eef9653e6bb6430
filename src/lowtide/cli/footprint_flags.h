// What a budget limits, as flags.
#pragma once

#include <string>

#include "lowtide/cli/app.h"
#include "lowtide/driver/footprint.h"

namespace lowtide::cli {

struct FootprintFlags {
  std::string footprint = "live", allocator;

  // InputError for settings that PyTorch refuses, and for settings without --footprint reserved.
  driver::FootprintTerms terms() const;
};

// As `--allocator` of several commands: InputError names the flag.
layout::AllocatorSettings allocator_settings(const std::string& given);

// These must outlive the parsing.
void add_footprint_flags(CLI::App& command, FootprintFlags& flags);

}  // namespace lowtide::cli
