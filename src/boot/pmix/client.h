// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/launcher_client.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>

namespace macadam::boot {

class MemoryServer;

namespace pmix {

// Whether a PMIx server has started this process: prterun, srun --mpi=pmix, Open MPI's mpirun.
bool is_started_by_server();

// A client of the PMIx server of its machine. Addresses are fetched one by one, when they are
// wanted; nothing is collective but the fence.
class Client final : public LauncherClient {
 public:
  // Connects with the server. Throws MPI_ERR_OTHER.
  Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() override;

  [[nodiscard]] int rank() const override { return rank_; }
  JobMemory make_memory() override;
  void enter(const JobMemory& memory) override;
  void leave() override;
  void publish(std::span<const std::byte> address) override;
  void fetch(const JobMemory& memory, int rank) override;
  void begin_fence(const JobMemory& memory) override;
  [[nodiscard]] bool fence_is_over(const JobMemory& memory) override;
  void put_reports(std::string_view texts) override;
  std::string get_reports(int rank) override;
  void leave_word(std::string_view text) override;
  std::string await_word(int rank, std::chrono::steady_clock::time_point until) override;
  void abort(int code, const std::string& text) override;

 private:
  void connect();
  void watch();
  JobMemory create_memory();
  JobMemory receive_memory(int leader);
  void arrive(const JobMemory& memory);
  bool have_met(const JobMemory& memory);
  void meet_machines(const JobMemory& memory);

  struct Name; // of this process, as PMIx has it
  std::unique_ptr<Name> name_;
  int rank_ = -1;
  std::atomic<bool> fence_is_over_{false};
  std::uint32_t round_ = 0; // of this machine's barrier, that is waited for
  std::thread meeting_;     // on the first rank of a machine: waits for the others
  std::atomic<std::chrono::steady_clock::time_point> ask_again_{}; // not earlier
  std::unique_ptr<MemoryServer> server_;                           // on the first rank of a machine
};

} // namespace pmix
} // namespace macadam::boot
