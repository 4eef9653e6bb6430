// The memory of the device, and its addresses, as segments take them.
#pragma once

#include <cstdint>
#include <optional>

#include "lowtide/base/units.h"
#include "lowtide/layout/allocator/figures.h"

namespace lowtide::layout {

class DeviceMemory {
 public:
  // Absent: without a limit.
  explicit DeviceMemory(std::optional<Bytes> size) : size_(size) {}

  // False if there is not so much left.
  bool take(std::int64_t bytes) {
    if (size_ && reserved_.now + Bytes(bytes) > *size_) return false;
    reserved_.add(Bytes(bytes));
    ++allocations_;
    return true;
  }
  void give_back(std::int64_t bytes) {
    reserved_.subtract(Bytes(bytes));
    ++frees_;
  }

  // Addresses that nothing had before: those behind all that were given away. The driver reuses
  // addresses in an order of its own; it matters only between free blocks of equal size.
  std::int64_t addresses(std::int64_t size) {
    const Bytes first = next_;
    next_ = checked_add(next_, Bytes(size));
    return first.count();
  }

  // What PyTorch sets aside for one expandable segment: an eighth more than the device has.
  std::int64_t expandable_size(std::int64_t page) const {
    constexpr std::int64_t kUnlimited = std::int64_t{1} << 50;
    const std::int64_t size = size_ ? size_->count() + size_->count() / 8 : kUnlimited;
    return (size + page - 1) / page * page;
  }

  Level& reserved() { return reserved_; }
  const Level& reserved() const { return reserved_; }
  std::int64_t allocations() const { return allocations_; }
  std::int64_t frees() const { return frees_; }

 private:
  std::optional<Bytes> size_;
  Level reserved_;
  Bytes next_;
  std::int64_t allocations_ = 0, frees_ = 0;
};

}  // namespace lowtide::layout
