// Pickles out: plain data in protocol 2, which every Python 3 and PyTorch's memory_viz read.
// Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lowtide::io {

// Values one behind the other; a body writes what its container holds. A text is written once and
// then referred to.
class PickleWriter {
 public:
  PickleWriter();

  void integer(std::int64_t value);
  void boolean(bool value);
  void none();
  void text(std::string_view value);

  // `body` writes a key, which is a text, and its value, any number of times.
  template <class Body>
  void dict(Body body) {
    out_ += "}(";  // EMPTY_DICT, MARK
    body();
    out_ += 'u';  // SETITEMS
  }
  // `each(i)` writes one value. The viewer takes no more than some thousand items at a time.
  template <class Each>
  void list(std::size_t count, Each each) {
    out_ += ']';  // EMPTY_LIST
    for (std::size_t i = 0; i < count; ++i) {
      if (i % kBatch == 0) out_ += '(';  // MARK
      each(i);
      if (i % kBatch == kBatch - 1 || i == count - 1) out_ += 'e';  // APPENDS
    }
  }
  template <class Body>
  void pair(Body body) {
    body();
    out_ += '\x86';  // TUPLE2
  }

  // Remembers the last value, and writes it again.
  std::uint32_t remember();
  void recall(std::uint32_t place);

  std::string finish() &&;

 private:
  static constexpr std::size_t kBatch = 1000;
  void little_endian(std::uint64_t value, int bytes);

  std::string out_;
  std::uint32_t remembered_ = 0;
  std::unordered_map<std::string, std::uint32_t> texts_;  // where each is remembered
};

}  // namespace lowtide::io
