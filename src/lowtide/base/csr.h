// Compressed rows: a list of lists in two arrays. Row i is items[offset[i] .. offset[i+1]).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lowtide {

template <class T>
class Csr {
 public:
  std::size_t rows() const { return offset_.size() - 1; }
  std::size_t size() const { return items_.size(); }
  std::span<const T> operator[](std::size_t row) const {
    return {items_.data() + offset_[row], items_.data() + offset_[row + 1]};
  }

  // Rows are appended in order: push the items of a row, then end it.
  void push(T item) { items_.push_back(item); }
  void end_row() { offset_.push_back(items_.size()); }
  void reserve(std::size_t rows, std::size_t items) {
    offset_.reserve(rows + 1);
    items_.reserve(items);
  }

 private:
  std::vector<std::size_t> offset_{0};
  std::vector<T> items_;
};

}  // namespace lowtide
