// What the readers of all file kinds share. Private to the room.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/io/json.h"

namespace lowtide::io {

// Collects keys that mean nothing to us: one warning names them all.
class UnknownKeys {
 public:
  // `where` is the kind of object that has the key: "ops", or "" for the file itself.
  void add(std::string_view where, std::string_view key);
  // Appends the warning, if there is a reason for one.
  void warn(std::vector<std::string>& warnings) const;

 private:
  std::vector<std::string> named_;  // in order of appearance
  std::set<std::string, std::less<>> seen_;
};

// The start of every file: an object with this `format` ("lowtide-graph") and a version we know.
// A file of the other kind is refused as that.
void check_format(JsonValue root, std::string_view format);

// Whether the document looks like one: an object with a list of nodes and no "format".
bool is_node_link(JsonValue root);

// `text` in quotes, cut to a length that fits a message.
std::string quoted(std::string_view text);

// 'op 3 "mm_3"', from the object that describes it; as Graph::label, before there is a graph.
std::string label_of(std::string_view what, std::size_t index, JsonValue object);

}  // namespace lowtide::io
