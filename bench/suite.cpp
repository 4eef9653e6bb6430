// Reads the list of what is measured, and the graphs.
#include "bench/suite.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "lowtide/base/error.h"
#include "lowtide/graph/generate.h"
#include "lowtide/io/graph_json.h"

namespace lowtide::bench {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);)
    if (separator != ' ' || !part.empty()) parts.push_back(part);
  return parts;
}

struct Generated {
  std::string kind;
  std::size_t ops = 0;
  std::uint64_t seed = 1;
};

// "resnet-1000", or "resnet-1000-7" for seed 7.
std::optional<Generated> generated(const std::string& source) {
  for (std::string_view kind : generator_kinds()) {
    if (!source.starts_with(std::string(kind) + "-")) continue;
    Generated found{std::string(kind)};
    const char* end = source.data() + source.size();
    auto read = std::from_chars(source.data() + kind.size() + 1, end, found.ops);
    if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, end, found.seed);
    if (read.ec == std::errc() && read.ptr == end) return found;
  }
  return std::nullopt;
}

bool is_graph_file(const std::string& path) {
  const auto ends = [&](const char* suffix) {
    return path.ends_with(std::string(suffix) + ".json") ||
           path.ends_with(std::string(suffix) + ".json.gz");
  };
  return ends("") && !ends(".plan");
}

std::vector<std::string> graph_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && is_graph_file(entry.path().string()))
      files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<Row> read_suite(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw InputError("", "cannot be read", path);
  std::vector<Row> rows;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#' || line.starts_with("set,")) continue;
    const std::vector<std::string> fields = split(line, ',');
    if (fields.size() != 6 || (fields[5] != "base" && fields[5] != "each"))
      throw InputError("line " + std::to_string(number),
                       "wants set,graph,budgets,orders,solvers,variants, the last base or each",
                       path);
    rows.push_back({fields[0], fields[1], split(fields[2], ' '), split(fields[3], ' '),
                    split(fields[4], ' '), fields[5] == "each"});
  }
  return rows;
}

std::vector<Row> find_graphs(const std::vector<Row>& rows, const std::string& data,
                             std::vector<std::string>& absent) {
  std::vector<Row> found;
  for (Row row : rows) {
    const std::string asked = row.graph;
    if (row.graph.starts_with("DATA/")) {
      if (!data.empty()) row.graph = data + row.graph.substr(4);
    }
    if (!generated(row.graph) && !fs::exists(row.graph)) {
      absent.push_back(asked);
    } else if (fs::is_directory(row.graph)) {
      for (const std::string& file : graph_files(row.graph)) {
        found.push_back(row);
        found.back().graph = file;
      }
    } else {
      found.push_back(row);
    }
  }
  return found;
}

std::string graph_name(const std::string& source) {
  if (generated(source)) return source;
  const fs::path path = fs::absolute(source);
  const std::string file = path.filename().string();
  return path.parent_path().filename().string() + "/" + file.substr(0, file.find('.'));
}

Graph open_graph(const std::string& source) {
  if (const auto made = generated(source)) return generate(made->kind, made->ops, made->seed);
  return io::read_graph(source).graph;
}

}  // namespace lowtide::bench
