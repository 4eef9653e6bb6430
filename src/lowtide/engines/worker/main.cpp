// lowtide-worker: runs solves of an external engine, so that a crash, a leak or an overrun in it
// has no effect on the caller. Started by the library; of no use by hand.
#include <cstdio>
#include <filesystem>
#include <new>

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lowtide/engines/memory.h"
#include "lowtide/engines/worker/engines.h"

namespace lowtide::engines {

void* open_library(const std::string& path, std::string& why) {
  std::error_code error;
  const auto resolved = std::filesystem::canonical(path, error);
  const bool plain = path.find('/') == std::string::npos;
  const std::string name = error || plain ? path : resolved.string();
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  why = dlerror();
  // The caller knows the name.
  for (const std::string& known : {name + ": ", std::string("cannot open shared object file: ")})
    if (why.starts_with(known)) why.erase(0, known.size());
  why = "cannot be opened: " + why;
  return nullptr;
}

namespace {

void limit_memory(std::int64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0) return;
  // A sanitizer has reserved its shadow by now, which exceeds any limit. The hard limit stays,
  // since the next request may allow more.
  limit.rlim_cur = bytes > 0 ? static_cast<rlim_t>(own_memory() + bytes) : limit.rlim_max;
  setrlimit(RLIMIT_DATA, &limit);
}

int run() {
  Channel channel;
  auto request = channel.receive();
  if (!request) {
    std::fputs("lowtide-worker is started by Lowtide itself\n", stderr);
    return 2;
  }
  channel.watch();
  for (; request; request = channel.receive()) {
    EngineReport ready;
    ready.kind = EngineReport::ready;
    channel.send(ready);
    limit_memory(request->memory_bytes);
    const auto engine = request->engine == EngineKind::cpsat ? run_cpsat : run_highs;
    EngineReport last;
    try {
      last = engine(*request, channel);
    } catch (const std::bad_alloc&) {
      last.kind = EngineReport::failed;
      last.text = "it ran out of memory";
    }
    channel.send(last);
    if (!request->more) break;
  }
  return 0;
}

}  // namespace
}  // namespace lowtide::engines

// No destructors: those of the libraries may hang or crash.
int main() { _exit(lowtide::engines::run()); }
