#include "lowtide/cli/interrupt.h"

#include <atomic>
#include <csignal>

#include <unistd.h>

namespace lowtide::cli {

namespace {

std::atomic<CancelToken*> active{nullptr};

// Touches nothing but lock-free atomics and _exit, both allowed in a handler.
void on_signal(int) {
  CancelToken* token = active.load();
  if (token == nullptr || token->cancelled()) _exit(130);
  token->cancel();
}

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  active.store(&token_);
  handle(on_signal);
}

Interrupt::~Interrupt() {
  handle(SIG_DFL);
  active.store(nullptr);
}

}  // namespace lowtide::cli
