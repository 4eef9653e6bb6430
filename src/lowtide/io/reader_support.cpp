// Messages that more than one reader gives.
#include "lowtide/io/reader_support.h"

namespace lowtide::io {

void UnknownKeys::add(std::string_view where, std::string_view key) {
  std::string name = quoted(key);
  if (!where.empty()) name += " in \"" + std::string(where) + "\"";
  if (seen_.contains(name)) return;
  seen_.insert(name);
  named_.push_back(std::move(name));
}

void UnknownKeys::warn(std::vector<std::string>& warnings) const {
  if (named_.empty()) return;
  constexpr std::size_t kShown = 50;
  std::string text =
      named_.size() == 1 ? "unknown key, without effect: " : "unknown keys, without effect: ";
  for (std::size_t i = 0; i < named_.size() && i < kShown; ++i)
    text += (i == 0 ? "" : ", ") + named_[i];
  if (named_.size() > kShown) text += " and " + std::to_string(named_.size() - kShown) + " more";
  warnings.push_back(std::move(text));
}

bool is_node_link(JsonValue root) {
  if (!root.is(JsonKind::object) || root.find("format")) return false;
  const auto nodes = root.find("nodes");
  return nodes && nodes->is(JsonKind::array);
}

void check_format(JsonValue root, std::string_view format) {
  const bool graph = format == "lowtide-graph";
  // "lowtide-graph" -> "graph"
  const auto word = [](std::string_view of) {
    if (of == "lowtide-costs") return std::string("cost table");
    return std::string(of.substr(std::string_view("lowtide-").size()));
  };
  const std::string a_file = "a " + word(format) + " file";
  if (!root.is(JsonKind::object))
    root.refuse(a_file + " is an object, not " + std::string(to_string(root.kind())));
  const auto given = root.find("format");
  if (!given) {
    if (!graph && is_node_link(root))
      root.refuse("this is a graph (networkx), not a " + word(format));
    root.refuse("has no \"format\": this is not " + a_file +
                (graph ? ", nor a networkx graph (no \"nodes\")" : ""));
  }
  const std::string_view written = given->as_string();
  if (written != format) {
    for (const std::string_view known :
         {"lowtide-graph", "lowtide-plan", "lowtide-device", "lowtide-costs", "lowtide-sweep"})
      if (written == known) given->refuse("this is a " + word(written) + ", not a " + word(format));
    given->refuse("unknown format " + quoted(written) + "; must be " + quoted(format));
  }
  const auto version = root.find("version");
  if (!version) root.refuse("has no \"version\"");
  if (version->as_integer() != 1)
    version->refuse("unknown version " + std::to_string(version->as_integer()) +
                    "; this program reads version 1");
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 100;
  std::string result;
  append_json_string(result, text.substr(0, kShown));
  if (text.size() > kShown) result.insert(result.size() - 1, "...");
  return result;
}

std::string label_of(std::string_view what, std::size_t index, JsonValue object) {
  std::string label = std::string(what) + " " + std::to_string(index);
  const auto name = object.find("name");
  if (name && name->is(JsonKind::string) && !name->as_string().empty())
    label += " " + quoted(name->as_string());
  return label;
}

}  // namespace lowtide::io
