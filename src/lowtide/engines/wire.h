// The wire format of protocol buffers, for CP-SAT's models and for the messages to and from the
// worker. Fields are numbered; a reader skips unknown fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide::engines {

// Writes one message. Integers are varints of 64 bits: negative ones take ten bytes.
class WireWriter {
 public:
  WireWriter& number(int field, std::int64_t value);
  WireWriter& real(int field, double value);
  WireWriter& text(int field, std::string_view value);
  WireWriter& message(int field, const WireWriter& value) { return text(field, value.bytes_); }
  WireWriter& numbers(int field, std::span<const std::int64_t> values);  // packed
  WireWriter& reals(int field, std::span<const double> values);          // packed
  // Fields that are already encoded.
  WireWriter& append(std::string_view fields);

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);
  void key(int field, int kind);

  std::string bytes_;
};

// Reads one message, field by field. Malformed input ends the message and makes ok() false; nothing
// beyond it is read.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  // The next field, or false at the end.
  bool next();
  bool ok() const { return ok_; }
  int field() const { return field_; }
  std::int64_t number() const { return static_cast<std::int64_t>(value_); }
  double real() const;
  std::string_view text() const { return text_; }
  // A repeated field, packed or one by one: appends to the list.
  void numbers(std::vector<std::int64_t>& into);
  void reals(std::vector<double>& into);

 private:
  enum Kind { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  bool varint(std::string_view& from, std::uint64_t& value);
  bool fixed(std::size_t size);

  std::string_view rest_, text_;
  int field_ = 0, kind_ = 0;
  std::uint64_t value_ = 0;
  bool ok_ = true;
};

}  // namespace lowtide::engines
