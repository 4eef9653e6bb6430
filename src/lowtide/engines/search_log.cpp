// For minimisation problems, as all of ours are, `next` begins with the bound.
#include "lowtide/engines/search_log.h"

#include <cctype>
#include <charconv>

namespace lowtide::engines {

namespace {

std::optional<double> number_after(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const char* begin = line.data() + at + key.size();
  double value = 0;
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), value);
  if (error != std::errc{} || end == begin || value - value != 0) return std::nullopt;
  return value;
}

}  // namespace

LogLine read_log_line(std::string_view line) {
  LogLine read;
  if (line.size() < 2 || line.front() != '#') return read;
  const bool solution = std::isdigit(static_cast<unsigned char>(line[1])) != 0;
  if (!solution && !line.starts_with("#Bound")) return read;
  if (solution) read.objective = number_after(line, "best:");
  read.bound = number_after(line, "next:[");
  return read;
}

}  // namespace lowtide::engines
