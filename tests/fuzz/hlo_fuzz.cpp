// libFuzzer on the reader of HLO text; see properties.h.
#include <cstddef>
#include <cstdint>

#include "properties.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lowtide::fuzz_hlo({reinterpret_cast<const char*>(data), size});
  return 0;
}
