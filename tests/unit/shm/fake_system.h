// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/system.h"

namespace macadam::net::shm::test {

// A machine whose clock the test sets, on which one process waits in vain: nothing else happens.
class FakeSystem : public System {
 public:
  double time = 1; // seconds

  [[nodiscard]] double now() noexcept override { return time; }
  void relax() noexcept override {}
  void yield() noexcept override {}
  void sleep(std::atomic<std::uint32_t>&, std::uint32_t, unsigned) noexcept override {}
  void wake(std::atomic<std::uint32_t>&) noexcept override {}
  [[nodiscard]] unsigned core() noexcept override { return 0; }
  bool leave(unsigned, std::span<const unsigned>) noexcept override { return false; }
  [[nodiscard]] bool enter_barriers() noexcept override { return true; }
  void pass_barrier() noexcept override {}
  [[nodiscard]] ssize_t copy(Direction, pid_t, std::span<const iovec>,
                             std::span<const iovec>) noexcept override {
    return -1;
  }
  [[nodiscard]] double kernel_copy_cost() noexcept override { return 1; }
  [[nodiscard]] bool has_ended(pid_t) noexcept override { return false; }
  [[nodiscard]] unsigned running_threads() noexcept override { return 0; }
  [[nodiscard]] unsigned cores() noexcept override { return 2; }

 protected:
  ~FakeSystem() = default;
};

} // namespace macadam::net::shm::test
