// Strong ids. An id is an index into the list it names (ops or tensors of one graph), so an OpId
// cannot be used where a TensorId belongs.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace lowtide {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : value_(static_cast<std::int32_t>(index)) {}

  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }
  constexpr bool valid() const { return value_ >= 0; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  std::int32_t value_ = -1;
};

// The ids 0 to count-1, for a loop over all of a list.
template <class Key>
class AllIds {
 public:
  class Iterator {
   public:
    constexpr explicit Iterator(std::size_t index) : index_(index) {}
    constexpr Key operator*() const { return Key(index_); }
    constexpr Iterator& operator++() {
      ++index_;
      return *this;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    std::size_t index_;
  };

  constexpr explicit AllIds(std::size_t count) : count_(count) {}
  constexpr Iterator begin() const { return Iterator(0); }
  constexpr Iterator end() const { return Iterator(count_); }

 private:
  std::size_t count_;
};

using OpId = Id<struct OpTag>;
using TensorId = Id<struct TensorTag>;

// Ids are 32-bit: the most ops, tensors or links that one graph may have.
inline constexpr std::size_t kMaxCount = 0x7fffffff;

}  // namespace lowtide

template <class Tag>
struct std::hash<lowtide::Id<Tag>> {
  std::size_t operator()(lowtide::Id<Tag> id) const noexcept { return id.index(); }
};
