// The document: what is kept exactly, what is refused and where, and texts made to hurt.
#include "lowtide/io/json.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"

#include "io/refusal.h"

namespace lowtide {
namespace {

std::string compact(std::string_view text) { return io::JsonDocument(text).root().text(); }

Refusal refusal(std::string_view text) {
  return refusal_of([&] { io::JsonDocument document(text); });
}

TEST_CASE("json: values come back as they were written") {
  CHECK(compact("null") == "null");
  CHECK(compact(" [ true , false ] ") == "[true,false]");
  CHECK(compact("{ \"a\" : [ ] , \"b\" : { } }") == "{\"a\":[],\"b\":{}}");
  CHECK(compact("[[1,[2]],{\"x\":{\"y\":[3]}},4]") == "[[1,[2]],{\"x\":{\"y\":[3]}},4]");
  // Numbers keep their text unless they are integers below 2^63.
  CHECK(compact("[1.50, 1e3, -0.0, 1E+2, -7, 0]") == "[1.50,1e3,-0.0,1E+2,-7,0]");
  CHECK(compact("[9223372036854775807, -9223372036854775808]") ==
        "[9223372036854775807,-9223372036854775808]");
  CHECK(compact("[9223372036854775808, 123456789012345678901234567890]") ==
        "[9223372036854775808,123456789012345678901234567890]");
  // Escapes: only where they must be.
  CHECK(compact(R"(["\u00e9\/\"\\\n\u0000\u001f", "\ud83d\ude00"])") ==
        "[\"\xc3\xa9/\\\"\\\\\\n\\u0000\\u001f\",\"\xf0\x9f\x98\x80\"]");
  CHECK(compact("\xef\xbb\xbf[1]") == "[1]");
}

TEST_CASE("json: a document of values is that of their text") {
  io::JsonBuilder builder;
  builder.begin_object();
  builder.key("ops");
  builder.begin_array();
  builder.integer(-7);
  builder.number("1.50");
  builder.begin_object();
  builder.key("name");
  builder.string("a\"b");
  builder.end_object();
  builder.end_array();
  builder.key("none");
  builder.null();
  builder.key("yes");
  builder.boolean(true);
  builder.end_object();
  const io::JsonDocument document = builder.build();
  const std::string text = R"({"ops":[-7,1.50,{"name":"a\"b"}],"none":null,"yes":true})";
  CHECK(document.root().text() == text);
  CHECK(document.root().text() == compact(text));
  CHECK(document.root().find("ops")->size() == 3);
  CHECK((*document.root().find("ops")->items().begin()).pointer() == "/ops/0");
}

TEST_CASE("json: an error has the place of the value") {
  const auto refused = [](auto write) {
    return refusal_of([&] {
      io::JsonBuilder builder;
      builder.begin_object();
      builder.key("ops");
      builder.begin_array();
      builder.integer(1);
      write(builder);
    });
  };
  const Refusal here = refused([](io::JsonBuilder& builder) { builder.refuse("no"); });
  CHECK(here.place == "/ops/1");
  CHECK(here.reason == "no");
  const Refusal twice = refused([](io::JsonBuilder& builder) {
    builder.end_array();
    builder.key("ops");
    builder.null();
    builder.end_object();
  });
  CHECK(twice.place == "/ops");
  const Refusal deep = refused([](io::JsonBuilder& builder) {
    for (std::size_t i = 0; i < io::kMaxJsonDepth; ++i) builder.begin_array();
  });
  CHECK(deep.reason == "nested deeper than 1000 levels");
}

TEST_CASE("json: navigating a document") {
  const io::JsonDocument document(R"({"a": [10, {"x": 1, "y": [2, 3]}, 30], "b/~": "text"})");
  const io::JsonValue root = document.root();
  CHECK(root.size() == 2);
  std::vector<std::string> keys;
  for (const auto& [key, value] : root.members()) keys.emplace_back(key);
  CHECK(keys == std::vector<std::string>{"a", "b/~"});
  const io::JsonValue list = *root.find("a");
  CHECK(list.size() == 3);
  std::vector<std::string> texts, pointers;
  for (const io::JsonValue item : list.items()) {
    texts.push_back(item.text());
    pointers.push_back(item.pointer());
  }
  CHECK(texts == std::vector<std::string>{"10", "{\"x\":1,\"y\":[2,3]}", "30"});
  CHECK(pointers == std::vector<std::string>{"/a/0", "/a/1", "/a/2"});
  const io::JsonValue inner = *(*++list.items().begin()).find("y");
  CHECK((*++inner.items().begin()).pointer() == "/a/1/y/1");
  CHECK(root.find("b/~")->pointer() == "/b~1~0");
  CHECK(root.find("b/~")->as_string() == "text");
  CHECK(root.pointer().empty());
  CHECK_FALSE(root.find("c"));
  CHECK_FALSE(list.find("a"));
}

