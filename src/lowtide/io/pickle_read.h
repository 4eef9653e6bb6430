// Pickles in, as data alone: nothing that a pickle says is run or looked up. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lowtide::io {

// A pickle of protocols 2 to 5, kept flat: a value that is referred to more than once is there
// once.
class Pickle {
 public:
  using Value = std::uint32_t;  // an index
  struct Text {
    std::size_t begin, size;  // in the text read
  };
  struct Sequence {  // a list or a tuple
    std::vector<Value> items;
  };
  struct Dict {
    std::vector<std::pair<Value, Value>> items;
  };
  struct Other {};  // None, bytes, fractions, integers beyond 64 bits: a snapshot needs none

  // `text` must outlive it. InputError (place: "byte N") for a text that is cut short, for opcodes
  // that build anything but plain data or belong to protocols 0 and 1, for a reference to what was
  // not remembered, for values that contain themselves, and for nesting beyond kMaxDepth. Time and
  // memory are linear in the text.
  explicit Pickle(std::string_view text);

  Value root() const { return root_; }
  std::size_t size() const { return values_.size(); }
  const std::int64_t* integer(Value value) const { return get<std::int64_t>(value); }
  const bool* boolean(Value value) const { return get<bool>(value); }
  const Dict* dict(Value value) const { return get<Dict>(value); }
  const Sequence* sequence(Value value) const { return get<Sequence>(value); }
  bool is_text(Value value) const { return get<Text>(value) != nullptr; }
  std::string_view text(Value value) const;  // of a text

  static constexpr std::size_t kMaxDepth = 100;

 private:
  friend class PickleReader;
  template <class Type>
  const Type* get(Value value) const {
    return std::get_if<Type>(&values_[value]);
  }
  void check_nesting() const;

  std::string_view source_;
  std::vector<std::variant<Other, bool, std::int64_t, Text, Sequence, Dict>> values_;
  Value root_ = 0;
};

}  // namespace lowtide::io
