// A field is a key (its number and its encoding) and a value; see the encoding guide of protocol
// buffers. Doubles are in the machine's byte order, which is little-endian on all platforms of the
// engines.
#include "lowtide/engines/wire.h"

#include <bit>
#include <cstring>

namespace lowtide::engines {

static_assert(std::endian::native == std::endian::little);

void WireWriter::varint(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

void WireWriter::key(int field, int kind) {
  varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(kind));
}

WireWriter& WireWriter::number(int field, std::int64_t value) {
  key(field, 0);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

WireWriter& WireWriter::real(int field, double value) {
  key(field, 1);
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  return *this;
}

WireWriter& WireWriter::text(int field, std::string_view value) {
  key(field, 2);
  varint(value.size());
  bytes_ += value;
  return *this;
}

WireWriter& WireWriter::numbers(int field, std::span<const std::int64_t> values) {
  WireWriter packed;
  for (const std::int64_t value : values) packed.varint(static_cast<std::uint64_t>(value));
  return message(field, packed);
}

WireWriter& WireWriter::reals(int field, std::span<const double> values) {
  return text(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

WireWriter& WireWriter::append(std::string_view fields) {
  bytes_ += fields;
  return *this;
}

bool WireReader::varint(std::string_view& from, std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (from.empty()) break;
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return ok_ = false;
}

bool WireReader::fixed(std::size_t size) {
  if (rest_.size() < size) return ok_ = false;
  value_ = 0;
  std::memcpy(&value_, rest_.data(), size);
  rest_.remove_prefix(size);
  return true;
}

bool WireReader::next() {
  if (!ok_ || rest_.empty()) return false;
  std::uint64_t key = 0;
  if (!varint(rest_, key)) return false;
  field_ = static_cast<int>(key >> 3);
  kind_ = static_cast<int>(key & 7);
  value_ = 0;
  text_ = {};
  switch (kind_) {
    case kVarint: return varint(rest_, value_);
    case kFixed64: return fixed(8);
    case kFixed32: return fixed(4);
    case kBytes: {
      std::uint64_t size = 0;
      if (!varint(rest_, size)) return false;
      if (size > rest_.size()) return ok_ = false;
      text_ = rest_.substr(0, size);
      rest_.remove_prefix(size);
      return true;
    }
    default: return ok_ = false;
  }
}

double WireReader::real() const { return std::bit_cast<double>(value_); }

void WireReader::numbers(std::vector<std::int64_t>& into) {
  if (kind_ != kBytes) {
    into.push_back(number());
    return;
  }
  std::uint64_t value = 0;
  for (std::string_view packed = text_; !packed.empty();) {
    if (!varint(packed, value)) return;
    into.push_back(static_cast<std::int64_t>(value));
  }
}

void WireReader::reals(std::vector<double>& into) {
  if (kind_ != kBytes) {
    into.push_back(real());
    return;
  }
  if (text_.size() % sizeof(double) != 0) {
    ok_ = false;
    return;
  }
  const std::size_t before = into.size();
  into.resize(before + text_.size() / sizeof(double));
  if (!text_.empty()) std::memcpy(into.data() + before, text_.data(), text_.size());
}

}  // namespace lowtide::engines
