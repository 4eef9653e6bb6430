// Text that fits into the columns of a terminal, whatever the names in it are made of.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lowtide::report {

// Valid UTF-8 without characters that steer a terminal or turn the direction of writing: each of
// those, and each invalid byte, becomes U+FFFD. With `unicode` false everything beyond ASCII
// becomes '?'.
std::string clean_text(std::string_view text, bool unicode = true);

// Columns that clean text takes on a terminal: 0 for combining marks, 2 for wide characters.
std::size_t columns_of(std::string_view text);

// Clean text in at most `columns` columns: the middle gives way to an ellipsis.
std::string shorten(std::string_view text, std::size_t columns, bool unicode = true);

// Clean text in lines of at most `columns` columns, each ending in a newline: broken at spaces
// where there are any.
std::string wrap(std::string_view text, std::size_t columns, bool unicode = true);

}  // namespace lowtide::report
