// Reading from the tape: every question is answered by walking forward over tokens.
#include "lowtide/io/json.h"

#include "lowtide/base/error.h"
#include "lowtide/io/json_tape.h"

namespace lowtide::io {

namespace {

// The length of the UTF-8 character that `text` begins with; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                                           : 4;
  if (length == 0 || lead > 0xf4 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

void append_text(const JsonTape& tape, std::uint32_t at, std::string& out) {
  const JsonToken& token = tape.tokens[at];
  switch (token.kind) {
    case JsonKind::null: out += "null"; return;
    case JsonKind::boolean: out += token.value != 0 ? "true" : "false"; return;
    case JsonKind::integer: out += std::to_string(token.value); return;
    case JsonKind::number: out += tape.characters_of(token); return;
    case JsonKind::string: append_json_string(out, tape.characters_of(token)); return;
    case JsonKind::array:
    case JsonKind::object: break;
  }
  const bool object = token.kind == JsonKind::object;
  out += object ? '{' : '[';
  // Recursion is bounded by kMaxJsonDepth.
  for (std::uint32_t child = at + 1; child < token.next; child = tape.tokens[child].next) {
    if (child != at + 1) out += ',';
    if (object) {
      append_json_string(out, tape.key_of(tape.tokens[child]));
      out += ':';
      ++child;
    }
    append_text(tape, child, out);
  }
  out += object ? '}' : ']';
}

void append_pointer_part(std::string& out, std::string_view key) {
  constexpr std::size_t kShown = 80;
  out += '/';
  for (char c : key.substr(0, kShown)) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  if (key.size() > kShown) out += "...";
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";
      text.remove_prefix(1);
      continue;
    }
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += "\\u00";
      out += {kHex[static_cast<unsigned char>(c) >> 4], kHex[static_cast<unsigned char>(c) & 15]};
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
}

std::string_view to_string(JsonKind kind) {
  switch (kind) {
    case JsonKind::null: return "null";
    case JsonKind::boolean: return "true or false";
    case JsonKind::integer: return "an integer";
    case JsonKind::number: return "a number";
    case JsonKind::string: return "a string";
    case JsonKind::array: return "a list";
    case JsonKind::object: return "an object";
  }
  return "null";
}

std::string json_pointer(const JsonTape& tape, std::uint32_t at) {
  std::string pointer;
  std::uint32_t inside = 0;
  while (inside != at) {
    const bool object = tape.tokens[inside].kind == JsonKind::object;
    std::uint32_t child = inside + 1;
    for (std::size_t position = 0;; ++position) {
      const JsonToken& key = tape.tokens[child];
      // A key stands for its value.
      if (object && child == at) at = child + 1;
      if (object) ++child;
      const std::uint32_t next = tape.tokens[child].next;
      if (next == 0 || at < next) {
        append_pointer_part(pointer, object ? tape.key_of(key) : std::to_string(position));
        break;
      }
      child = next;
    }
    inside = child;
  }
  return pointer;
}

JsonKind JsonValue::kind() const { return tape_->tokens[at_].kind; }

std::string JsonValue::pointer() const { return json_pointer(*tape_, at_); }

void JsonValue::refuse(std::string reason) const { throw InputError(pointer(), std::move(reason)); }

void JsonValue::refuse_kind(std::string_view wanted) const {
  refuse("must be " + std::string(wanted) + ", not " + std::string(to_string(kind())));
}

std::int64_t JsonValue::as_integer() const {
  const JsonToken& token = tape_->tokens[at_];
  if (token.kind == JsonKind::integer) return token.value;
  if (token.kind != JsonKind::number) refuse_kind("an integer");
  constexpr std::size_t kShown = 40;
  std::string written(number_text().substr(0, kShown));
  if (number_text().size() > kShown) written += "...";
  if (number_text().find_first_of(".eE") == std::string_view::npos)
    refuse((written.starts_with('-') ? "must not be negative: " : "must be below 2^63, not ") +
           written);
  refuse("must be an integer without fraction or exponent, not " + written);
}

std::int64_t JsonValue::as_count() const {
  const std::int64_t count = as_integer();
  if (count < 0) refuse("must not be negative: " + std::to_string(count));
  return count;
}

bool JsonValue::as_boolean() const {
  if (!is(JsonKind::boolean)) refuse_kind("true or false");
  return tape_->tokens[at_].value != 0;
}

std::string_view JsonValue::as_string() const {
  if (!is(JsonKind::string)) refuse_kind("a string");
  return tape_->characters_of(tape_->tokens[at_]);
}

JsonValue::Items JsonValue::items() const {
  if (!is(JsonKind::array)) refuse_kind("a list");
  return {Items::Iterator(tape_, at_ + 1), Items::Iterator(tape_, tape_->tokens[at_].next)};
}

JsonValue::Members JsonValue::members() const {
  if (!is(JsonKind::object)) refuse_kind("an object");
  return {Members::Iterator(tape_, at_ + 1), Members::Iterator(tape_, tape_->tokens[at_].next)};
}

std::size_t JsonValue::size() const {
  if (!is(JsonKind::array) && !is(JsonKind::object)) return 0;
  return static_cast<std::size_t>(tape_->tokens[at_].value);
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!is(JsonKind::object)) return std::nullopt;
  for (const JsonMember member : members())
    if (member.key == key) return member.value;
  return std::nullopt;
}

std::string_view JsonValue::number_text() const {
  return is(JsonKind::number) ? tape_->characters_of(tape_->tokens[at_]) : std::string_view();
}

std::string JsonValue::text() const {
  std::string out;
  append_text(*tape_, at_, out);
  return out;
}

JsonValue::Items::Iterator& JsonValue::Items::Iterator::operator++() {
  at_ = tape_->tokens[at_].next;
  return *this;
}

JsonMember JsonValue::Members::Iterator::operator*() const {
  return {tape_->key_of(tape_->tokens[at_]), JsonValue(tape_, at_ + 1)};
}

JsonValue::Members::Iterator& JsonValue::Members::Iterator::operator++() {
  at_ = tape_->tokens[at_ + 1].next;
  return *this;
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace lowtide::io
