// How the page of a report writes its data, which are too many for a tree of JSON values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lowtide/base/units.h"

namespace lowtide::report {

// JSON, appended to a string. Every value puts the comma that it needs before itself. Private to
// the room.
class JsonWriter {
 public:
  static constexpr std::size_t kLongestName = 160;  // characters; texts are shortened to it

  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& key(std::string_view name) {
    separate();
    ((out_ += '"') += name) += "\":";
    return *this;
  }
  void raw(std::string_view value) {
    separate();
    out_ += value;
  }
  void number(std::int64_t value);
  void number(std::size_t value);
  template <class Tag>
  void number(Unit<Tag> value) {
    number(value.count());
  }
  void text(std::string_view value);
  template <class Body>
  void object(Body body) {
    separate();
    out_ += '{';
    body();
    out_ += '}';
  }
  template <class Body>
  void tuple(Body body) {
    separate();
    out_ += '[';
    body();
    out_ += ']';
  }
  template <class Items, class Each>
  void array(const Items& items, Each each) {
    separate();
    out_ += '[';
    for (const auto& item : items) each(item);
    out_ += ']';
  }

 private:
  void separate() {
    const char last = out_.empty() ? '[' : out_.back();
    if (last != '[' && last != '{' && last != ':') out_ += ',';
  }
  std::string& out_;
};

}  // namespace lowtide::report
