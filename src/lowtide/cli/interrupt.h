// Ctrl-C and SIGTERM: the first asks for the best plan so far, the second ends the program at once.
#pragma once

#include "lowtide/base/limits.h"

namespace lowtide::cli {

// While it lives, signals cancel `token`. One at a time.
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
