// What every page that is written has in common. Private to the room.
#pragma once

#include <string>
#include <string_view>

namespace lowtide::report {

// What one page differs in from another.
struct PageParts {
  std::string title, text;          // the text is for readers without scripts
  std::string_view main;            // HTML
  std::string style, data, script;  // the data are JSON
};

// page.html with the parts, the common style and the common script put into it.
std::string make_page(const PageParts& parts);

}  // namespace lowtide::report
