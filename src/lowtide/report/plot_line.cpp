// The sixteen colours that terminals let people choose, so that their own taste holds.
#include "lowtide/report/plot_line.h"

namespace lowtide::report {

namespace {

std::string_view escape_of(Ink ink) {
  switch (ink) {
    case Ink::plain: return "\x1b[0m";
    case Ink::strong: return "\x1b[0;1m";
    case Ink::run: return "\x1b[0;36m";
    case Ink::budget: return "\x1b[0;33m";
    case Ink::wait: return "\x1b[0;31m";
    case Ink::again: return "\x1b[0;35m";
    case Ink::before:
    case Ink::faint: return "\x1b[0;90m";
  }
  return "";
}

}  // namespace

std::string inked(std::string_view text, Ink ink, bool colour) {
  if (!colour || ink == Ink::plain) return std::string(text);
  return std::string(escape_of(ink)) + std::string(text) + std::string(escape_of(Ink::plain));
}

void Line::put(std::size_t column, std::string_view glyph, Ink ink) {
  if (column < cells_.size()) cells_[column] = {std::string(glyph), ink};
}

void Line::write(std::size_t column, std::string_view text, Ink ink) {
  for (std::size_t at = 0; at < text.size(); ++column) {
    std::size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    put(column, text.substr(at, end - at), ink);
    at = end;
  }
}

void Line::write(std::size_t column, const Line& line) {
  for (const Cell& cell : line.cells_) put(column++, cell.glyph, cell.ink);
}

std::string Line::text(bool colour) const {
  std::size_t end = cells_.size();
  while (end > 0 && cells_[end - 1].glyph == " ") --end;
  std::string text;
  Ink ink = Ink::plain;
  for (std::size_t i = 0; i < end; ++i) {
    const Cell& cell = cells_[i];
    if (colour && cell.ink != ink && cell.glyph != " ") text += escape_of(ink = cell.ink);
    text += cell.glyph;
  }
  if (ink != Ink::plain) text += escape_of(Ink::plain);
  return text + '\n';
}

}  // namespace lowtide::report
