// SPDX-License-Identifier: BSD-3-Clause
#include "net/ofi/waiting.h"

#include "base/error.h"
#include "base/thread.h"

#include <array>
#include <cerrno>
#include <ctime>
#include <poll.h>
#include <sys/epoll.h>
#include <system_error>
#include <unistd.h>
#include <utility>

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
  epoll_event to_end = {.events = EPOLLIN, .data = {.fd = end_.descriptor()}};
  epoll_event arrivals = {.events = 0, .data = {.fd = descriptor_}}; // until it is armed
  watched_ = epoll_create1(EPOLL_CLOEXEC);
  if (watched_ < 0 || epoll_ctl(watched_, EPOLL_CTL_ADD, end_.descriptor(), &to_end) != 0 ||
      epoll_ctl(watched_, EPOLL_CTL_ADD, descriptor_, &arrivals) != 0)
    base::fail(MPI_ERR_OTHER,
               "libfabric: nothing tells of arrivals: {}; raise the limit of open "
               "files (ulimit -n)",
               std::generic_category().message(errno));
  thread_ = base::start_thread("macadam-ofi", [this] { run(); });
}

void Waiting::stop() {
  if (thread_.joinable()) {
    stop_.store(true);
    end_.ring();
    thread_.join();
  }
  if (watched_ >= 0) close(std::exchange(watched_, -1));
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
  arm();
}

// The thread is woken once when the descriptor is readable: now, or from now on.
void Waiting::arm() {
  epoll_event wanted = {.events = EPOLLIN | EPOLLONESHOT, .data = {.fd = descriptor_}};
  epoll_ctl(watched_, EPOLL_CTL_MOD, descriptor_, &wanted);
}

// True if the descriptor is readable, and it was armed.
bool Waiting::wait(int longest_ms) {
  epoll_event found = {};
  const int count = epoll_wait(watched_, &found, 1, longest_ms);
  return count > 0 && found.data.fd == descriptor_;
}

// A program that polls takes what arrives by itself; the thread then looks every few milliseconds
// whether it still does. Once it does not, all that arrives is attended to at once.
void Waiting::run() {
  std::uint64_t computing_since = UINT64_MAX; // this number of polls
  int patience = patience_ms;
  bool readable = false;
  while (!stop_.load()) {
    if (!readable) {
      arm();
      readable = wait(tells_all_ ? -1 : long_patience_ms);
      if (!readable && tells_all_) continue;
    }
    readable = false;
    if (watch_.exchange(false)) sleeper_->wake();
    const std::uint64_t polls = attended_.polls();
    if (polls == computing_since) {
      if (!attended_.attend()) readable = wait(long_patience_ms);
      continue;
    }
    readable = wait(patience);
    if (readable) continue; // the program was about to sleep
    const bool computes = attended_.polls() == polls;
    if (computes) computing_since = polls;
    patience = computes ? patience_ms : long_patience_ms;
  }
}

} // namespace macadam::net::ofi
