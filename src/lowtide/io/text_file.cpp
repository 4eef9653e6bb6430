// POSIX calls, so that a reason is the system's own ("No such file or directory").
#include "lowtide/io/text_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lowtide/base/error.h"

namespace lowtide::io {

namespace {

std::string last_error() { return std::generic_category().message(errno); }

// Closes what it holds; -1 is nothing.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  bool close() {
    const int closed = descriptor_ > STDERR_FILENO ? ::close(descriptor_) : 0;
    descriptor_ = -1;
    return closed == 0;
  }

 private:
  int descriptor_;
};

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw InputError("", reason, path);
}

std::string read_all(int descriptor, const std::string& name) {
  const auto refuse_size = [&] {
    refuse(name, "too large: more than " + std::to_string(kMaxTextBytes) + " bytes");
  };
  std::string content;
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
    if (status.st_size > kMaxTextBytes) refuse_size();
    content.reserve(static_cast<std::size_t>(status.st_size) + 1);
  }
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  std::size_t filled = 0;
  while (true) {
    content.resize(std::max(filled + kPiece, content.capacity()));
    const ssize_t got = ::read(descriptor, content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(name, "cannot be read: " + last_error());
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    if (filled > static_cast<std::size_t>(kMaxTextBytes)) refuse_size();
  }
  content.resize(filled);
  return content;
}

void write_all(int descriptor, std::string_view content, const std::string& name) {
  while (!content.empty()) {
    const ssize_t put = ::write(descriptor, content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refuse(name, "cannot be written: " + last_error());
    content.remove_prefix(static_cast<std::size_t>(put));
  }
}

// The target of a chain of symbolic links, so that the link itself remains.
std::string resolved(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  std::string result = real == nullptr ? path : real;
  std::free(real);
  return result;
}

std::string name_beside(const std::string& path) {
  static std::atomic<unsigned> serial{0};
  return path + ".part-" + std::to_string(::getpid()) + "-" + std::to_string(serial++);
}

void replace_file(const std::string& path, std::string_view content, const std::string& name,
                  mode_t mode) {
  const std::string beside = name_beside(path);
  File file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) refuse(name, "cannot be written: " + last_error());
  try {
    write_all(file.descriptor(), content, name);
    if (mode != 0) (void)::fchmod(file.descriptor(), mode);
    if (!file.close() || std::rename(beside.c_str(), path.c_str()) != 0)
      refuse(name, "cannot be written: " + last_error());
  } catch (...) {
    (void)::unlink(beside.c_str());
    throw;
  }
}

}  // namespace

std::string name_of_file(const std::string& path) { return path == "-" ? "standard input" : path; }

std::string read_text_file(const std::string& path) {
  const std::string name = name_of_file(path);
  File file(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) refuse(name, "cannot be read: " + last_error());
  std::string content = read_all(file.descriptor(), name);
  if (!content.starts_with("\x1f\x8b")) return content;
  try {
    return gunzip(content);
  } catch (const InputError& error) {
    throw error.in_file(name);
  }
}

bool may_be_replaced(const std::string& path) {
  if (path.empty() || path == "-") return false;
  struct stat status {};
  return ::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

void require_writable_file(const std::string& path) {
  if (path == "-") return;
  const std::string target = resolved(path);
  struct stat status {};
  if (::stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    if (S_ISDIR(status.st_mode)) refuse(path, "cannot be written: it is a folder");
    if (::access(target.c_str(), W_OK) != 0) refuse(path, "cannot be written: " + last_error());
    return;
  }
  const std::string beside = name_beside(target);
  const File file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) refuse(path, "cannot be written: " + last_error());
  (void)::unlink(beside.c_str());
}

void write_text_file(const std::string& path, std::string_view text) {
  const std::string packed = path.ends_with(".gz") ? gzip(text) : std::string();
  const std::string_view content = path.ends_with(".gz") ? std::string_view(packed) : text;
  if (path == "-") return write_all(STDOUT_FILENO, content, "standard output");
  const std::string target = resolved(path);
  struct stat status {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (!exists || S_ISREG(status.st_mode))
    return replace_file(target, content, path, exists ? status.st_mode & 07777 : 0);
  File file(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open()) refuse(path, "cannot be written: " + last_error());
  write_all(file.descriptor(), content, path);
}

}  // namespace lowtide::io
