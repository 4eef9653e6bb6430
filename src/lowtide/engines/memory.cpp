// Reads Linux's files.
#include "lowtide/engines/memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#include <unistd.h>

namespace lowtide::engines {

std::int64_t free_memory() {
  std::int64_t free = 0;
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("MemAvailable:")) free = std::stoll(line.substr(13)) * 1024;
  // Without a limit the first file says "max", and the second has a number beyond all memory.
  for (const char* name :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(name);
    std::int64_t most = 0;
    if (file >> most) free = std::min(free, most);
  }
  return free;
}

std::int64_t own_memory() {
  std::ifstream pages("/proc/self/statm");
  std::int64_t size, resident, shared, text, unused, data = 0;
  pages >> size >> resident >> shared >> text >> unused >> data;
  return data * sysconf(_SC_PAGESIZE);
}

}  // namespace lowtide::engines
