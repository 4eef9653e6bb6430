// The text of allocator settings, token by token: "key:value,key:[1:2,3:4]".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide::layout {

// Every reading function throws InputError where something else stands: the key that was read last,
// the place, and what would be right.
class SettingsText {
 public:
  explicit SettingsText(std::string_view text);

  void rewind() { at_ = 0; }
  bool at_end() const { return at_ == tokens_.size(); }
  // Whether the next token is this one.
  bool is(std::string_view token) const { return !at_end() && tokens_[at_].text == token; }

  const std::string& key();  // reads a key and its colon
  void mark(std::string_view mark);
  void skip_value();
  std::string word(std::string_view expected);
  std::uint64_t number();
  double fraction(std::string_view range);  // any number; the range is for the message
  bool boolean();

  [[noreturn]] void refuse(std::string_view right) const;  // the word that was read last
  [[noreturn]] void refuse_key(const std::string& known) const;

 private:
  struct Token {
    std::string text;
    std::size_t place;  // of its first character
  };
  static std::vector<Token> cut(std::string_view text);
  [[noreturn]] void fail(std::size_t place, const std::string& reason) const;

  std::string text_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0, key_place_ = 0;
  std::string key_;
};

}  // namespace lowtide::layout
