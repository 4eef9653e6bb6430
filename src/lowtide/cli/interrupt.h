// Ctrl-C and SIGTERM: the first signal stops the search, which returns its best plan; the second
// ends the program at once.
#pragma once

#include "lowtide/base/limits.h"

namespace lowtide::cli {

// During the lifetime of this object, signals cancel `token`. One object at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const CancelToken& token() const { return token_; }

 private:
  CancelToken token_;
};

}  // namespace lowtide::cli
