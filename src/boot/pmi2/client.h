// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/launcher_client.h"
#include "boot/pmi2/connection.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace macadam::boot {

class MemoryServer;

namespace pmi2 {

// Whether a PMI-2 server has started this process and its descriptor is here: srun --mpi=pmi2,
// mpiexec of MPICH.
bool is_started_by_server();

// A client of the PMI-2 server of its machine. What a rank puts others get only behind a fence, so
// a job on several machines has three: for rank 0's word, waited for at the start, for the
// addresses, which nobody waits for, and for the end; with a report two more.
//
// The server tells nobody of a rank that has failed. So a rank that exits within MPI ends the job
// itself, and those that wait look whether all others of their machine are there, and end it too.
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
  void look_for_ended(const JobMemory& memory) override;
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
  void put(const std::string& key, const std::string& value);
  std::string get(const std::string& key);
  std::string find_attribute(std::string_view key);
  JobWord agree_on_word(std::vector<Node>& nodes, std::uint32_t own, bool is_first);
  bool advance_fences();
  Fields ask_beside_fence(std::string_view command, Connection::Pairs pairs);
  Fields ask_locked(std::string_view command, Connection::Pairs pairs);

  std::mutex mutex_; // of what follows, once make_memory() has returned
  int fd_;
  Connection connection_;
  bool fence_waits_ = false; // one was begun
  unsigned fences_over_ = 0, fences_wanted_ = 0;

  std::atomic<std::chrono::steady_clock::time_point> look_again_{}; // not earlier
  int rank_ = -1;
  std::uint32_t size_ = 0;
  std::int32_t app_ = 0;
  std::unique_ptr<MemoryServer> server_; // on the first rank of a machine
};

} // namespace pmi2
} // namespace macadam::boot
