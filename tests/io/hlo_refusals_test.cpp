// Text that is refused: the place, and a sentence that names the instruction and what would be
// right. The rest shows that no depth or size of a file is too much.
#include <string>

#include <doctest/doctest.h>

#include "io/hlo_module.h"
#include "io/refusal.h"

namespace lowtide {
namespace {

Refusal refused(const std::string& text) {
  return refusal_of([&] { io::read_graph_text(text, "m.hlo"); });
}

// Of a module whose entry begins on line 4.
void check_entry(const std::string& entry, const std::string& place, const std::string& reason,
                 const std::string& before = {}) {
  const std::string text = "HloModule test\n" + before + "\nENTRY main {\n" + entry + "\n}\n";
  const Refusal expected{"m.hlo", place, reason};
  CHECK(refused(text) == expected);
}

std::string repeated(const std::string& piece, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += piece;
  return text;
}

TEST_CASE("hlo: refused syntax") {
  check_entry(
      "x = q32[2] parameter(0)", "line 4, column 5",
      "instruction \"x\": unknown number type \"q32\"; known are pred, s and u with 1 to 64 "
      "bits, f16, bf16, f32, f64, f8..., f6..., f4e2m1fn, c64, c128, token, opaque");
  check_entry(
      "x = f32[?,2] parameter(0)", "line 4, column 9",
      "instruction \"x\": a dimension without a limit (?); lower the module for shapes that "
      "are known, or with an upper limit for this dimension (<=128)");
  check_entry("x = f32[2] parameter(0)\ny = f32[2] add(x, z)", "line 5, column 19",
              "instruction \"y\": operand \"z\" is not defined before it is used; each instruction "
              "must stand after those that it reads");
  check_entry("x = f32[2] parameter(0)\nx = f32[2] negate(x)", "line 5, column 1",
              "two instructions of computation \"main\" have the name \"x\"");
  check_entry("x = f32[2] constant({1, 2)", "line 4, column 26",
              "instruction \"x\": this bracket closes none, in what begins at line 4, column 20");
  check_entry("x = f32[2] parameter(0), metadata={op_name=\"a", "line 4, column 44",
              "instruction \"x\": this string has no end: a closing quote is missing");
  check_entry("x = f32[2] parameter(1)", "line 4, column 1",
              "computation \"main\": parameter \"x\" has the number 1; the parameters must be "
              "numbered from 0, each once, and there are 1");
  CHECK(refused("HloModule m").reason == "the module has no computation; is the file cut off?");
  CHECK(refused("HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n").reason ==
        "the file ends in computation \"e\": it is cut off");
  CHECK(refused("HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n}\n\nHloModule n\n").reason ==
        "a second module begins here; put each into a file of its own");
}

TEST_CASE("hlo: refused meaning") {
  check_entry("x = f32[2] parameter(0)\ny = f32[2] add(x)", "line 5, column 1",
              "instruction \"y\": add has 1 operand, and takes 2");
  check_entry("x = (f32[2]) parameter(0)\ny = f32[2] get-tuple-element(x), index=1",
              "line 5, column 1", "instruction \"y\": its operand has no element 1");
  check_entry("x = f32[2] parameter(0)\ny = (f32[3]) tuple(x)", "line 5, column 1",
              "instruction \"y\": operand 0 has another shape than the tuple says");
  check_entry("x = f32[2] parameter(0)\ny = f32[2] fusion(x), kind=kLoop, calls=%gone",
              "line 5, column 42",
              "instruction \"y\": there is no computation \"gone\" in this file; dump the whole "
              "module");
  check_entry(
      "x = f32[2] parameter(0)\ny = f32[2] while(x), body=main", "line 5, column 1",
      "instruction \"y\": computation \"main\" calls itself through it; calls must not form "
      "a cycle");
  check_entry("x = f32[2] parameter(0)\ny = f32[2] call(x, x), to_apply=f", "line 5, column 1",
              "instruction \"y\": it passes 2 operands to computation \"f\", which has 1 parameter",
              "f { p = f32[2] parameter(0) }");
  check_entry("x = f32[] parameter(0)\nROOT y = f32[] async-update()", "line 5, column 6",
              "instruction \"y\": async-update has 0 operands, and takes 1");
}

TEST_CASE("hlo: sizes, operations and times beyond 63 bits") {
  check_entry("x = f32[4611686018427387904,4] parameter(0)", "line 4, column 5",
              "instruction \"x\": a shape of 2^63 bytes or more");
  check_entry("x = f32[99999999999999999999] parameter(0)", "line 4, column 9",
              "instruction \"x\": a number of 2^63 or more");
  check_entry(
      "x = pred[2147483648,1073741824] parameter(0)\n"
      "y = pred[2147483648,1073741824] dot(x, x), lhs_contracting_dims={1}",
      "line 5, column 1",
      "instruction \"y\": its bytes or its operations, or those of its computation so far, "
      "do not fit into 63 bits");
  check_entry(
      "x = f32[9] parameter(0)\ny = f32[9] while(x), condition=c, body=f, "
      "backend_config={\"known_trip_count\":{\"n\":\"9223372036854775807\"}}",
      "line 5, column 1",
      "instruction \"y\": its operations, bytes or time do not fit into 63 bits",
      "f { p = f32[9] parameter(0) ROOT n = f32[9] negate(p) } "
      "c { p = f32[9] parameter(0) ROOT t = pred[] constant(true) }");
  CHECK(refused("HloModule m, input_output_alias={ {0}: (3, {}, may-alias) }\n"
                "ENTRY e {\n  x = f32[] parameter(0)\n}\n")
            .reason ==
        "input_output_alias or buffer_donor of the module names parameter 3, and its "
        "entry has 1");
}

TEST_CASE("hlo: no nesting is too deep") {
  constexpr int kDeep = 100000;
  CHECK(refused("HloModule m\nENTRY e {\n  x = " + repeated("(", kDeep)).reason ==
        "instruction \"x\": tuples in tuples, more than 100 deep");
  const std::string literal = repeated("{", kDeep) + repeated("}", kDeep);
  CHECK(refused("HloModule m\nENTRY e {\n  x = f32[2] constant(" + literal + ")\n}\n").reason ==
        "not refused");
  // each computation calls the one before it
  std::string text = "HloModule m\nc0 { p = f32[2] parameter(0) }\n";
  constexpr int kCalls = 5000;
  for (int i = 1; i <= kCalls; ++i)
    text += "c" + std::to_string(i) +
            " { p = f32[2] parameter(0) ROOT r = f32[2] call(p), to_apply=c" +
            std::to_string(i - 1) + " }\n";
  CHECK(refused(text).reason == "not refused");
  // each calls the one before it twice
  std::string twice = "HloModule m\nc0 { p = f32[2] parameter(0) ROOT r = f32[2] negate(p) }\n";
  for (int i = 1; i <= 80; ++i) {
    const std::string callee = "call(p), to_apply=c" + std::to_string(i - 1);
    twice += "c" + std::to_string(i) + " { p = f32[2] parameter(0) q = f32[2] " + callee +
             " ROOT r = f32[2] " + callee + " }\n";
  }
  CHECK(refused(twice).reason.find("do not fit into 63 bits") != std::string::npos);
}

TEST_CASE("hlo: a file cut off anywhere is refused or read") {
  const std::string text = hlo_module(R"(
  x = f32[4]{0} parameter(0), metadata={op_name="x"}
  a = (f32[4], f32[4]) custom-call(f32[4]{0} x), custom_call_target="f", backend_config="{}"
  b = f32[4] get-tuple-element(a), index=1
  ROOT y = f32[4] fusion(b), kind=kLoop, calls=f)",
                                      "f (p: f32[4]) -> f32[4] {\n  p = f32[4] parameter(0)\n  "
                                      "ROOT n = f32[4] negate(p)\n}");
  REQUIRE(refused(text).reason == "not refused");
  for (std::size_t end = 0; end + 1 < text.size(); ++end)
    CHECK(refused(text.substr(0, end)).reason != "");
}

}  // namespace
}  // namespace lowtide
