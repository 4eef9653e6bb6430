// The grammar of HLO text, in the forms in which XLA's versions and options write it.
#include "lowtide/io/hlo_text.h"

#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/io/text_file.h"

#include "io/hlo_module.h"
#include "io/temporary_folder.h"

namespace lowtide {
namespace {

using Names = std::vector<std::string>;

Bytes bytes_of(const std::string& shape) {
  const Graph graph = hlo_graph(hlo_module("  ROOT x = " + shape + " parameter(0)"));
  return graph.bytes(TensorId(0));
}

TEST_CASE("hlo: what begins as a module is one, whatever the file's name") {
  CHECK(io::is_hlo_text("HloModule m"));
  CHECK(io::is_hlo_text("// dumped\n/* by XLA */ HloModule m"));
  CHECK(io::is_hlo_text("\xef\xbb\xbfHloModule m"));
  CHECK_FALSE(io::is_hlo_text("{\"format\": \"lowtide-graph\"}"));
  CHECK_FALSE(io::is_hlo_text(""));
  CHECK_FALSE(io::is_hlo_text("/* HloModule"));
  const TemporaryFolder folder;
  const std::string text = hlo_module("  ROOT x = f32[2] parameter(0)");
  for (const char* name : {"m.hlo", "m.txt", "m.gz"}) {
    io::write_text_file(folder / name, text);
    CHECK(io::read_graph(folder / name).graph.name() == "test");
  }
}

TEST_CASE("hlo: with and without percent signs and types of operands") {
  for (const std::string add : {"add(%x, %x)", "add(x, x)", "add(f32[2]{0} %x, f32[2]{0} %x)",
                                "add(f32[2] x, /*index=1*/f32[2] x)"}) {
    const Graph graph =
        hlo_graph(hlo_module("  %x = f32[2]{0} parameter(0)\n  ROOT %y = f32[2]{0} " + add));
    CHECK(graph.op(OpId(0)).kind == "hlo.add");
    CHECK(input_names(graph, OpId(0)) == Names{"x"});
  }
  // values of attributes with blanks, and several instructions on a line
  CHECK(hlo_graph(hlo_module("x = f32[2] parameter(0) y = f32[2] all-reduce(x), "
                             "replica_groups=mesh['a'=2] {'a'}, to_apply=f ROOT z = f32[2] tanh(y)",
                             "f { a = f32[] parameter(0) }"))
            .op_count() == 2);
  CHECK(hlo_graph(hlo_module("  x = (f32[2], s32[]) parameter(0)\n"
                             "  ROOT y = f32[2] custom-call((f32[2], s32[]) x)"))
            .inputs(OpId(0))
            .size() == 2);
}

TEST_CASE("hlo: headers, listings of source files and threads are read over") {
  const std::string text = R"(HloModule jit_step, is_scheduled=true,
 entry_computation_layout={(f32[2]{0}, /*index=1*/f32[2]{0})->(f32[2]{0})}, num_partitions=4

FileNames
1 "model.py"

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%helper (a: f32[2]) -> f32[2] {
  ROOT %a = f32[2]{0} parameter(0)
}, execution_thread="parallel"

ENTRY %main.1 (x: f32[2], y: (f32[2], s32[])) -> (f32[2]) {
  %x = f32[2]{0} parameter(0), metadata={op_name="x[\"a\"]}{" source_line=3}
  %y = (f32[2]{0}, s32[]) parameter(1)
  %z = f32[2]{0} negate(%x), sharding={devices=[2,1]<=[2]}, backend_config={"a":{"b":"}"},"c":[1]}
  ROOT %t = (f32[2]{0}) tuple(%z)
})";
  const io::GraphFile file = io::read_graph_text(text, "file");
  CHECK(file.warnings.empty());
  CHECK(file.graph.name() == "jit_step");
  CHECK(file.graph.op(OpId(0)).attributes == R"({"flops":2,"sharding":"{devices=[2,1]<=[2]}"})");
  CHECK(file.graph.outputs().size() == 1);
}

TEST_CASE("hlo: literals of any length are skipped") {
  std::string rows;
  for (int i = 0; i < 20000; ++i) rows += "{ 1, -2.5e-3, nan, (0, 1) },\n";
  const Graph graph =
      hlo_graph(hlo_module("  c = f32[20000,4] constant({" + rows +
                           "{0,0,0,0}})\n"
                           "  s = u8[3] constant(\"a)b\")\n  ROOT y = f32[20000,4] negate(c)"));
  CHECK(graph.op_count() == 1);
  // constants are part of the program
  CHECK(graph.bytes(tensor_named(graph, "c")) == Bytes(0));
  CHECK(graph.tensor(tensor_named(graph, "c")).role == Role::constant);
}

TEST_CASE("hlo: bytes of number types, layouts and tiles") {
  CHECK(bytes_of("pred[10]{0}") == Bytes(10));
  CHECK(bytes_of("s4[9]") == Bytes(5));
  CHECK(bytes_of("u4[8]{0:E(4)}") == Bytes(4));
  CHECK(bytes_of("s4[8]{0:E(8)}") == Bytes(8));
  CHECK(bytes_of("s2[9]") == Bytes(3));
  CHECK(bytes_of("f4e2m1fn[3]") == Bytes(2));
  CHECK(bytes_of("f8e4m3b11fnuz[7]") == Bytes(7));
  CHECK(bytes_of("bf16[3,5]{1,0}") == Bytes(30));
  CHECK(bytes_of("c128[3]") == Bytes(48));
  CHECK(bytes_of("f32[]") == Bytes(4));
  CHECK(bytes_of("f32[<=6,2]") == Bytes(48));
  CHECK(bytes_of("f32[0,4611686018427387904]") == Bytes(0));
  CHECK(bytes_of("token[]") == Bytes(0));
  // tiles pad the last dimensions of the layout
  CHECK(bytes_of("f32[10,130]{1,0:T(8,128)}") == Bytes(16 * 256 * 4));
  CHECK(bytes_of("f32[10,130]{0,1:T(8,128)}") == Bytes(136 * 128 * 4));
  CHECK(bytes_of("bf16[2,3,5]{2,1,0:T(8,128)(2,1)}") == Bytes(2 * 8 * 128 * 2));
  CHECK(bytes_of("f32[8]{0:S(5)}") == Bytes(0));
  CHECK(bytes_of("f32[8]{0:S(1)}") == Bytes(32));
}

TEST_CASE("hlo: number types and shapes are those of graph files") {
  const Graph graph = hlo_graph(hlo_module("  ROOT x = s32[2,<=3]{1,0} parameter(0)"));
  CHECK(graph.tensor(TensorId(0)).dtype == "i32");
  CHECK(graph.tensor(TensorId(0)).shape == std::vector<std::int64_t>{2, 3});
}

TEST_CASE("hlo: warnings") {
  const auto warnings = [](const std::string& text) {
    return io::read_graph_text(text, "file").warnings;
  };
  const auto unscheduled = warnings("HloModule m\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n");
  REQUIRE(unscheduled.size() == 1);
  CHECK(unscheduled[0].find("is_scheduled=true is missing") != std::string::npos);
  const auto unknown =
      warnings(hlo_module("  x = f32[] parameter(0)\n  ROOT y = f32[] frobnicate(x)"));
  CHECK(unknown == Names{"unknown opcodes, which count as moving their operands: \"frobnicate\""});
  CHECK_THROWS_AS(io::read_graph_text("{}", "file", {.outputs_from_start = true}), InputError);
}

}  // namespace
}  // namespace lowtide
