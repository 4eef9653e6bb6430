// A libortools that misbehaves once it is opened, or as it is opened: LOWTIDE_FAKE says how.
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

std::string how_to_fail() {
  const char* set = std::getenv("LOWTIDE_FAKE");
  return set == nullptr ? "" : set;
}

[[gnu::constructor]] void opened() {
  if (how_to_fail() == "open_abort") std::abort();
  if (how_to_fail() == "open_hang") sleep(100);
}

}  // namespace

extern "C" {

void* SolveCpNewEnv() { return std::malloc(1); }
void SolveCpDestroyEnv(void* env) { std::free(env); }
void SolveCpStopSearch(void*) {}

void SolveCpInterruptible(void*, const void*, int, const void*, int, void** response, int* size) {
  const std::string how = how_to_fail();
  if (how == "abort") std::abort();
  if (how == "hang") sleep(100);
  if (how == "exit") _exit(9);
  if (how == "memory") {
    std::vector<std::vector<char>> hoard;
    for (int i = 0; i < 4096; ++i) hoard.emplace_back(std::size_t{1} << 20, 'x');
  }
  // "invalid": status 1; else bytes that are no message.
  const std::string answer = how == "invalid" ? "\x08\x01" : "\xff\xff\xff";
  *response = std::malloc(answer.size());
  std::memcpy(*response, answer.data(), answer.size());
  *size = static_cast<int>(answer.size());
}

}  // extern "C"
