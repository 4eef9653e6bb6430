#include "lowtide/io/hlo/attributes.h"

#include <algorithm>
#include <charconv>

namespace lowtide::io::hlo {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

ShapeIndex parse_index(Cursor& cursor) {
  ShapeIndex index;
  cursor.expect('{', "before an index of a shape");
  while (!cursor.take('}')) {
    index.push_back(cursor.integer());
    if (!cursor.take(',') && cursor.peek() != '}') cursor.expect('}', "after an index of a shape");
  }
  return index;
}

// The text behind the first `name` that begins a member and that `sign` follows; empty if there is
// none.
std::string_view behind(std::string_view value, std::string_view name, std::string_view sign) {
  for (std::size_t at = value.find(name); at != std::string_view::npos;
       at = value.find(name, at + 1)) {
    const bool whole = at == 0 || value[at - 1] == ' ' || value[at - 1] == '{';
    const std::string_view rest = value.substr(at + name.size());
    if (whole && rest.starts_with(sign)) return rest.substr(sign.size());
  }
  return {};
}

}  // namespace

std::vector<Attribute> parse_attributes(Cursor& cursor) {
  std::vector<Attribute> attributes;
  while (cursor.take(',')) {
    const std::string_view name = cursor.word();
    if (name.empty()) cursor.refuse("expected an attribute after the comma, such as index=0");
    cursor.expect('=', "after the attribute's name");
    attributes.push_back({name, cursor.value()});
  }
  return attributes;
}

std::vector<AliasEntry> parse_aliases(Cursor cursor) {
  std::vector<AliasEntry> aliases;
  cursor.expect('{', "before the aliases");
  while (!cursor.take('}')) {
    AliasEntry entry;
    entry.output = parse_index(cursor);
    cursor.expect(':', "after the index of an output");
    cursor.expect('(', "before the parameter of an alias");
    entry.parameter = cursor.integer();
    if (cursor.take(',')) entry.index = parse_index(cursor);
    if (cursor.take(',')) cursor.word();  // may-alias, must-alias
    cursor.expect(')', "after an alias");
    aliases.push_back(std::move(entry));
    cursor.take(',');
  }
  return aliases;
}

std::vector<std::pair<std::int64_t, ShapeIndex>> parse_donors(Cursor cursor) {
  std::vector<std::pair<std::int64_t, ShapeIndex>> donors;
  cursor.expect('{', "before the donated buffers");
  while (!cursor.take('}')) {
    cursor.expect('(', "before a donated buffer");
    const std::int64_t parameter = cursor.integer();
    cursor.expect(',', "after the number of a parameter");
    donors.emplace_back(parameter, parse_index(cursor));
    cursor.expect(')', "after a donated buffer");
    cursor.take(',');
  }
  return donors;
}

std::vector<std::string_view> names_in(std::string_view value) {
  std::vector<std::string_view> names;
  Cursor cursor(value);
  cursor.take('{');
  while (!cursor.at_end()) {
    const std::string_view name = cursor.name();
    if (name.empty()) break;
    names.push_back(name);
    cursor.take(',');
  }
  return names;
}

std::vector<std::int64_t> integers_in(std::string_view value) {
  std::vector<std::int64_t> integers;
  for (std::size_t at = 0; at < value.size();) {
    if (!is_digit(value[at])) {
      ++at;
      continue;
    }
    std::int64_t integer = 0;
    const auto [end, error] =
        std::from_chars(value.data() + at, value.data() + value.size(), integer);
    if (error == std::errc()) integers.push_back(integer);
    at = static_cast<std::size_t>(end - value.data());
  }
  return integers;
}

std::string_view member_of(std::string_view value, std::string_view name) {
  const std::string_view rest = behind(value, name, "=");
  return rest.substr(0, rest.find_first_of(" }"));
}

std::vector<std::int64_t> numbers_under(std::string_view config, std::string_view key) {
  const std::size_t at = config.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = config.substr(at + key.size());
  // Up to the key that follows: its name begins with a letter.
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos) return {};
  rest.remove_prefix(colon + 1);
  const std::size_t end = rest.find_first_of("]},");
  const bool list = rest.find('[') < end;
  rest = rest.substr(0, list ? rest.find(']') : end);
  if (rest.starts_with("{"))  // {"n":"5"}
    rest.remove_prefix(std::min(rest.find(':'), rest.size()));
  return integers_in(rest);
}

std::string string_under(std::string_view value, std::string_view key) {
  const std::string_view rest = behind(value, key, "=\"");
  std::string text;
  for (std::size_t i = 0; i < rest.size() && rest[i] != '"'; ++i) {
    if (rest[i] == '\\' && i + 1 < rest.size()) ++i;
    text += rest[i];
  }
  return text;
}

}  // namespace lowtide::io::hlo
