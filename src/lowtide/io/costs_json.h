// Cost files in and out (docs/reference/devices.md): what calls were seen to take on one machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lowtide/device/cost_table.h"

namespace lowtide::io {

struct CostFile {
  std::string device;  // whose costs they are, for people; may be empty
  CostTable table;
  std::vector<std::string> warnings;  // of reading it
};

// InputError with the file's name and the place (a line, or a JSON pointer) for broken JSON, for
// what is missing, for numbers that are not whole or negative, and for a call that stands twice.
// Unknown keys give one warning.
CostFile read_costs(const std::string& path);  // "-": standard input; gzip or plain
CostFile read_costs_text(std::string_view text, const std::string& file_name);

// The file of it; reading it gives the same.
std::string write_costs(const CostFile& costs);

}  // namespace lowtide::io
