// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <csignal>

namespace macadam::base {

// While it lives, no signal comes to this thread, or to one that it starts.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// The same; and at its end signals are handled as before, whatever a library that was loaded
// meanwhile has made of that.
class SignalHandlersKept {
 public:
  SignalHandlersKept() {
    for (int signal = 1; signal < NSIG; ++signal)
      known_[signal] = sigaction(signal, nullptr, &before_[signal]) == 0;
  }
  ~SignalHandlersKept() {
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction now;
      if (known_[signal] && sigaction(signal, nullptr, &now) == 0 &&
          now.sa_handler != before_[signal].sa_handler)
        sigaction(signal, &before_[signal], nullptr);
    }
  }
  SignalHandlersKept(const SignalHandlersKept&) = delete;
  SignalHandlersKept& operator=(const SignalHandlersKept&) = delete;

 private:
  const AllSignalsBlocked blocked_;
  std::array<struct sigaction, NSIG> before_;
  std::array<bool, NSIG> known_{};
};

} // namespace macadam::base
