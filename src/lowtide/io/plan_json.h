// Plan files in and out; docs/reference/formats.md has the format, check_plan.h judges one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lowtide/io/json.h"
#include "lowtide/plan/plan_file.h"

namespace lowtide::io {

// InputError with the file's name and the place (a line, or a JSON pointer) for broken JSON, wrong
// types, unknown words and versions, transforms that lack a price, and transfers without a machine.
// Whether indices, transforms and steps fit a graph is not looked at.
PlanFile read_plan(const std::string& path);  // "-": standard input; gzip or plain
PlanFile read_plan_text(std::string_view text, const std::string& file_name);

// Transforms, and the hashes of the graph that they are for, which are empty where nothing says
// them.
struct TransformsFile {
  std::vector<Transform> transforms;
  std::string graph_hash, transform_hash;
};
// A list of transforms by itself, or under the key "transforms" of an object such as a plan file,
// which may have the hashes beside it. Appends warnings as PlanFile has them.
TransformsFile read_transforms(const std::string& path, std::vector<std::string>& warnings);
TransformsFile read_transforms(const JsonDocument& document, const std::string& file_name,
                               std::vector<std::string>& warnings);
// The list alone, and an object with the graph's hashes beside it.
std::string write_transforms(const std::vector<Transform>& transforms);
std::string write_transforms(const std::vector<Transform>& transforms, const Graph& graph);

// Deterministic; several steps on a line, what is absent left out.
std::string write_plan(const PlanFile& file);

}  // namespace lowtide::io
