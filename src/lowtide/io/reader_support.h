// Helpers shared by the readers of all file kinds. Private to the room.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/io/json.h"

namespace lowtide::io {

// Collects unknown keys; one warning names them all.
class UnknownKeys {
 public:
  // `where`: the kind of object that has the key, "ops" for example; "" for the file itself.
  void add(std::string_view where, std::string_view key);
  // Appends the warning, if there are unknown keys to report.
  void warn(std::vector<std::string>& warnings) const;

 private:
  std::vector<std::string> named_;  // in order of appearance
  std::set<std::string, std::less<>> seen_;
};

// Checks the start of a file: an object with this `format` ("lowtide-graph") and a known version.
// The message for a file of the other kind names that kind.
void check_format(JsonValue root, std::string_view format);

// Whether the document looks like a node-link graph: an object with a list of nodes and no
// "format".
bool is_node_link(JsonValue root);

// `text` in quotes, shortened to fit a message.
std::string quoted(std::string_view text);

// 'op 3 "mm_3"', as Graph::label, but from the JSON object that describes the op.
std::string label_of(std::string_view what, std::size_t index, JsonValue object);

}  // namespace lowtide::io
