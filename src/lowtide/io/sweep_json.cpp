// People write these files by hand: an unknown key is a mistake, and refused.
#include "lowtide/io/sweep_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <set>
#include <string_view>

#include <glob.h>

#include "lowtide/base/error.h"
#include "lowtide/base/sha256.h"
#include "lowtide/io/json.h"
#include "lowtide/io/reader_support.h"
#include "lowtide/io/text_file.h"
#include "lowtide/plan/budget.h"

namespace lowtide::io {

namespace {

namespace fs = std::filesystem;

std::string text_of(JsonValue value) { return std::string(value.as_string()); }

std::string one_of(JsonValue value, std::initializer_list<std::string_view> words) {
  const std::string_view word = value.as_string();
  if (std::ranges::find(words, word) != words.end()) return std::string(word);
  std::string known;
  for (const std::string_view other : words)
    known += (known.empty() ? "" : ", ") + std::string(other);
  value.refuse("must be one of " + known + ", not " + io::quoted(word));
}

// A text, or a number of bytes.
std::string size_of(JsonValue value) {
  return value.is(JsonKind::string) ? text_of(value) : std::to_string(value.as_count());
}

std::string budget_of(JsonValue value) {
  std::string budget = size_of(value);
  try {
    parse_budget(budget);
  } catch (const InputError& error) {
    value.refuse(error.reason());
  }
  return budget;
}

double seconds_of(JsonValue value) {
  if (!value.is(JsonKind::number)) return static_cast<double>(value.as_count());
  const std::string_view text = value.number_text();
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0) ||
      !std::isfinite(seconds))
    value.refuse("must be a number of seconds, 0 or more");
  return seconds;
}

int threads_of(JsonValue value) {
  const std::int64_t threads = value.as_count();
  if (threads < 1 || threads > 4096) value.refuse("must be 1 to 4096 threads");
  return static_cast<int>(threads);
}

std::vector<std::string> options_of(JsonValue value) {
  std::vector<std::string> options;
  for (const auto& [name, option] : value.members())
    options.push_back(std::string(name) + "=" +
                      (option.is(JsonKind::string) ? text_of(option) : option.text()));
  return options;
}

struct Setting {
  std::string_view name;
  void (*set)(SweepTask&, JsonValue);
};

// In the order of columns.
constexpr Setting kSettings[] = {
    {"graph", [](SweepTask& task, JsonValue value) { task.graph = text_of(value); }},
    {"budget", [](SweepTask& task, JsonValue value) { task.budget = budget_of(value); }},
    {"techniques", [](SweepTask& task, JsonValue value) { task.techniques = text_of(value); }},
    {"order",
     [](SweepTask& task, JsonValue value) {
       task.order = one_of(value, {"free", "given"});
     }},
    {"footprint",
     [](SweepTask& task, JsonValue value) {
       task.footprint = one_of(value, {"live", "arena", "reserved"});
     }},
    {"allocator", [](SweepTask& task, JsonValue value) { task.allocator = text_of(value); }},
    {"device", [](SweepTask& task, JsonValue value) { task.device = text_of(value); }},
    {"link", [](SweepTask& task, JsonValue value) { task.link = text_of(value); }},
    {"derate", [](SweepTask& task, JsonValue value) { task.derate = text_of(value); }},
    {"host_budget", [](SweepTask& task, JsonValue value) { task.host_budget = size_of(value); }},
    {"costs", [](SweepTask& task, JsonValue value) { task.costs = text_of(value); }},
    {"solver", [](SweepTask& task, JsonValue value) { task.solver = text_of(value); }},
    {"options", [](SweepTask& task, JsonValue value) { task.options = options_of(value); }},
    {"time", [](SweepTask& task, JsonValue value) { task.time = seconds_of(value); }},
    {"work", [](SweepTask& task, JsonValue value) { task.work = value.as_count(); }},
    {"seed", [](SweepTask& task,
                JsonValue value) { task.seed = static_cast<std::uint64_t>(value.as_count()); }},
    {"threads", [](SweepTask& task, JsonValue value) { task.threads = threads_of(value); }},
};

// One value of a setting. `file`: the path of the file that it names, if it names one.
struct Choice {
  JsonDocument value;
  std::string json, file;
};
struct Axis {
  const Setting* setting;
  std::vector<Choice> choices;
};

