// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <span>

namespace macadam::net::shm {

enum class Direction : std::uint8_t { write, read };

// What shared memory needs of the system, beside the memory: a clock, ways to wait, and copies by
// the kernel. Linux has one (real_system()), a simulated node another (sim/neighbors.h). Nothing of
// it is called on the way of a short message, but to wake a receiver that sleeps. Any thread.
class System {
 public:
  // Seconds on a monotonic clock.
  [[nodiscard]] virtual double now() noexcept = 0;

  // Between two looks at what other processes write, of one that has a core for itself; of one that
  // leaves it to others.
  virtual void relax() noexcept = 0;
  virtual void yield() noexcept = 0;
  // Sleeps if the word still has this value, until wake() of the word, or `longest_us` at most, or
  // less for no reason. The word may be in memory of several processes.
  virtual void sleep(std::atomic<std::uint32_t>& word, std::uint32_t value,
                     unsigned longest_us) noexcept = 0;
  virtual void wake(std::atomic<std::uint32_t>& word) noexcept = 0;
  // The core that the calling thread runs on, from 0 on. leave() moves it to another that it may
  // use, to none of `taken` if there are others, and binds it no more than it was; false if there
  // is none.
  [[nodiscard]] virtual unsigned core() noexcept = 0;
  virtual bool leave(unsigned core, std::span<const unsigned> taken) noexcept = 0;
  // pass_barrier() makes every process that has called enter_barriers() pass a memory barrier;
  // false if the system cannot. enter_barriers() comes first in each process.
  [[nodiscard]] virtual bool enter_barriers() noexcept = 0;
  virtual void pass_barrier() noexcept = 0;

  // Copies between the private memory of this process and another (cross-memory attach), all blocks
  // or only the first bytes of them. Returns the number of bytes, or a negative errno.
  [[nodiscard]] virtual ssize_t copy(Direction direction, pid_t process,
                                     std::span<const iovec> local,
                                     std::span<const iovec> remote) noexcept = 0;
  // How many times as long as the processor's own copy such a one takes, of data in its caches.
  // The first call measures, for some 0.1 ms.
  [[nodiscard]] virtual double kernel_copy_cost() noexcept = 0;
  // Whether all threads of a process have ended, so that no copy of it goes on. It need not have
  // been waited for by its parent.
  [[nodiscard]] virtual bool has_ended(pid_t process) noexcept = 0;
  // Threads that want to run on this machine now, with the one that asks; 0 if nobody knows. Takes
  // some microseconds. And how many can.
  [[nodiscard]] virtual unsigned running_threads() noexcept = 0;
  [[nodiscard]] virtual unsigned cores() noexcept = 0;

 protected:
  ~System() = default;
};

System& real_system();

} // namespace macadam::net::shm
