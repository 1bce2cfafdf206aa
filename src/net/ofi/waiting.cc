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

Waiting::Waiting(int descriptor, engine::Transport* sleeper)
    : descriptor_(descriptor), sleeper_(sleeper) {
  if (sleeper == nullptr || descriptor < 0) return;
  sigset_t all, before;
  sigfillset(&all);
  // The program's handlers run on its own threads.
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    base::fail(MPI_ERR_OTHER,
               "libfabric: no thread that wakes this process: {}; raise the limit of processes "
               "(ulimit -u)",
               error.code().message());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "macadam-ofi");
}

Waiting::~Waiting() {
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
  if (thread_.joinable()) turn_.ring();
}

void Waiting::run() {
  std::array<pollfd, 2> watched = {pollfd{turn_.descriptor(), POLLIN, 0},
                                   pollfd{descriptor_, POLLIN, 0}};
  bool watching = false;
  for (;;) {
    ::poll(watched.data(), watching ? 2 : 1, -1);
    if (stop_.load()) return;
    if (watched[0].revents != 0) {
      turn_.clear();
      watching = true;
    } else if (watching && watched[1].revents != 0) {
      watching = false;
      sleeper_->wake();
    }
  }
}

} // namespace macadam::net::ofi
