// A JSON document for reading. It is parsed once and stored flat: a file of 100,000 ops takes a few
// tenths of a second, and about half as much memory again as its text.
//
// Integers below 2^63 are stored as integers, every other number as its text: the caller decides
// whether a fraction is allowed. InputError (place "line N, column M") for broken syntax, text that
// is not UTF-8, and nesting beyond kMaxJsonDepth. InputError (place: a JSON pointer) for a key that
// occurs twice in one object. A byte order mark is skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/io/json_kind.h"

namespace lowtide::io {

inline constexpr std::size_t kMaxJsonDepth = 1000;

struct JsonTape;

// A value of a document; the document must outlive it. Cheap to copy.
class JsonValue {
 public:
  class Items;
  class Members;

  JsonKind kind() const;
  bool is(JsonKind wanted) const { return kind() == wanted; }

  // The value as the given type; InputError with this value's pointer if it has another.
  std::int64_t as_integer() const;  // whole, below 2^63, written without fraction or exponent
  std::int64_t as_count() const;    // the same, not negative
  bool as_boolean() const;
  std::string_view as_string() const;
  Items items() const;      // of an array
  Members members() const;  // of an object

  std::size_t size() const;  // of an array or object; else 0
  // The member of that name; empty if there is none or if this is not an object. Linear.
  std::optional<JsonValue> find(std::string_view key) const;
  // The text of a number that is not an integer, as written; empty for other kinds.
  std::string_view number_text() const;

  // The value as compact JSON: no spaces, numbers as written, strings escaped only where necessary.
  std::string text() const;
  // The JSON pointer of the value: "/ops/3/time", "" for the root. Linear in the values before it.
  std::string pointer() const;
  // InputError for this value's place.
  [[noreturn]] void refuse(std::string reason) const;
  [[noreturn]] void refuse_kind(std::string_view wanted) const;  // "must be <wanted>, not a string"

 private:
  friend class JsonDocument;
  JsonValue(const JsonTape* tape, std::uint32_t at) : tape_(tape), at_(at) {}

  const JsonTape* tape_;
  std::uint32_t at_;
};

class JsonValue::Items {
 public:
  class Iterator {
   public:
    Iterator(const JsonTape* tape, std::uint32_t at) : tape_(tape), at_(at) {}
    JsonValue operator*() const { return {tape_, at_}; }
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const JsonTape* tape_;
    std::uint32_t at_;
  };
  Items(Iterator first, Iterator last) : first_(first), last_(last) {}
  Iterator begin() const { return first_; }
  Iterator end() const { return last_; }

 private:
  Iterator first_, last_;
};

struct JsonMember {
  std::string_view key;
  JsonValue value;
};

class JsonValue::Members {
 public:
  class Iterator {
   public:
    Iterator(const JsonTape* tape, std::uint32_t at) : tape_(tape), at_(at) {}
    JsonMember operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const JsonTape* tape_;
    std::uint32_t at_;
  };
  Members(Iterator first, Iterator last) : first_(first), last_(last) {}
  Iterator begin() const { return first_; }
  Iterator end() const { return last_; }

 private:
  Iterator first_, last_;
};

class JsonDocument {
 public:
  explicit JsonDocument(std::string_view text);
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  JsonValue root() const { return {tape_.get(), 0}; }

 private:
  friend class JsonBuilder;
  explicit JsonDocument(std::unique_ptr<JsonTape> tape);

  std::unique_ptr<JsonTape> tape_;
};

// Makes a document of values in memory, without a text: one call for each value, in the order of
// the text. It refuses what the parser refuses, but the place is always a JSON pointer.
class JsonBuilder {
 public:
  explicit JsonBuilder(std::size_t values = 0);  // `values`: about how many there will be
  ~JsonBuilder();
  JsonBuilder(const JsonBuilder&) = delete;
  JsonBuilder& operator=(const JsonBuilder&) = delete;

  void null();
  void boolean(bool value);
  void integer(std::int64_t value);
  void number(std::string_view written);  // a number that is not a std::int64_t
  void string(std::string_view text);
  void begin_array();
  void end_array();
  void begin_object();
  void key(std::string_view name);  // before each value of an object
  void end_object();

  std::size_t depth() const;  // arrays and objects that have not ended
  // InputError for the place of the value that would come next.
  [[noreturn]] void refuse(std::string reason);
  // Call once, after the end of the outermost value.
  JsonDocument build();

 private:
  void append(JsonKind kind, std::int64_t value);
  void begin(JsonKind kind);
  void end();
  std::int64_t keep(std::string_view text);
  void refuse_repeated_keys(std::uint32_t object);

  std::unique_ptr<JsonTape> tape_;
  std::vector<std::uint32_t> open_;         // arrays and objects that have not ended
  std::vector<std::uint32_t> last_object_;  // for each key: 1 + the object it was last seen in
};

// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

}  // namespace lowtide::io
