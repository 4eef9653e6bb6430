// From bytes to rows and from steps to columns of a plot. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/report/memory_profile.h"

namespace lowtide::report {

// 1, 2 or 5 times a power of ten, the first that is not below `value` > 0.
double round_up(double value);

// Rows count from the bottom up, and each has kLevels levels. The top row stays free. A budget that
// is not far above `most` falls on a boundary between rows: budget_row is the first row above it.
class Scale {
 public:
  static constexpr std::int64_t kLevels = 8;

  Scale() = default;
  Scale(Bytes most, std::optional<Bytes> budget, std::size_t rows);

  // Rounded up: what is drawn is never less than what is there.
  std::int64_t level(Bytes value) const;
  std::size_t rows() const { return rows_; }
  std::optional<std::size_t> budget_row() const { return budget_row_; }

  // Labels in one unit at round values, each with the row it belongs to.
  struct Tick {
    std::size_t row;
    std::string label;
  };
  std::vector<Tick> ticks() const;

 private:
  std::int64_t levels_ = 1, bytes_ = 1;  // so many levels for so many bytes
  std::size_t rows_ = 1;
  std::optional<std::size_t> budget_row_;
};

// So many steps spread evenly over so many columns, or each step over several columns.
struct Columns {
  std::size_t steps = 1, columns = 1;

  std::size_t first(std::size_t column) const { return column * steps / columns; }
  std::size_t last(std::size_t column) const;  // one past; at least one step
  std::size_t column_of(std::size_t step) const;
  // Between labels of the axis, about `wanted` columns apart: 1, 2 or 5 times a power of ten.
  std::size_t label_distance(std::size_t wanted) const;
};

// The most within the steps of [first, last); nothing past the curve's end. The start counts to the
// first step, also where there is none.
std::optional<Bytes> most_in(const MemoryProfile& profile, std::size_t first, std::size_t last);
Bytes peak_of(const MemoryProfile& profile);

}  // namespace lowtide::report
