// Reads and writes plan files (docs/reference/formats.md). check_plan.h verifies a plan.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lowtide/io/json.h"
#include "lowtide/plan/plan_file.h"

namespace lowtide::io {

// InputError with the file's name and the place (a line, or a JSON pointer) for broken JSON, wrong
// types, unknown words and versions, transforms without a price, and transfers without a machine.
// Does not check whether indices, transforms and steps fit a graph.
PlanFile read_plan(const std::string& path);  // "-": standard input; gzip or plain
PlanFile read_plan_text(std::string_view text, const std::string& file_name);

// Transforms, and the hashes of their graph; the hashes are empty if the file has none.
struct TransformsFile {
  std::vector<Transform> transforms;
  std::string graph_hash, transform_hash;
};
// Reads a list of transforms, or an object such as a plan file that has the list under "transforms"
// and may have the hashes beside it. Appends warnings as for PlanFile.
TransformsFile read_transforms(const std::string& path, std::vector<std::string>& warnings);
TransformsFile read_transforms(const JsonDocument& document, const std::string& file_name,
                               std::vector<std::string>& warnings);
// Writes the list alone, or an object with the list and the graph's hashes.
std::string write_transforms(const std::vector<Transform>& transforms);
std::string write_transforms(const std::vector<Transform>& transforms, const Graph& graph);

// Deterministic: several steps on a line, absent fields omitted.
std::string write_plan(const PlanFile& file);

}  // namespace lowtide::io
