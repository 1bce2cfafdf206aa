// SPDX-License-Identifier: BSD-3-Clause
#include "net/ofi/waiting.h"

#include "base/error.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <poll.h>
#include <pthread.h>
#include <system_error>

namespace macadam::net::ofi {
namespace {

// Milliseconds for which the thread leaves what has arrived to a program that polls.
constexpr int patience_ms = 1;
constexpr int long_patience_ms = 10;

} // namespace

Waiting::Waiting(int descriptor, bool tells_all, Attended& attended, engine::Transport* sleeper)
    : descriptor_(descriptor), tells_all_(tells_all), attended_(attended), sleeper_(sleeper) {}

void Waiting::start() {
  if (descriptor_ < 0) return;
  sigset_t all, before;
  sigfillset(&all);
  // The program's handlers run on its own threads.
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    base::fail(MPI_ERR_OTHER,
               "libfabric: no thread that serves this process's memory: {}; raise the limit of "
               "processes (ulimit -u)",
               error.code().message());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "macadam-ofi");
}

void Waiting::stop() {
  if (!thread_.joinable()) return;
  stop_.store(true);
  turn_.ring();
  thread_.join();
}

void Waiting::sleep(unsigned longest_us) {
  std::array<pollfd, 2> watched = {pollfd{wake_.descriptor(), POLLIN, 0},
                                   pollfd{descriptor_, POLLIN, 0}}; // a negative one is ignored
  const timespec longest = {static_cast<time_t>(longest_us / 1'000'000),
                            static_cast<long>(longest_us % 1'000'000) * 1000};
  ppoll(watched.data(), watched.size(), &longest, nullptr);
  if (watched[0].revents != 0) wake_.clear();
}

void Waiting::watch() {
  if (sleeper_ == nullptr || !thread_.joinable()) return;
  watch_.store(true);
  turn_.ring();
}

// A program that polls takes what arrives by itself; the thread then looks every few milliseconds
// whether it still does. Once it does not, all that arrives is attended to at once.
void Waiting::run() {
  const auto wait = [&](bool for_arrivals, int longest_ms) {
    std::array<pollfd, 2> watched = {pollfd{turn_.descriptor(), POLLIN, 0},
                                     pollfd{for_arrivals ? descriptor_ : -1, POLLIN, 0}};
    ::poll(watched.data(), watched.size(), longest_ms);
    if (watched[0].revents != 0) turn_.clear();
    return watched[1].revents != 0;
  };
  std::uint64_t computing_since = UINT64_MAX; // this number of polls
  int patience = patience_ms;
  while (!stop_.load()) {
    if (!wait(true, tells_all_ ? -1 : long_patience_ms) && tells_all_) continue;
    if (watch_.exchange(false)) sleeper_->wake();
    const std::uint64_t polls = attended_.polls();
    if (polls == computing_since) {
      if (!attended_.attend()) wait(false, long_patience_ms);
      continue;
    }
    wait(false, patience);
    const bool computes = attended_.polls() == polls;
    if (computes) computing_since = polls;
    patience = computes ? patience_ms : long_patience_ms;
  }
}

} // namespace macadam::net::ofi
