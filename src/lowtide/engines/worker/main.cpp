// lowtide-worker: runs one solve of an engine that is not ours, so that a crash, a leak or an
// overrun in it costs nothing. Started by the library; of no use by hand.
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
  // Whoever asked knows the name.
  for (const std::string& known : {name + ": ", std::string("cannot open shared object file: ")})
    if (why.starts_with(known)) why.erase(0, known.size());
  why = "cannot be opened: " + why;
  return nullptr;
}

namespace {

int run() {
  Channel channel;
  const auto request = channel.receive();
  if (!request) {
    std::fputs("lowtide-worker is started by Lowtide itself\n", stderr);
    return 2;
  }
  channel.watch();
  EngineReport ready;
  ready.kind = EngineReport::ready;
  channel.send(ready);
  if (request->memory_bytes > 0) {
    // A sanitizer has reserved its shadow by now, which is beyond any limit.
    const auto most = static_cast<rlim_t>(own_memory() + request->memory_bytes);
    const rlimit limit{most, most};
    setrlimit(RLIMIT_DATA, &limit);
  }
  const auto engine = request->engine == EngineKind::cpsat ? run_cpsat : run_highs;
  EngineReport last;
  try {
    last = engine(*request, channel);
  } catch (const std::bad_alloc&) {
    last.kind = EngineReport::failed;
    last.text = "it ran out of memory";
  }
  channel.send(last);
  return 0;
}

}  // namespace
}  // namespace lowtide::engines

// No destructors: the libraries' own may hang or crash.
int main() { _exit(lowtide::engines::run()); }
