// From text to a builder's calls. The parser is nlohmann's, driven by events: it keeps its own
// stack on the heap, so depth costs nothing until we refuse it, and no tree of ours or its is ever
// built.
#include <algorithm>
#include <cctype>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "lowtide/base/error.h"
#include "lowtide/io/json.h"
#include "lowtide/io/json_tape.h"

namespace lowtide::io {

namespace {

constexpr std::size_t kMaxText = std::numeric_limits<std::uint32_t>::max() - 2;

// Offsets count from 0; the place counts lines and columns (in bytes) from 1.
std::string place_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column =
      newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// The first offset at which the nesting is beyond the limit.
std::size_t too_deep_at(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kMaxJsonDepth) return i;
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return text.size();
}

void replace(std::string& text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

// The word or character at which the parser stopped.
std::string_view word_at(std::string_view text, std::size_t offset) {
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::size_t first = std::min(offset, text.size()), last = first;
  while (first > 0 && in_word(text[first - 1])) --first;
  while (last < text.size() && in_word(text[last])) ++last;
  constexpr std::size_t kShown = 40;
  return text.substr(first, std::clamp<std::size_t>(last - first, 1, kShown));
}

// The parser's message in plain words: without its own name, numbers and places.
std::string plain_reason(std::string message, std::string_view text, std::size_t offset) {
  if (message.find("number overflow") != std::string::npos)
    return "a number is too large to be held";
  if (const auto at = message.find(" - "); at != std::string::npos) {
    message.erase(0, at + 3);
  } else if (const auto bracket = message.find("] "); bracket != std::string::npos) {
    message.erase(0, bracket + 2);
  }
  if (const auto at = message.find("; last read"); at != std::string::npos) {
    const auto expected = message.find("; expected", at);
    message.erase(at, expected == std::string::npos ? std::string::npos : expected - at);
  }
  const bool key_expected = message.find("expected string") != std::string::npos;
  const std::string_view word = word_at(text, offset);
  if (word == "NaN" || word == "Infinity") return "JSON has no number " + std::string(word);
  if (message.starts_with("invalid literal")) {
    if (word == "/" || word == "#") return "JSON has no comments";
    if (key_expected || word == "'") return "a string in double quotes belongs here";
    std::string shown;
    append_json_string(shown, word);
    return shown + " is no JSON value";
  }
  replace(message, "'[', '{', or a literal", "a value");
  replace(message, " literal", "");
  replace(message, "unexpected end of input", "the text ends too early");
  replace(message, "expected end of input", "expected nothing more");
  replace(message, "; expected", ", expected");
  return message;
}

// Hands every event to the builder. An exception thrown here passes through the parser unharmed.
class Events {
 public:
  Events(std::string_view text, JsonBuilder& builder) : text_(text), builder_(builder) {}

  bool null() { return builder_.null(), true; }
  bool boolean(bool value) { return builder_.boolean(value), true; }
  bool number_integer(std::int64_t value) { return builder_.integer(value), true; }
  bool number_unsigned(std::uint64_t value) {
    if (std::in_range<std::int64_t>(value)) return number_integer(static_cast<std::int64_t>(value));
    return builder_.number(std::to_string(value)), true;
  }
  bool number_float(double, const std::string& text) { return builder_.number(text), true; }
  bool string(std::string& text) { return builder_.string(text), true; }
  bool binary(nlohmann::json::binary_t&) { return false; }  // JSON text has none

  bool start_object(std::size_t) {
    refuse_depth();
    return builder_.begin_object(), true;
  }
  bool start_array(std::size_t) {
    refuse_depth();
    return builder_.begin_array(), true;
  }
  bool key(std::string& text) { return builder_.key(text), true; }
  bool end_object() { return builder_.end_object(), true; }
  bool end_array() { return builder_.end_array(), true; }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) {
    const std::size_t offset = position == 0 ? 0 : position - 1;
    throw InputError(place_of(text_, offset), plain_reason(error.what(), text_, offset));
  }

 private:
  // Before the builder does: a text has lines to name the place by.
  void refuse_depth() const {
    if (builder_.depth() >= kMaxJsonDepth)
      throw InputError(place_of(text_, too_deep_at(text_)), too_deep());
  }

  std::string_view text_;
  JsonBuilder& builder_;
};

}  // namespace

JsonDocument::JsonDocument(std::string_view text) {
  if (text.empty()) throw InputError("line 1, column 1", "the file is empty");
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    throw InputError("line 1, column 1", "the text is UTF-16; write it as UTF-8");
  // The parser would take it for the end and never see what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw InputError(place_of(text, zero), "a zero byte: this is no JSON text");
  if (text.size() > kMaxText) throw InputError("", "more than 4 GB of JSON");
  // About what dense numbers take, so that the vector rarely moves.
  JsonBuilder builder(text.size() / 8 + 16);
  Events events(text, builder);
  nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &events);
  *this = builder.build();
}

}  // namespace lowtide::io
