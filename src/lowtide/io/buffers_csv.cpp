#include "lowtide/io/buffers_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/io/reader_support.h"
#include "lowtide/io/text_file.h"

namespace lowtide::io {

namespace {

enum Column : std::size_t { kId, kLower, kUpper, kSize, kOffset, kColumns };
constexpr std::array<std::string_view, kColumns> kNames = {"id", "lower", "upper", "size",
                                                           "offset"};

class BuffersReader {
 public:
  explicit BuffersReader(std::string_view text) : rest_(text) {}

  BuffersFile read() {
    if (!next_line()) throw InputError("", "the file is empty; it begins with id,lower,upper,size");
    read_header();
    while (next_line()) {
      if (line_.empty()) continue;
      read_buffer();
    }
    return std::move(file_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError("line " + std::to_string(number_), why);
  }

  bool next_line() {
    if (rest_.empty()) return false;
    ++number_;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    return true;
  }

  void split() {
    fields_.clear();
    std::size_t begin = 0;
    while (true) {
      const std::size_t end = line_.find(',', begin);
      fields_.push_back(line_.substr(begin, end == std::string_view::npos ? end : end - begin));
      if (end == std::string_view::npos) return;
      begin = end + 1;
    }
  }

  void read_header() {
    split();
    for (std::size_t k = 0; k < fields_.size(); ++k) {
      const auto name = std::ranges::find(kNames, fields_[k]);
      if (name == kNames.end())
        refuse("unknown column " + quoted(fields_[k]) +
               "; must be id, lower, upper, size or offset");
      auto& place = places_[static_cast<std::size_t>(name - kNames.begin())];
      if (place) refuse("the column " + quoted(fields_[k]) + " is there twice");
      place = k;
    }
    for (const Column column : {kId, kLower, kUpper, kSize})
      if (!places_[column]) refuse("has no column " + quoted(kNames[column]));
    columns_ = fields_.size();
  }

  void read_buffer() {
    split();
    if (fields_.size() != columns_)
      refuse("has " + std::to_string(fields_.size()) + " fields, the header " +
             std::to_string(columns_));
    const std::string id(fields_[*places_[kId]]);
    if (!seen_.insert(id).second) refuse("the id " + quoted(id) + " is there twice");
    const std::int64_t lower = integer(kLower), upper = integer(kUpper), size = integer(kSize);
    if (places_[kOffset]) integer(kOffset);
    if (lower >= upper)
      refuse("the buffer ends at " + std::to_string(upper) + ", not after it begins at " +
             std::to_string(lower));
    if (size < 0) refuse("the size must be 0 or more, not " + std::to_string(size));
    file_.ids.push_back(id);
    file_.buffers.push_back({lower, upper, Bytes(size)});
  }

  std::int64_t integer(Column column) const {
    const std::string_view text = fields_[*places_[column]];
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      refuse("the " + std::string(kNames[column]) + " must be an integer below 2^63, not " +
             quoted(text));
    return value;
  }

  std::string_view rest_, line_;
  std::size_t number_ = 0, columns_ = 0;
  std::vector<std::string_view> fields_;
  std::array<std::optional<std::size_t>, kColumns> places_{};  // of each column in a line
  std::unordered_set<std::string> seen_;
  BuffersFile file_;
};

}  // namespace

BuffersFile read_buffers(const std::string& path) {
  return read_buffers_text(read_text_file(path), name_of_file(path));
}

BuffersFile read_buffers_text(std::string_view text, const std::string& file_name) {
  try {
    return BuffersReader(text).read();
  } catch (const InputError& error) {
    throw error.in_file(file_name);
  }
}

std::string write_buffers(const BuffersFile& file, std::span<const Bytes> offsets) {
  std::string out = offsets.empty() ? "id,lower,upper,size\n" : "id,lower,upper,size,offset\n";
  for (std::size_t i = 0; i < file.buffers.size(); ++i) {
    const layout::Buffer& buffer = file.buffers[i];
    out += fmt::format("{},{},{},{}", file.ids[i], buffer.begin, buffer.end, buffer.bytes.count());
    out += offsets.empty() ? "\n" : fmt::format(",{}\n", offsets[i].count());
  }
  return out;
}

}  // namespace lowtide::io
