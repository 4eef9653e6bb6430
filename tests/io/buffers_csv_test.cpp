// minimalloc's format; tests/cli/test_place.py has what is refused.
#include "lowtide/io/buffers_csv.h"

#include <vector>

#include <doctest/doctest.h>

#include "io/refusal.h"

namespace lowtide {
namespace {

TEST_CASE("buffers: any order of columns, line ends and blank lines") {
  const io::BuffersFile file = io::read_buffers_text(
      "size,id,upper,offset,lower\r\n4096,x y,9,0,-3\r\n\r\n0,\"q\",2,1,1", "buffers.csv");
  CHECK(file.ids == std::vector<std::string>{"x y", "\"q\""});
  CHECK(file.buffers == std::vector<layout::Buffer>{{-3, 9, Bytes(4096)}, {1, 2, Bytes(0)}});
  CHECK(io::write_buffers(file) == "id,lower,upper,size\nx y,-3,9,4096\n\"q\",1,2,0\n");
  const std::vector<Bytes> offsets{Bytes(8), Bytes(0)};
  const std::string written = io::write_buffers(file, offsets);
  CHECK(written == "id,lower,upper,size,offset\nx y,-3,9,4096,8\n\"q\",1,2,0,0\n");
  CHECK(io::read_buffers_text(written, "written").buffers == file.buffers);
}

TEST_CASE("buffers: a refusal names the file and the line") {
  const auto refusal = [](std::string_view text) {
    return refusal_of([&] { io::read_buffers_text(text, "buffers.csv"); });
  };
  CHECK(refusal("id,lower,upper,size\n1,0,1,5\n2,0,1,5,\n") ==
        Refusal{"buffers.csv", "line 3", "has 5 fields, the header 4"});
  CHECK(refusal("id,lower,upper,size,offset\n1,0,1,5,far\n") ==
        Refusal{"buffers.csv", "line 2", "the offset must be an integer below 2^63, not \"far\""});
}

}  // namespace
}  // namespace lowtide
