// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/system.h"

#include "base/copy.h"
#include "base/load.h"
#include "base/relax.h"
#include "net/shm/bulk/copy.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <csignal>
#include <ctime>
#include <memory>
#include <new>

namespace macadam::net::shm {
namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout,
                 nullptr, 0);
}

bool membarrier(int command) {
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

// The fastest of some copies either way; 1 if the kernel refuses.
double measure_kernel_copies(System& system) {
  constexpr std::size_t bytes = 64 << 10;
  constexpr int times = 4;
  const std::unique_ptr<std::byte[]> from(new (std::nothrow) std::byte[bytes]());
  const std::unique_ptr<std::byte[]> to(new (std::nothrow) std::byte[bytes]());
  if (from == nullptr || to == nullptr) return 1;
  const auto remote = reinterpret_cast<std::uint64_t>(from.get());
  double by_kernel = HUGE_VAL, by_processor = HUGE_VAL;
  for (int i = 0; i < times; ++i) {
    const double begin = system.now();
    base::copy(to.get(), from.get(), bytes);
    const double middle = system.now();
    if (cross_copy(system, Direction::read, getpid(), to.get(), remote, bytes) != 0) return 1;
    by_processor = std::min(by_processor, middle - begin);
    by_kernel = std::min(by_kernel, system.now() - middle);
  }
  return by_kernel / by_processor;
}

class Linux final : public System {
 public:
  [[nodiscard]] double now() noexcept override {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  void relax() noexcept override { base::relax(); }
  void yield() noexcept override { sched_yield(); }
  void sleep(std::atomic<std::uint32_t>& word, std::uint32_t value,
             unsigned longest_us) noexcept override {
    const timespec timeout{static_cast<time_t>(longest_us / 1000000),
                           static_cast<long>(longest_us % 1000000) * 1000};
    futex(word, FUTEX_WAIT, value, &timeout);
  }
  void wake(std::atomic<std::uint32_t>& word) noexcept override {
    futex(word, FUTEX_WAKE, INT_MAX, nullptr);
  }
  [[nodiscard]] unsigned core() noexcept override {
    const int core = sched_getcpu();
    return core < 0 ? 0 : static_cast<unsigned>(core);
  }
  // The scheduler moves a thread at once that may not run where it is.
  bool leave(unsigned core, std::span<const unsigned> taken) noexcept override {
    cpu_set_t allowed; // of machines with more cores than it has room for, nobody is moved
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
    cpu_set_t others = allowed;
    CPU_CLR(core, &others);
    cpu_set_t best = others;
    for (const unsigned other : taken)
      CPU_CLR(other, &best);
    if (CPU_COUNT(&best) == 0) best = others;
    if (CPU_COUNT(&best) == 0 || sched_setaffinity(0, sizeof best, &best) != 0) return false;
    sched_setaffinity(0, sizeof allowed, &allowed);
    return true;
  }
  // Registered processes pass the barrier: senders must be, so every process is.
  [[nodiscard]] bool enter_barriers() noexcept override {
    return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
  }
  void pass_barrier() noexcept override { membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED); }

  [[nodiscard]] ssize_t copy(Direction direction, pid_t process, std::span<const iovec> local,
                             std::span<const iovec> remote) noexcept override {
    const auto call = direction == Direction::write ? process_vm_writev : process_vm_readv;
    const ssize_t moved =
        call(process, local.data(), local.size(), remote.data(), remote.size(), 0);
    return moved < 0 ? -errno : moved;
  }
  [[nodiscard]] double kernel_copy_cost() noexcept override {
    static const double cost = measure_kernel_copies(*this);
    return cost;
  }
  [[nodiscard]] bool has_ended(pid_t process) noexcept override {
    const auto opened = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    if (opened < 0) return kill(process, 0) != 0 && errno == ESRCH;
    pollfd life{opened, POLLIN, 0};
    const bool ended = poll(&life, 1, 0) == 1;
    close(opened);
    return ended;
  }
  [[nodiscard]] unsigned running_threads() noexcept override { return base::running_threads(); }
  [[nodiscard]] unsigned cores() noexcept override { return base::online_cores(); }
};

} // namespace

// Without state, so that it serves all transports of a process.
System& real_system() {
  static Linux system;
  return system;
}

} // namespace macadam::net::shm
