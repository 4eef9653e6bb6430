// The common frame of all pages. Private to the room.
#pragma once

#include <string>
#include <string_view>

namespace lowtide::report {

// The content of one page.
struct PageParts {
  std::string title, text;          // the text is for readers without scripts
  std::string_view main;            // HTML
  std::string style, data, script;  // the data are JSON
};

// Fills page.html with the content, the common style and the common script.
std::string make_page(const PageParts& parts);

}  // namespace lowtide::report
