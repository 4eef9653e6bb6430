// Maps bytes to rows and steps to columns of a plot. Private to the room.
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

// The smallest of 1, 2 or 5 times a power of ten that is not below `value` > 0.
double round_up(double value);

// Rows count from the bottom up, and each has kLevels levels. The top row stays free. A budget that
// is not far above `most` falls on a boundary between rows: budget_row is the first row above it.
class Scale {
 public:
  static constexpr std::int64_t kLevels = 8;

  Scale() = default;
  Scale(Bytes most, std::optional<Bytes> budget, std::size_t rows);

  // Rounded up, so that no value is drawn too low.
  std::int64_t level(Bytes value) const;
  std::size_t rows() const { return rows_; }
  std::optional<std::size_t> budget_row() const { return budget_row_; }

  // Labels in one unit at round values, each with its row.
  struct Tick {
    std::size_t row;
    std::string label;
  };
  std::vector<Tick> ticks() const;

 private:
  std::int64_t levels_ = 1, bytes_ = 1;  // ratio of levels to bytes
  std::size_t rows_ = 1;
  std::optional<std::size_t> budget_row_;
};

// Steps spread evenly over columns, or each step over several columns.
struct Columns {
  std::size_t steps = 1, columns = 1;

  std::size_t first(std::size_t column) const { return column * steps / columns; }
  std::size_t last(std::size_t column) const;  // one past; at least one step
  std::size_t column_of(std::size_t step) const;
  // The distance between labels of the axis, about `wanted` columns: 1, 2 or 5 times a power of
  // ten.
  std::size_t label_distance(std::size_t wanted) const;
};

// The maximum of the steps of [first, last); empty past the end of the curve. The start counts as
// part of the first step, also if there is no step.
std::optional<Bytes> most_in(const MemoryProfile& profile, std::size_t first, std::size_t last);
Bytes peak_of(const MemoryProfile& profile);

}  // namespace lowtide::report
