// Makes any names fit the columns of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lowtide::report {

// Valid UTF-8 without control characters and changes of the writing direction: each of these, and
// each invalid byte, becomes U+FFFD. If `unicode` is false, all characters beyond ASCII become '?'.
std::string clean_text(std::string_view text, bool unicode = true);

// The columns of clean text on a terminal: 0 for combining marks, 2 for wide characters.
std::size_t columns_of(std::string_view text);

// Clean text in at most `columns` columns: an ellipsis replaces the middle.
std::string shorten(std::string_view text, std::size_t columns, bool unicode = true);

// Clean text in lines of at most `columns` columns, each ending in a newline, broken at spaces if
// there are any.
std::string wrap(std::string_view text, std::size_t columns, bool unicode = true);

}  // namespace lowtide::report
