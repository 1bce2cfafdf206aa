// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace macadam::boot::pmix {

class MemoryServer;

// Whether a PMIx server has started this process: prterun, srun --mpi=pmix, Open MPI's mpirun.
bool is_started_by_server();

// This process as a client of the PMIx server of its machine. The server says who is in the job and
// keeps what ranks publish; what mpiexec does besides (ending the others when one fails, output) is
// the launcher's whose server it is.
//
// The ranks of a machine share a JobMemory as under mpiexec: the first of them makes it and hands
// its descriptor to the others through a Unix socket with an abstract random name, at which both
// sides look at the other's credentials. No rank publishes anything else to all: addresses are
// fetched one by one, and what one rank of a machine has fetched is in the memory for all of them.
class Client {
 public:
  // Connects with the server. Throws MPI_ERR_OTHER.
  Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  [[nodiscard]] int rank() const { return rank_; }
  // The memory of this machine's ranks. Waits for the first of them. Throws MPI_ERR_OTHER.
  JobMemory make_memory();

  // From here on the ends of other ranks are noted in the memory, which outlives the client, and
  // that of this process is a failure, until leave().
  void enter(const JobMemory& memory);
  void leave();

  void publish(std::span<const std::byte> address) const;
  // Asks for the address of a rank of another machine, unless that was done. When it comes, a
  // thread of libpmix writes it into its row; if the rank has none yet, it is to be asked for
  // again.
  void fetch(const JobMemory& memory, int rank);
  // Begins to wait until all ranks of the job are here.
  void begin_fence();
  [[nodiscard]] bool fence_is_over() const { return fence_.load() != Fence::waits; }
  // Ends the job: does not return if the launcher takes it.
  void abort(int code, const std::string& text) const;

 private:
  enum class Fence { none, waits, over };

  void connect();
  void watch();
  JobMemory create_memory();
  JobMemory receive_memory(int leader);

  struct Name; // of this process, as PMIx has it
  std::unique_ptr<Name> name_;
  int rank_ = -1;
  std::atomic<Fence> fence_{Fence::none};
  std::atomic<std::chrono::steady_clock::time_point> ask_again_{}; // not earlier
  std::unique_ptr<MemoryServer> server_;                           // on the first rank of a machine
};

} // namespace macadam::boot::pmix
