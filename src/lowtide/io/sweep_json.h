// Reads the file of a sweep (docs/reference/formats.md): plans of many graphs, with many settings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lowtide::io {

// One plan of a sweep. The settings are the arguments of `lowtide plan`.
struct SweepTask {
  // 16 hexadecimal digits: a hash of the settings, with the content of files in the place of their
  // names.
  std::string key;
  // The settings that the file has, in the order of sweep_settings(): each name, with its value as
  // JSON.
  std::vector<std::pair<std::string, std::string>> given;

  std::string graph, budget;  // the path of the graph's file
  std::string techniques = "default", order = "free", footprint = "live", allocator;
  std::optional<std::string> device, link, derate, host_budget, costs;
  std::string solver = "auto";
  std::vector<std::string> options;  // NAME=VALUE
  std::optional<double> time;
  std::optional<std::int64_t> work;
  std::uint64_t seed = 0;
  int threads = 1;
};

// The names of all settings.
std::vector<std::string> sweep_settings();

// The combinations of the file's values, each once, tasks of one graph in a row. Names of files are
// relative to the folder of this file, and become paths. Reads all of these files. InputError with
// the file's name for broken JSON, unknown and missing keys, wrong values, and unreadable files.
std::vector<SweepTask> read_sweep(const std::string& path);

}  // namespace lowtide::io
