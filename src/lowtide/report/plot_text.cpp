// One decoder for UTF-8; widths from the few ranges of Unicode that are not one column wide.
#include "lowtide/report/plot_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace lowtide::report {

namespace {

constexpr char32_t kReplacement = 0xfffd;

struct Range {
  char32_t first, last;
};

// Unicode's EastAsianWidth W and F, in coarse ranges, and emoji.
constexpr std::array<Range, 13> kWide{{{0x1100, 0x115f},
                                       {0x2e80, 0x303e},
                                       {0x3041, 0x33ff},
                                       {0x3400, 0x4dbf},
                                       {0x4e00, 0xa4cf},
                                       {0xa960, 0xa97f},
                                       {0xac00, 0xd7a3},
                                       {0xf900, 0xfaff},
                                       {0xfe30, 0xfe6f},
                                       {0xff00, 0xff60},
                                       {0xffe0, 0xffe6},
                                       {0x1f300, 0x1faff},
                                       {0x20000, 0x3fffd}}};
constexpr std::array<Range, 5> kCombining{
    {{0x300, 0x36f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe2f}}};
// Controls, line separators, joiners, and the marks that turn the direction of writing.
constexpr std::array<Range, 7> kUnsafe{{{0x0, 0x1f},
                                        {0x7f, 0x9f},
                                        {0x61c, 0x61c},
                                        {0x200b, 0x200f},
                                        {0x2028, 0x202e},
                                        {0x2060, 0x206f},
                                        {0xfeff, 0xfeff}}};

template <std::size_t N>
bool within(const std::array<Range, N>& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](Range range) { return range.first <= c && c <= range.last; });
}

std::size_t width_of(char32_t c) { return within(kCombining, c) ? 0 : within(kWide, c) ? 2 : 1; }

// Takes one character off the front; a byte that starts none counts as one that is invalid.
char32_t take(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
  char32_t c = length < 2 ? lead : lead & (0x7fu >> length);
  bool valid = length != 0 && length <= text.size();
  for (std::size_t i = 1; valid && i < length; ++i) {
    valid = (byte(i) & 0xc0) == 0x80;
    c = (c << 6) | (byte(i) & 0x3f);
  }
  constexpr std::array<char32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  valid = valid && c >= kSmallest[length] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
  text.remove_prefix(valid ? length : 1);
  return valid ? c : kReplacement;
}

void append(std::string& out, char32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::vector<char32_t> clean_characters(std::string_view text, bool unicode) {
  std::vector<char32_t> characters;
  while (!text.empty()) {
    char32_t c = take(text);
    if (within(kUnsafe, c)) c = kReplacement;
    characters.push_back(unicode || c < 0x80 ? c : U'?');
  }
  return characters;
}

}  // namespace

std::string clean_text(std::string_view text, bool unicode) {
  std::string clean;
  for (char32_t c : clean_characters(text, unicode)) append(clean, c);
  return clean;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) columns += width_of(take(text));
  return columns;
}

std::string shorten(std::string_view text, std::size_t columns, bool unicode) {
  const std::string clean = clean_text(text, unicode);
  if (columns_of(clean) <= columns) return clean;
  const std::string_view ellipsis = unicode ? "…" : "..";
  const std::size_t gap = unicode ? 1 : 2;
  if (columns < gap) return std::string(columns, '.');
  if (columns == gap) return std::string(ellipsis);

  // The end of a name says more than its start, so it gets the odd column.
  const std::vector<char32_t> characters = clean_characters(text, unicode);
  const std::size_t head = (columns - gap) / 2, tail = columns - gap - head;
  std::string front, back;
  std::size_t used = 0;
  for (char32_t c : characters) {
    if ((used += width_of(c)) > head) break;
    append(front, c);
  }
  std::size_t first = characters.size();
  for (used = 0; first > 0 && (used += width_of(characters[first - 1])) <= tail;) --first;
  for (std::size_t i = first; i < characters.size(); ++i) append(back, characters[i]);
  return front + std::string(ellipsis) + back;
}

std::string wrap(std::string_view text, std::size_t columns, bool unicode) {
  std::string out, line, word;
  const auto end_line = [&] {
    out += line + '\n';
    line.clear();
  };
  const auto end_word = [&] {
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > columns) end_line();
    if (!line.empty()) line += ' ';
    line += word;
    word.clear();
  };
  for (char32_t c : clean_characters(text, unicode)) {
    if (c == U' ') {
      if (!word.empty()) end_word();
      continue;
    }
    if (!word.empty() && columns_of(word) + width_of(c) > columns) {
      end_word();
      end_line();
    }
    append(word, c);
  }
  if (!word.empty()) end_word();
  if (!line.empty()) end_line();
  return out;
}

}  // namespace lowtide::report