TEST_CASE("json: only integers pass as integers") {
  const io::JsonDocument document(
      R"([-5, 9223372036854775807, 1.0, 1e2, 9223372036854775808, "1", true, null, [], {}, 3])");
  std::vector<io::JsonValue> items;
  for (const io::JsonValue item : document.root().items()) items.push_back(item);
  CHECK(items[0].as_integer() == -5);
  CHECK(items[1].as_integer() == INT64_MAX);
  CHECK(items[10].as_count() == 3);
  for (std::size_t i = 2; i < 10; ++i)
    CHECK(refusal_of([&] { items[i].as_integer(); }).place == "/" + std::to_string(i));
  CHECK(refusal_of([&] { items[0].as_count(); }).reason == "must not be negative: -5");
  CHECK(refusal_of([&] { items[2].as_integer(); }).reason ==
        "must be an integer without fraction or exponent, not 1.0");
  CHECK(refusal_of([&] { items[4].as_integer(); }).reason ==
        "must be below 2^63, not 9223372036854775808");
  CHECK(items[4].number_text() == "9223372036854775808");
  CHECK(refusal_of([&] { items[6].as_string(); }).reason == "must be a string, not true or false");
  CHECK(refusal_of([&] { items[7].as_boolean(); }).reason == "must be true or false, not null");
  CHECK(refusal_of([&] { items[8].members(); }).reason == "must be an object, not a list");
  CHECK(refusal_of([&] { items[9].items(); }).reason == "must be a list, not an object");
}

TEST_CASE("json: a key may stand once in each object") {
  CHECK(refusal("{\"a\": 1, \"b\": 2, \"a\": 3}").place == "/a");
  CHECK(refusal("[0, {\"x\": {\"k\": 1, \"k\": 2}}]").place == "/1/x/k");
  // Escapes do not hide it.
  CHECK(refusal(R"({"ab": 1, "\u0061b": 2})").place == "/ab");
  // The same key in another object, around or inside, is another key.
  CHECK(compact(R"({"a":{"a":{"a":1},"b":2},"b":3})") == R"({"a":{"a":{"a":1},"b":2},"b":3})");
  CHECK(compact(R"([{"a":1},{"a":2}])") == R"([{"a":1},{"a":2}])");
  CHECK(refusal(R"({"a": {"b": 1}, "c": 0, "a": 2})").place == "/a");
}

TEST_CASE("json: places of broken syntax count lines and columns") {
  CHECK(refusal("[1,\n 2,\n  x]").place == "line 3, column 3");
  CHECK(refusal("").reason == "the file is empty");
  CHECK(refusal("[1] [2]").place == "line 1, column 5");
  CHECK(refusal("{\"a\": NaN}").reason == "JSON has no number NaN");
  CHECK(refusal("[1, 2").reason == "the text ends too early, expected ']'");
  CHECK(refusal("[\"\xff\"]").reason == "invalid string: ill-formed UTF-8 byte");
  CHECK(refusal(std::string_view("[1]\0", 4)).place == "line 1, column 4");
  CHECK(refusal("\xef\xbb").place.starts_with("line 1"));
}

TEST_CASE("json: excessive depth is refused") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(compact(nested(io::kMaxJsonDepth)) == nested(io::kMaxJsonDepth));
  CHECK(refusal(nested(io::kMaxJsonDepth + 1)).reason == "nested deeper than 1000 levels");
  CHECK(refusal(std::string(5000000, '[')).place == "line 1, column 1001");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  CHECK(refusal(objects).reason == "nested deeper than 1000 levels");
  // Brackets in strings are none.
  CHECK(refusal("[\"[[[\\\"[\",\n" + std::string(1000, '[')).place == "line 2, column 1000");
}

TEST_CASE("json: long keys, many keys, long strings") {
  const std::string key(1000000, 'k');
  const io::JsonDocument long_key("{\"" + key + "\": 1.5}");
  CHECK(long_key.root().find(key)->number_text() == "1.5");
  const Refusal refused = refusal_of([&] { long_key.root().find(key)->as_integer(); });
  CHECK(refused.place.size() < 200);
  CHECK(refusal("{\"" + key + "\": 1, \"" + key + "\": 2}").place.size() < 200);

  std::string text = "{";
  for (int i = 0; i < 200000; ++i) text += "\"key" + std::to_string(i) + "\": 0, ";
  const io::JsonDocument many(text + "\"last\": 1}");
  CHECK(many.root().size() == 200001);
  CHECK(many.root().find("last")->as_integer() == 1);
  CHECK(refusal(text + "\"key7\": 1}").place == "/key7");

  const std::string letters(3000000, 'x');
  CHECK(io::JsonDocument("[\"" + letters + "\"]").root().text().size() == letters.size() + 4);
}

TEST_CASE("json: strings are written so that they can be read") {
  const auto written = [](std::string_view text) {
    std::string out;
    io::append_json_string(out, text);
    return out;
  };
  CHECK(written("a\"b\\c\td") == "\"a\\\"b\\\\c\\td\"");
  CHECK(written(std::string_view("\x7f\0", 2)) == "\"\\u007f\\u0000\"");
  // A stray byte, a cut character, an overlong one, a surrogate, one beyond U+10FFFF.
  CHECK(written("\x80") == "\"\xef\xbf\xbd\"");
  CHECK(written("\xe2\x82") == "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  CHECK(written("\xc0\xaf") == "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  CHECK(written("\xed\xa0\x80") == "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
  CHECK(written("\xf4\x90\x80\x80").size() == 2 + 4 * 3);
  for (int byte = 0; byte < 256; ++byte)
    CHECK_NOTHROW(io::JsonDocument(written(std::string(2, static_cast<char>(byte)))));
}

}  // namespace
}  // namespace lowtide
