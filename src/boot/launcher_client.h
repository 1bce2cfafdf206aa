// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::boot {

// This process as a client of a launcher that is not mpiexec. The launcher says who is in the job
// and keeps what ranks publish; what mpiexec does besides (ending the others when one fails,
// output) is the launcher's.
//
// The ranks of a machine share a JobMemory as under mpiexec: the first of them makes it and hands
// its descriptor to the others (memory_server.h). What one rank of a machine has fetched is in the
// memory for all of them.
class LauncherClient {
 public:
  virtual ~LauncherClient() = default;

  [[nodiscard]] virtual int rank() const = 0;
  // The memory of this machine's ranks. Waits for the first of them. Throws MPI_ERR_OTHER.
  virtual JobMemory make_memory() = 0;

  // From here on the end of this process is a failure, until leave(). The ends of other ranks here
  // are noted in the memory, which outlives the client.
  virtual void enter(const JobMemory& memory) = 0;
  virtual void leave() = 0;
  // For a launcher that does not look after its ranks: ends the job if one of this machine has
  // ended before its time. Any thread, now and then while it waits.
  virtual void look_for_ended(const JobMemory&) {}

  virtual void publish(std::span<const std::byte> address) = 0;
  // Asks for the address of a rank of another machine, unless that was done. When it comes it is
  // written into its row; if the rank has none yet, it is to be asked for again. Any thread.
  virtual void fetch(const JobMemory& memory, int rank) = 0;
  // Begins to wait until all ranks of the job are here; then each asks until it is over.
  virtual void begin_fence(const JobMemory& memory) = 0;
  [[nodiscard]] virtual bool fence_is_over(const JobMemory& memory) = 0;

  // What rank 0 wants of the first rank of another machine once: put before a fence, and there
  // behind it. Throw MPI_ERR_OTHER.
  virtual void put_reports(std::string_view texts) = 0;
  virtual std::string get_reports(int rank) = 0;
  // For rank 0, once, whatever the ranks do meanwhile: nobody has to take part. There it is waited
  // for; empty if it has not come by then. By a thread of its own. Throw MPI_ERR_OTHER.
  virtual void leave_word(std::string_view text) = 0;
  virtual std::string await_word(int rank, std::chrono::steady_clock::time_point until) = 0;
  // Ends the job: may not return if the launcher takes it.
  virtual void abort(int code, const std::string& text) = 0;
};

// A client of the launcher that has started this process: null if it speaks none of our protocols.
// Throws MPI_ERR_OTHER if it does and cannot be reached.
std::unique_ptr<LauncherClient> connect_with_launcher();

// Has `say_goodbye` called at the end of this process, by exit(), with its exit status: behind all
// that the program has registered for its end, where it may still call MPI_Finalize. Not in
// processes that it forks, which are no ranks.
void at_end_of_rank(void (*say_goodbye)(int exit_status));
// An exit status that every launcher takes for a failure: this one, or 1.
constexpr int failing(int status) {
  return status >= 1 && status <= 255 ? status : 1;
}
// "rank 2 on host a has ended without MPI_Finalize"
std::string no_finalize(int rank);
// The same, said on stderr behind all that this process, that rank, has written.
std::string say_no_finalize(int rank);

// The memory of the machine that `rank` is on, made by the first rank there. Ranks are on
// `machines`, indices of `nodes`. `universe`: how many ranks the launcher has room for, 0 if it
// does not say. `sets`: the process sets that it has named.
JobMemory create_for_machine(std::vector<Node> nodes, const std::vector<std::uint32_t>& machines,
                             int rank, std::uint32_t universe,
                             const std::vector<NamedRanks>& sets = {});

// What rank 0 tells the first ranks of the machines.
struct JobWord {
  Secret secret;
  std::uint32_t report;     // whether MACADAM_REPORT asks for one
  std::uint32_t timeout_ms; // as JobHeader::timeout_ms
};

// By the environment of this process. Throws MPI_ERR_ARG.
JobWord make_word(const Secret& secret);
void take_word(JobHeader& header, const JobWord& word);

// A rank of this machine has ended before its time. False if that was noted before.
bool note_end(const JobMemory& memory, int rank);

} // namespace macadam::boot
