// Tokens as PyTorch cuts them.
#include "lowtide/layout/allocator/settings_text.h"

#include <cctype>
#include <charconv>

#include "lowtide/base/error.h"

namespace lowtide::layout {

SettingsText::SettingsText(std::string_view text) : text_(text), tokens_(cut(text)) {}

// White space is nothing, also within a word: PyTorch reads "max_split_size_mb: 1 28" as 128.
std::vector<SettingsText::Token> SettingsText::cut(std::string_view text) {
  constexpr std::string_view kMarks = ",:[]";
  std::vector<Token> tokens;
  bool word = false;  // the last token is one that may go on
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) continue;
    const bool mark = kMarks.find(c) != std::string_view::npos;
    if (mark || !word) tokens.push_back({{}, at});
    tokens.back().text += c;
    word = !mark;
  }
  return tokens;
}

const std::string& SettingsText::key() {
  key_.clear();
  const std::string given = word("a key such as expandable_segments");
  key_place_ = tokens_[at_ - 1].place;
  if (given == "," || given == ":" || given == "[" || given == "]") refuse("a key");
  key_ = given;
  mark(":");
  return key_;
}

void SettingsText::mark(std::string_view mark) {
  if (is(mark)) {
    ++at_;
    return;
  }
  const std::size_t place = at_end() ? text_.size() : tokens_[at_].place;
  fail(place, "key " + key_ + ": \"" + std::string(mark) + "\" belongs here, after \"" +
                  tokens_[at_ - 1].text + "\"; settings read key:value,key:value");
}

void SettingsText::skip_value() {
  const bool list = word("a value") == "[";
  while (list && !at_end() && !is("]")) ++at_;
  if (list) mark("]");
}

std::string SettingsText::word(std::string_view expected) {
  if (at_end())
    fail(text_.size(), (key_.empty() ? std::string() : "key " + key_ + ": ") +
                           "the text ends where " + std::string(expected) + " belongs");
  return tokens_[at_++].text;
}

std::uint64_t SettingsText::number() {
  const std::string given = word("a whole number");
  std::uint64_t found = 0;
  const char* const end = given.data() + given.size();
  const auto [rest, error] = std::from_chars(given.data(), end, found);
  if (error != std::errc() || rest != end) refuse("a whole number");
  return found;
}

double SettingsText::fraction(std::string_view range) {
  const std::string given = word("a number");
  double found = 0;
  const char* const end = given.data() + given.size();
  const auto [rest, error] = std::from_chars(given.data(), end, found);
  if (error != std::errc() || rest != end) refuse(range);
  return found;
}

bool SettingsText::boolean() {
  const std::string given = word("True or False");
  if (given != "True" && given != "False") refuse("True or False");
  return given == "True";
}

void SettingsText::refuse(std::string_view right) const {
  const Token& given = tokens_[at_ - 1];
  const std::string quoted = "\"" + given.text + "\" ";
  fail(given.place, key_.empty() ? quoted + "stands where " + std::string(right) + " belongs"
                                 : "key " + key_ + ": " + quoted + "is refused; right would be " +
                                       std::string(right));
}

void SettingsText::refuse_key(const std::string& known) const {
  fail(key_place_, "key \"" + key_ + "\" is not known; known are " + known);
}

void SettingsText::fail(std::size_t place, const std::string& reason) const {
  throw InputError("allocator settings \"" + text_ + "\", character " + std::to_string(place + 1),
                   reason);
}

}  // namespace lowtide::layout
