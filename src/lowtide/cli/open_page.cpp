#include "lowtide/cli/open_page.h"

#include <cstdlib>

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

extern char** environ;

namespace lowtide::cli {

namespace {

#ifdef __APPLE__
constexpr const char* kOpener = "open";
bool has_desktop() { return true; }
#else
constexpr const char* kOpener = "xdg-open";
bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}
bool has_desktop() { return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"); }
#endif

}  // namespace

bool open_page(const std::string& path) {
  if (!has_desktop()) return false;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, descriptor, "/dev/null", O_RDWR, 0);
  // A group of its own: Ctrl-C in this terminal does not close the browser.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::string program = kOpener, page = path;
  char* arguments[] = {program.data(), page.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawnp(&child, kOpener, &files, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return failed == 0;
}

}  // namespace lowtide::cli
