// Reads a text of HLO from left to right: words, numbers, strings and bracketed groups. White space
// and comments separate; a string may contain anything. Nothing here recurses. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lowtide::io::hlo {

class Cursor {
 public:
  explicit Cursor(std::string_view text, std::size_t at = 0) : text_(text), at_(at) {}

  std::string_view text() const { return text_; }
  std::size_t at() const { return at_; }
  void seek(std::size_t at) { at_ = at; }

  // The next character as it stands; '\0' at the end.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space();
  void skip_line();
  bool at_end();  // after white space

  // All of these skip white space first.
  bool take(char wanted);
  bool take(std::string_view wanted);  // the beginning of the text that follows
  void expect(char wanted, std::string_view before);
  // The letters, digits, '_', '-', '.', ':', '/' and other signs of a name; empty if none follows.
  std::string_view word();
  // The name of an instruction or computation, without its '%'.
  std::string_view name();
  // A number of decimal digits, perhaps with a '-'; InputError beyond 63 bits.
  std::int64_t integer();
  // From an opening bracket or quote to its end, both included. Brackets in strings do not count.
  std::string_view group();
  // The value of an attribute: up to a comma, white space, or a bracket that closes what is around
  // it; groups in it are whole.
  std::string_view value();

  // InputError with the line and the column of the text at `at`.
  [[noreturn]] void refuse(const std::string& reason) const { refuse_at(at_, reason); }
  [[noreturn]] void refuse_at(std::size_t at, const std::string& reason) const;

 private:
  void skip_string();

  std::string_view text_;
  std::size_t at_;
};

// "line 12, column 3".
std::string place_in(std::string_view text, std::size_t at);

}  // namespace lowtide::io::hlo
