// A mixed-integer program in columns and rows: minimise the sum of cost x column, every row within
// its limits. Infinite limits are infinities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide::engines {

struct MipTerm {
  std::int32_t column;
  double coefficient;
};

class MipModel {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Range {
    double low, high;
  };

  std::int32_t add_column(double cost, Range range, bool integer);
  // Terms of one column are added, since HiGHS accepts each column once per row.
  void add_row(std::span<const MipTerm> terms, Range range);
  void add_start(std::int32_t column, double value);  // of a start solution
  void clear_start() { start_columns_.clear(), start_values_.clear(); }

  std::size_t column_count() const { return cost_.size(); }
  std::size_t entry_count() const { return columns_.size(); }
  bool has_integers() const;

  std::string encode() const;
  // Returns false if the bytes are no model.
  bool decode(std::string_view bytes);

  // For the solver; rows are compressed.
  struct View {
    std::span<const double> cost, low, high, row_low, row_high, values, start_values;
    std::span<const std::int64_t> integer, row_begin, columns, start_columns;
  };
  View view() const;

 private:
  std::vector<double> cost_, low_, high_, row_low_, row_high_, values_, start_values_;
  std::vector<MipTerm> sorted_;  // the row that is being added
  std::vector<std::int64_t> integer_, row_begin_, columns_, start_columns_;
};

}  // namespace lowtide::engines
