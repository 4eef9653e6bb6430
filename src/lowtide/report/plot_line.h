// One line of a drawing of characters. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide::report {

enum class Ink : std::uint8_t { plain, strong, faint, run, before, budget, again, wait };

// `text` in the given ink: between ANSI escape sequences if `colour`, else unchanged.
std::string inked(std::string_view text, Ink ink, bool colour);

// A line of cells of one column each; text beyond the end is dropped.
class Line {
 public:
  explicit Line(std::size_t columns) : cells_(columns) {}

  void put(std::size_t column, std::string_view glyph, Ink ink);
  // For text whose characters all take one column.
  void write(std::size_t column, std::string_view text, Ink ink);
  void write(std::size_t column, const Line& line);

  // The line without trailing spaces, with a newline.
  std::string text(bool colour) const;

 private:
  struct Cell {
    std::string glyph = " ";
    Ink ink = Ink::plain;
  };
  std::vector<Cell> cells_;
};

}  // namespace lowtide::report
