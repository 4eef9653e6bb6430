// From values to tape: a token for each call. Arrays and objects are closed from a stack of their
// own, so depth costs nothing until it is refused.
#include <limits>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/io/json.h"
#include "lowtide/io/json_tape.h"

namespace lowtide::io {

namespace {

constexpr std::size_t kMaxTokens = std::numeric_limits<std::uint32_t>::max() - 2;

std::uint32_t end_of(const JsonTape& tape) {
  return static_cast<std::uint32_t>(tape.tokens.size());
}

}  // namespace

std::string too_deep() { return "nested deeper than " + std::to_string(kMaxJsonDepth) + " levels"; }

JsonBuilder::JsonBuilder(std::size_t values) : tape_(std::make_unique<JsonTape>()) {
  tape_->tokens.reserve(values);
}

JsonBuilder::~JsonBuilder() = default;

void JsonBuilder::null() { append(JsonKind::null, 0); }
void JsonBuilder::boolean(bool value) { append(JsonKind::boolean, value ? 1 : 0); }
void JsonBuilder::integer(std::int64_t value) { append(JsonKind::integer, value); }
void JsonBuilder::number(std::string_view written) { append(JsonKind::number, keep(written)); }
void JsonBuilder::string(std::string_view text) { append(JsonKind::string, keep(text)); }

void JsonBuilder::begin_array() { begin(JsonKind::array); }
void JsonBuilder::end_array() { end(); }
void JsonBuilder::begin_object() { begin(JsonKind::object); }
void JsonBuilder::end_object() {
  refuse_repeated_keys(open_.back());
  end();
}

void JsonBuilder::key(std::string_view name) {
  const auto next = static_cast<std::uint32_t>(tape_->keys.size());
  const auto [found, added] = tape_->key_index.try_emplace(std::string(name), next);
  if (added) {
    tape_->keys.push_back(&found->first);
    last_object_.push_back(0);
  }
  tape_->tokens.push_back({found->second, end_of(*tape_) + 1, JsonKind::string});
}

std::size_t JsonBuilder::depth() const { return open_.size(); }

void JsonBuilder::refuse(std::string reason) {
  null();
  throw InputError(json_pointer(*tape_, end_of(*tape_) - 1), std::move(reason));
}

JsonDocument JsonBuilder::build() { return JsonDocument(std::move(tape_)); }

std::int64_t JsonBuilder::keep(std::string_view text) {
  const std::size_t offset = tape_->characters.size();
  if (offset + text.size() > kMaxTokens) throw InputError("", "more than 4 GB of JSON");
  tape_->characters += text;
  return static_cast<std::int64_t>((offset << 32) | text.size());
}

void JsonBuilder::append(JsonKind kind, std::int64_t value) {
  if (tape_->tokens.size() >= kMaxTokens) throw InputError("", "more than 2^32 JSON values");
  if (!open_.empty()) ++tape_->tokens[open_.back()].value;
  tape_->tokens.push_back({value, end_of(*tape_) + 1, kind});
}

void JsonBuilder::begin(JsonKind kind) {
  if (open_.size() >= kMaxJsonDepth)
    throw InputError(json_pointer(*tape_, open_.back()), too_deep());
  const std::uint32_t at = end_of(*tape_);
  append(kind, 0);
  tape_->tokens[at].next = 0;
  open_.push_back(at);
}

void JsonBuilder::end() {
  tape_->tokens[open_.back()].next = end_of(*tape_);
  open_.pop_back();
}

// When an object ends, so that objects inside it cannot disturb the marks.
void JsonBuilder::refuse_repeated_keys(std::uint32_t object) {
  for (std::uint32_t at = object + 1; at < end_of(*tape_); at = tape_->tokens[at + 1].next) {
    std::uint32_t& last = last_object_[static_cast<std::size_t>(tape_->tokens[at].value)];
    if (last == object + 1)
      throw InputError(json_pointer(*tape_, at), "this key occurs twice in its object");
    last = object + 1;
  }
}

JsonDocument::JsonDocument(std::unique_ptr<JsonTape> tape) : tape_(std::move(tape)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

}  // namespace lowtide::io
