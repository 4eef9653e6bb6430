#include "lowtide/io/hlo/cursor.h"

#include <algorithm>
#include <charconv>

#include "lowtide/base/error.h"
#include "lowtide/io/reader_support.h"

namespace lowtide::io::hlo {

namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// A name ends where the text around it goes on.
bool ends_name(char c) {
  constexpr std::string_view kEnds = " \n\t\r,()[]{}=\"%";
  return c == '\0' || kEnds.find(c) != std::string_view::npos;
}

char closing(char open) {
  switch (open) {
    case '(': return ')';
    case '[': return ']';
    case '{': return '}';
    default: return '\0';
  }
}

bool closes(char c) { return c == ')' || c == ']' || c == '}'; }

}  // namespace

std::string place_in(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? at + 1 : at - start;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

void Cursor::refuse_at(std::size_t at, const std::string& reason) const {
  throw InputError(place_in(text_, std::min(at, text_.size())), reason);
}

void Cursor::skip_line() { at_ = std::min(text_.find('\n', at_), text_.size()); }

void Cursor::skip_space() {
  while (at_ < text_.size()) {
    if (is_space(text_[at_])) {
      ++at_;
    } else if (text_[at_] == '/' && text_.substr(at_, 2) == "/*") {
      const std::size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) refuse("this comment has no end: */ is missing");
      at_ = end + 2;
    } else if (text_[at_] == '/' && text_.substr(at_, 2) == "//") {
      skip_line();
    } else {
      return;
    }
  }
}

bool Cursor::at_end() {
  skip_space();
  return at_ >= text_.size();
}

bool Cursor::take(char wanted) {
  skip_space();
  if (peek() != wanted || wanted == '\0') return false;
  ++at_;
  return true;
}

bool Cursor::take(std::string_view wanted) {
  skip_space();
  if (!text_.substr(at_).starts_with(wanted)) return false;
  at_ += wanted.size();
  return true;
}

void Cursor::expect(char wanted, std::string_view before) {
  if (take(wanted)) return;
  const std::string found =
      at_ < text_.size() ? quoted(text_.substr(at_, 1)) : "the end of the file";
  refuse("expected '" + std::string(1, wanted) + "' " + std::string(before) + ", found " + found);
}

std::string_view Cursor::word() {
  skip_space();
  const std::size_t first = at_;
  while (!ends_name(peek()) && text_.substr(at_, 2) != "/*") ++at_;
  return text_.substr(first, at_ - first);
}

std::string_view Cursor::name() {
  take('%');
  return word();
}

std::int64_t Cursor::integer() {
  skip_space();
  std::int64_t value = 0;
  const char* first = text_.data() + at_;
  const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
  if (error == std::errc::result_out_of_range) refuse("a number of 2^63 or more");
  if (error != std::errc()) refuse("expected a whole number");
  at_ += static_cast<std::size_t>(end - first);
  return value;
}

void Cursor::skip_string() {
  const std::size_t first = at_++;
  while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
  if (at_ >= text_.size()) refuse_at(first, "this string has no end: a closing quote is missing");
  ++at_;
}

std::string_view Cursor::group() {
  skip_space();
  const std::size_t first = at_;
  std::string open;  // what closes the brackets that are open
  do {
    const char c = peek();
    if (at_ >= text_.size()) {
      refuse_at(first, "this bracket is never closed: " + quoted(open.substr(open.size() - 1)) +
                           " is missing; is the file cut off?");
    } else if (c == '"') {
      skip_string();
    } else if (c == '/' && text_.substr(at_, 2) == "/*") {
      skip_space();
    } else {
      if (closing(c) != '\0') {
        open += closing(c);
      } else if (closes(c)) {
        if (open.empty() || open.back() != c)
          refuse("this bracket closes none, in what begins at " + place_in(text_, first));
        open.pop_back();
      }
      ++at_;
    }
  } while (!open.empty());
  return text_.substr(first, at_ - first);
}

std::string_view Cursor::value() {
  skip_space();
  const std::size_t first = at_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ',' || closes(c)) break;
    if (c == '"' || closing(c) != '\0') {
      group();
    } else if (!is_space(c)) {
      ++at_;
    } else {
      // A group after blanks belongs to the value, since nothing that follows one begins so.
      const std::size_t next = text_.find_first_not_of(' ', at_);
      if (next == std::string_view::npos || closing(text_[next]) == '\0') break;
      at_ = next;
    }
  }
  return text_.substr(first, at_ - first);
}

}  // namespace lowtide::io::hlo
