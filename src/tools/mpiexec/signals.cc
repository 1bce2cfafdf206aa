// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/signals.h"

#include "boot/limits.h"

#include <cerrno>
#include <stdexcept>
#include <sys/signalfd.h>
#include <unistd.h>

namespace macadam::tools {

Signals::Signals() {
  sigset_t heeded;
  sigemptyset(&heeded);
  for (const int number :
       {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD}) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN || number == SIGCHLD) sigaddset(&heeded, number);
  }
  sigset_t blocked = heeded;
  sigaddset(&blocked, SIGPIPE); // a write fails instead
  sigprocmask(SIG_BLOCK, &blocked, &original_mask_);
  signal(SIGCHLD, SIG_DFL); // were it ignored, children would leave no status
  descriptor_ = base::Descriptor(signalfd(-1, &heeded, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_.is_open()) throw std::runtime_error(boot::explain_failure("signalfd", errno));
}

std::optional<int> Signals::next() const {
  signalfd_siginfo info;
  if (read(descriptor_.get(), &info, sizeof info) != ssize_t{sizeof info}) return {};
  return static_cast<int>(info.ssi_signo);
}

} // namespace macadam::tools
