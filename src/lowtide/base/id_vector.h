// A vector indexed by the ids of one list, and by nothing else. It costs as much as a plain vector.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "lowtide/base/ids.h"

namespace lowtide {

template <class Key, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t count, const T& value = T()) : items_(count, value) {}
  explicit IdVector(std::vector<T> items) : items_(std::move(items)) {}

  T& operator[](Key id) { return items_[id.index()]; }
  const T& operator[](Key id) const { return items_[id.index()]; }
  std::size_t size() const { return items_.size(); }
  AllIds<Key> ids() const { return AllIds<Key>(items_.size()); }

  void assign(std::size_t count, const T& value) { items_.assign(count, value); }
  void resize(std::size_t count) { items_.resize(count); }
  void clear() { items_.clear(); }
  void push_back(const T& value) { items_.push_back(value); }

  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  T* data() { return items_.data(); }
  const T* data() const { return items_.data(); }
  T& back() { return items_.back(); }

 private:
  std::vector<T> items_;
};

}  // namespace lowtide
