// Compressed rows: a list of lists in two arrays. Row i is items[offset[i] .. offset[i+1]). If each
// row belongs to an id, `Row` is the type of that id, and only it can index the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace lowtide {

template <class T, class Row = std::size_t>
class Csr {
 public:
  std::size_t rows() const { return offset_.size() - 1; }
  std::size_t size() const { return items_.size(); }
  std::span<const T> operator[](Row row) const {
    const std::size_t i = index(row);
    return {items_.data() + offset_[i], items_.data() + offset_[i + 1]};
  }

  // Rows are appended in order: push the items of a row, then end it.
  void push(T item) { items_.push_back(item); }
  void end_row() { offset_.push_back(items_.size()); }
  void reserve(std::size_t rows, std::size_t items) {
    offset_.reserve(rows + 1);
    items_.reserve(items);
  }

 private:
  static std::size_t index(Row row) {
    if constexpr (std::is_integral_v<Row>)
      return row;
    else
      return row.index();
  }

  std::vector<std::size_t> offset_{0};
  std::vector<T> items_;
};

}  // namespace lowtide
