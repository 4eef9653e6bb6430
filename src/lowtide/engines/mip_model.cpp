// One wire field for each list.
#include "lowtide/engines/mip_model.h"

#include <algorithm>

#include "lowtide/engines/wire.h"

namespace lowtide::engines {

std::int32_t MipModel::add_column(double cost, Range range, bool integer) {
  cost_.push_back(cost);
  low_.push_back(range.low);
  high_.push_back(range.high);
  integer_.push_back(integer ? 1 : 0);
  return static_cast<std::int32_t>(cost_.size() - 1);
}

void MipModel::add_row(std::span<const MipTerm> terms, Range range) {
  row_begin_.push_back(static_cast<std::int64_t>(columns_.size()));
  row_low_.push_back(range.low);
  row_high_.push_back(range.high);
  sorted_.assign(terms.begin(), terms.end());
  std::sort(sorted_.begin(), sorted_.end(),
            [](const MipTerm& a, const MipTerm& b) { return a.column < b.column; });
  for (std::size_t i = 0; i < sorted_.size();) {
    const std::int32_t column = sorted_[i].column;
    double sum = 0;
    for (; i < sorted_.size() && sorted_[i].column == column; ++i) sum += sorted_[i].coefficient;
    if (sum == 0) continue;
    columns_.push_back(column);
    values_.push_back(sum);
  }
}

void MipModel::add_start(std::int32_t column, double value) {
  start_columns_.push_back(column);
  start_values_.push_back(value);
}

bool MipModel::has_integers() const {
  return std::any_of(integer_.begin(), integer_.end(), [](std::int64_t i) { return i != 0; });
}

std::string MipModel::encode() const {
  WireWriter out;
  out.reals(1, cost_).reals(2, low_).reals(3, high_).numbers(4, integer_);
  out.reals(5, row_low_).reals(6, row_high_).numbers(7, row_begin_);
  out.numbers(8, columns_).reals(9, values_);
  return out.numbers(10, start_columns_).reals(11, start_values_).bytes();
}

bool MipModel::decode(std::string_view bytes) {
  *this = {};
  WireReader in(bytes);
  while (in.next()) switch (in.field()) {
      case 1: in.reals(cost_); break;
      case 2: in.reals(low_); break;
      case 3: in.reals(high_); break;
      case 4: in.numbers(integer_); break;
      case 5: in.reals(row_low_); break;
      case 6: in.reals(row_high_); break;
      case 7: in.numbers(row_begin_); break;
      case 8: in.numbers(columns_); break;
      case 9: in.reals(values_); break;
      case 10: in.numbers(start_columns_); break;
      case 11: in.reals(start_values_); break;
    }
  const auto within = [](const std::vector<std::int64_t>& list, std::size_t limit) {
    return std::all_of(list.begin(), list.end(), [&](std::int64_t i) {
      return i >= 0 && static_cast<std::size_t>(i) < limit;
    });
  };
  return in.ok() && low_.size() == cost_.size() && high_.size() == cost_.size() &&
         integer_.size() == cost_.size() && row_high_.size() == row_low_.size() &&
         row_begin_.size() == row_low_.size() && values_.size() == columns_.size() &&
         start_values_.size() == start_columns_.size() && within(columns_, cost_.size()) &&
         within(start_columns_, cost_.size()) && within(row_begin_, columns_.size() + 1) &&
         std::is_sorted(row_begin_.begin(), row_begin_.end());
}

MipModel::View MipModel::view() const {
  return {cost_,         low_,     high_,      row_low_, row_high_,     values_,
          start_values_, integer_, row_begin_, columns_, start_columns_};
}

}  // namespace lowtide::engines
