// Errors, of three kinds. Bad input throws InputError. The result of a search is a value, never an
// exception. A broken invariant fails a `check` and throws InternalError: it is a bug.
#pragma once

#include <exception>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lowtide {

// Bad input. `place`: where (a line, a JSON pointer, an op). `reason`: what is wrong, and what
// would be right. `file`: added by the code that knows it.
class InputError : public std::runtime_error {
 public:
  InputError(std::string place, std::string reason, std::string file = {});

  const std::string& file() const { return file_; }
  const std::string& place() const { return place_; }
  const std::string& reason() const { return reason_; }

  InputError in_file(std::string file) const { return {place_, reason_, std::move(file)}; }

 private:
  std::string file_, place_, reason_;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Whether expensive checks run: in builds for tests with assertions.
#if LOWTIDE_DEBUG_CHECKS
inline constexpr bool kDebugChecks = true;
#else
inline constexpr bool kDebugChecks = false;
#endif

// Whether the exception must end the whole run, although otherwise only one task would fail: a
// broken invariant, in builds with expensive checks.
inline bool is_checked_fault(const std::exception& error) {
  return kDebugChecks && dynamic_cast<const InternalError*>(&error) != nullptr;
}

// Throws InternalError with the caller's source location if `condition` is false. Always on.
void check(bool condition, std::string_view what,
           std::source_location where = std::source_location::current());

}  // namespace lowtide
