#include "lowtide/io/sweep_results.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "lowtide/base/error.h"
#include "lowtide/io/text_file.h"

namespace lowtide::io {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kLineStart = "{\"task\":\"";

template <class Value>
Json if_any(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}
Json text_if_any(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json found_json(const SweepFound& found) {
  return {{"status", found.status},
          {"budget_bytes", if_any(found.budget)},
          {"peak", if_any(found.peak)},
          {"taken", if_any(found.taken)},
          {"duration", if_any(found.duration)},
          {"base_duration", if_any(found.base_duration)},
          {"overhead_percent", if_any(found.overhead_percent)},
          {"bound", if_any(found.bound)},
          {"gap_percent", if_any(found.gap_percent)},
          {"smallest_peak", if_any(found.smallest_peak)},
          {"floor", if_any(found.floor)},
          {"found_by", text_if_any(found.found_by)},
          {"stopped_by", text_if_any(found.stopped_by)},
          {"time_s", found.seconds},
          {"reason", text_if_any(found.reason)}};
}

template <class Value>
void take(const Json& json, const char* key, std::optional<Value>& value) {
  if (!json.at(key).is_null()) value = json.at(key).get<Value>();
}
void take(const Json& json, const char* key, std::string& text) {
  if (!json.at(key).is_null()) text = json.at(key).get<std::string>();
}

SweepFound found_of(const Json& json) {
  SweepFound found;
  take(json, "status", found.status);
  take(json, "budget_bytes", found.budget);
  take(json, "peak", found.peak);
  take(json, "taken", found.taken);
  take(json, "duration", found.duration);
  take(json, "base_duration", found.base_duration);
  take(json, "overhead_percent", found.overhead_percent);
  take(json, "bound", found.bound);
  take(json, "gap_percent", found.gap_percent);
  take(json, "smallest_peak", found.smallest_peak);
  take(json, "floor", found.floor);
  take(json, "found_by", found.found_by);
  take(json, "stopped_by", found.stopped_by);
  take(json, "reason", found.reason);
  found.seconds = json.at("time_s").get<double>();
  return found;
}

Json given_json(const SweepTask& task) {
  Json given = Json::object();
  for (const auto& [name, value] : task.given) given[name] = Json::parse(value);
  return given;
}

// As a cell of a CSV file.
std::string cell(const Json& value) {
  if (value.is_null()) return "";
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

[[noreturn]] void refuse(const std::string& path, std::string place, std::string reason) {
  throw InputError(std::move(place), std::move(reason), path);
}
[[noreturn]] void refuse_access(const std::string& path, const char* what) {
  refuse(path, "", fmt::format("cannot be {}: {}", what, std::strerror(errno)));
}

}  // namespace

SweepResults::SweepResults(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse_access(path_, "written");
  try {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
      refuse(path_, "", "another sweep is writing to this file; wait for it, or name another file");
    read();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SweepResults::~SweepResults() { ::close(descriptor_); }

void SweepResults::read() {
  const std::string text = read_text_file(path_);
  std::size_t begin = 0, number = 1;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string place = fmt::format("line {}", number++);
    try {
      const Json row = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                   text.begin() + static_cast<std::ptrdiff_t>(end));
      rows_[row.at("task").get<std::string>()] = found_of(row.at("found"));
    } catch (const Json::exception&) {
      refuse(path_, place, "is not a result of a sweep; name another file for the results");
    }
  }
  if (begin == text.size()) return;
  const std::string_view rest = std::string_view(text).substr(begin, kLineStart.size());
  if (!kLineStart.starts_with(rest))
    refuse(path_, fmt::format("line {}", number),
           "is not a result of a sweep; name another file for the results");
  if (::ftruncate(descriptor_, static_cast<off_t>(begin)) != 0) refuse_access(path_, "written");
}

bool SweepResults::has(const std::string& key) const {
  const auto row = rows_.find(key);
  return row != rows_.end() && row->second.status != kSweepError;
}

void SweepResults::add(const SweepTask& task, SweepFound found) {
  const Json row = {{"task", task.key}, {"given", given_json(task)}, {"found", found_json(found)}};
  const std::string line = row.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::size_t written = 0;
  while (written < line.size()) {
    const auto more = ::write(descriptor_, line.data() + written, line.size() - written);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) refuse_access(path_, "written");
    written += static_cast<std::size_t>(more);
  }
  rows_[task.key] = std::move(found);
}

std::string sweep_csv(const std::vector<SweepTask>& tasks, const SweepRows& rows) {
  std::string out;
  const auto add_line = [&](const Json& given, const Json& found, bool names) {
    std::string line;
    for (const Json& part : {given, found})
      for (const auto& [name, value] : part.items())
        line += (line.empty() ? "" : ",") + (names ? name : cell(value));
    out += line + "\n";
  };
  for (const SweepTask& task : tasks) {
    if (out.empty()) add_line(given_json(task), found_json({}), true);
    if (const auto row = rows.find(task.key); row != rows.end())
      add_line(given_json(task), found_json(row->second), false);
  }
  return out;
}

}  // namespace lowtide::io
