#include "lowtide/io/pickle_write.h"

#include <utility>

namespace lowtide::io {

PickleWriter::PickleWriter() : out_("\x80\x02") {}  // PROTO 2

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0 && value < 1 << 8) {
    out_ += 'K';  // BININT1
    little_endian(static_cast<std::uint64_t>(value), 1);
  } else if (value >= 0 && value < 1 << 16) {
    out_ += 'M';  // BININT2
    little_endian(static_cast<std::uint64_t>(value), 2);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    out_ += 'J';  // BININT
    little_endian(static_cast<std::uint64_t>(value), 4);
  } else {
    out_ += "\x8a\x08";  // LONG1 of 8 bytes
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
}

void PickleWriter::boolean(bool value) { out_ += value ? '\x88' : '\x89'; }

void PickleWriter::none() { out_ += 'N'; }

void PickleWriter::text(std::string_view value) {
  const auto [at, is_new] = texts_.try_emplace(std::string(value), remembered_);
  if (!is_new) return recall(at->second);
  out_ += 'X';  // BINUNICODE
  little_endian(value.size(), 4);
  out_ += value;
  remember();
}

std::uint32_t PickleWriter::remember() {
  const bool is_small = remembered_ < 1 << 8;
  out_ += is_small ? 'q' : 'r';  // BINPUT, LONG_BINPUT
  little_endian(remembered_, is_small ? 1 : 4);
  return remembered_++;
}

void PickleWriter::recall(std::uint32_t place) {
  const bool is_small = place < 1 << 8;
  out_ += is_small ? 'h' : 'j';  // BINGET, LONG_BINGET
  little_endian(place, is_small ? 1 : 4);
}

std::string PickleWriter::finish() && {
  out_ += '.';  // STOP
  return std::move(out_);
}

void PickleWriter::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace lowtide::io