// The files that a name or a pattern of the shell stands for, as written in `folder`.
std::vector<std::string> graphs_of(const fs::path& folder, JsonValue value) {
  const std::string name = text_of(value);
  if (name.find_first_of("*?[") == std::string::npos) return {name};
  glob_t matches{};
  glob((folder / name).c_str(), 0, nullptr, &matches);
  std::vector<std::string> found(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  globfree(&matches);
  if (found.empty()) value.refuse("no file matches " + io::quoted(name));
  std::ranges::sort(found);
  if (fs::path(name).is_relative() && !folder.empty())
    for (std::string& file : found) file.erase(0, (folder / "").string().size());
  return found;
}

void add_choices(Axis& axis, const fs::path& folder, JsonValue value) {
  const std::string_view name = axis.setting->name;
  SweepTask trial;
  axis.setting->set(trial, value);
  const auto add = [&](const std::string& json, const std::string& file) {
    axis.choices.push_back({JsonDocument(json), json, file.empty() ? "" : folder / file});
  };
  if (name == "graph") {
    for (const std::string& file : graphs_of(folder, value)) add(json_string(file), file);
    return;
  }
  const bool is_file =
      name == "costs" || (trial.device && trial.device->find_first_of("./") != std::string::npos);
  add(value.text(), is_file ? text_of(value) : "");
}

std::vector<Axis> axes_of(const fs::path& folder, JsonValue root) {
  check_format(root, "lowtide-sweep");
  std::string known;
  for (const Setting& setting : kSettings)
    known += (known.empty() ? "" : ", ") + std::string(setting.name);
  for (const auto& [key, value] : root.members())
    if (key != "format" && key != "version" &&
        std::ranges::find(kSettings, key, &Setting::name) == std::end(kSettings))
      value.refuse("unknown key " + io::quoted(key) + "; there are: " + known);
  for (const char* needed : {"graph", "budget"})
    if (!root.find(needed)) root.refuse("has no " + io::quoted(needed));
  std::vector<Axis> axes;
  for (const Setting& setting : kSettings) {
    const auto value = root.find(setting.name);
    if (!value) continue;
    Axis& axis = axes.emplace_back(Axis{&setting, {}});
    if (!value->is(JsonKind::array)) {
      add_choices(axis, folder, *value);
      continue;
    }
    if (value->size() == 0) value->refuse("must not be an empty list");
    for (const JsonValue item : value->items()) add_choices(axis, folder, item);
  }
  return axes;
}

// Hashes of files, each read once.
class Contents {
 public:
  const std::string& hash(const std::string& file) {
    std::string& known = known_[file];
    if (known.empty()) known = "sha256:" + hash_of(read_text_file(file));
    return known;
  }
  static std::string hash_of(std::string_view text) {
    Sha256 hash;
    for (const char c : text) hash.add_byte(static_cast<std::uint8_t>(c));
    return hash.hex();
  }

 private:
  std::map<std::string, std::string> known_;
};

// The task of one choice for each axis. Its key is the hash of a JSON object with sorted keys.
SweepTask task_of(const std::vector<Axis>& axes, const std::vector<std::size_t>& at,
                  Contents& contents) {
  SweepTask task;
  std::map<std::string, std::string> sorted;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Choice& choice = axes[i].choices[at[i]];
    const std::string name(axes[i].setting->name);
    axes[i].setting->set(task, choice.value.root());
    task.given.emplace_back(name, choice.json);
    sorted[name] = choice.file.empty() ? choice.json : json_string(contents.hash(choice.file));
    if (choice.file.empty()) continue;
    if (name == "graph") task.graph = choice.file;
    if (name == "costs") task.costs = choice.file;
    if (name == "device") task.device = choice.file;
  }
  std::string text;
  for (const auto& [name, json] : sorted)
    text += (text.empty() ? "{" : ",") + json_string(name) + ":" + json;
  task.key = Contents::hash_of(text + "}").substr(0, 16);
  return task;
}

// The next combination; the last axis changes first. False after the last one.
bool advance(const std::vector<Axis>& axes, std::vector<std::size_t>& at) {
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (++at[i] < axes[i].choices.size()) return true;
    at[i] = 0;
  }
  return false;
}

}  // namespace

std::vector<std::string> sweep_settings() {
  std::vector<std::string> names;
  for (const Setting& setting : kSettings) names.emplace_back(setting.name);
  return names;
}

std::vector<SweepTask> read_sweep(const std::string& path) {
  const fs::path folder = path == "-" ? fs::path() : fs::path(path).parent_path();
  try {
    const JsonDocument document(read_text_file(path));
    const std::vector<Axis> axes = axes_of(folder, document.root());
    Contents contents;
    std::vector<SweepTask> tasks;
    std::set<std::string> keys;
    std::vector<std::size_t> at(axes.size(), 0);
    do {
      SweepTask task = task_of(axes, at, contents);
      if (keys.insert(task.key).second) tasks.push_back(std::move(task));
    } while (advance(axes, at));
    return tasks;
  } catch (const InputError& error) {
    if (!error.file().empty()) throw;
    throw error.in_file(name_of_file(path));
  }
}

}  // namespace lowtide::io
