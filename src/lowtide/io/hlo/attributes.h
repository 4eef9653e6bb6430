// What stands in attributes of a module or an instruction. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/io/hlo/cursor.h"
#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// ", name=value" any number of times.
std::vector<Attribute> parse_attributes(Cursor& cursor);

// "{ {0}: (0, {}, may-alias), {1}: (3, {1}, must-alias) }".
std::vector<AliasEntry> parse_aliases(Cursor cursor);
// "{ (0, {}), (3, {1}) }".
std::vector<std::pair<std::int64_t, ShapeIndex>> parse_donors(Cursor cursor);

// The names in "{%a, %b}", or the one in "%a".
std::vector<std::string_view> names_in(std::string_view value);
// All whole numbers in the value, in order: those of "{1,2}" or "3x3".
std::vector<std::int64_t> integers_in(std::string_view value);
// Of "{size=3x3 stride=2x2}", the word after "size=".
std::string_view member_of(std::string_view value, std::string_view name);

// The list of numbers under a key of a backend_config: {"n":"5"}, {"lhs":["1"]}. Empty if there is
// none. Quotes may be escaped.
std::vector<std::int64_t> numbers_under(std::string_view config, std::string_view key);

// The text of "..." in a value, without its quotes, escapes resolved; `key`: op_name, for example.
std::string string_under(std::string_view value, std::string_view key);

}  // namespace lowtide::io::hlo
