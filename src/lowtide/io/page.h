// What every page that is written has in common. Private to the room.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace lowtide {

// `page` with each {{name}} replaced in one pass, so that nothing put in is looked at again.
std::string put_in(std::string_view page,
                   const std::unordered_map<std::string_view, std::string>& parts);

// Text as HTML shows it.
std::string html_text(std::string_view text);

// JSON that may stand inside of a script element.
std::string inside_script(const std::string& json);

}  // namespace lowtide
