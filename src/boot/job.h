// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::boot {

inline constexpr std::size_t endpoint_address_bytes = 64;
inline constexpr std::size_t secret_bytes = 16;
using Secret = std::array<std::uint8_t, secret_bytes>;

// A process by the name that all others know it by: the number of its job, which no other job has
// that talks to it (Processes::add), and its rank there.
struct ProcessName {
  std::uint32_t job = 0;
  std::uint32_t rank = 0;
  auto operator<=>(const ProcessName&) const = default;
};
static_assert(sizeof(ProcessName) == 8);

// The secret of one of the job's generations (LaunchedJob): what was sent in an earlier one and
// comes late is not taken for this one's.
inline Secret secret_of(Secret job, std::uint32_t generation) {
  for (std::size_t i = 0; i < sizeof generation; ++i)
    job[i] ^= static_cast<std::uint8_t>(generation >> (8 * i));
  return job;
}

// The number of a job, the same in all its processes, as it comes from its secret. A part of
// context ids (mpi::Instance::new_context), so it has few bits.
inline constexpr unsigned job_number_bits = 23;
[[nodiscard]] inline std::uint32_t number_of(const Secret& secret) {
  std::uint64_t mixed = 0;
  for (const std::uint8_t byte : secret)
    mixed = (mixed ^ byte) * 0x100000001b3u;
  return static_cast<std::uint32_t>(mixed >> (64 - job_number_bits));
}

// Memory that one process owns and its neighbours may map: the bytes [offset, offset + capacity) of
// `fd`, sparse, zero at first. `offset` is a multiple of the page size. The Job owns `fd`; never
// close it, ask again before each use, as the program may have closed it. Pages are taken at first
// touch and given back by punching holes.
struct SharedMemory {
  int fd = -1;
  std::uint64_t offset = 0;
  std::uint64_t capacity = 0; // bytes
  // If processes share an address space, as simulated ones do: where the bytes are in it. Then
  // there is no `fd`, and nothing is to be mapped.
  std::byte* here = nullptr;
};

// What processes that talk to each other must have alike, as each tells with its address. What they
// make of it is MPI's (mpi/agreement.h).
struct Agreement {
  std::uint32_t rules = 0;       // a digest of the rules of collectives
  std::uint32_t eager = 0;       // the longest EAGER message over a network, in bytes
  std::uint8_t check = 0;        // 1: messages carry a note
  std::uint8_t reproducible = 0; // 1: reductions have one algorithm each
  std::uint8_t shares = 1;       // 1: others of its machine are reached over shared memory
  std::uint8_t unused = 0;
  auto operator<=>(const Agreement&) const = default;
};

// What is known of a process without asking the network.
enum class Life : std::uint8_t {
  unknown, // nothing: only the network can tell
  running, // or not started yet
  over,    // it has ended in good order: a peer that waits for it finds out
  failed,  // it has ended before its time, or given up
};
constexpr bool has_ended(Life life) {
  return life == Life::over || life == Life::failed;
}

// The processes of a job, as one of them sees it: who they are, how they are reached, whether they
// run. mpiexec (LocalJob), the simulator and Gravel have one each; transports, Gravel and MPI stand
// on it.
//
// A process joins the job when it makes the object, and publishes where it is reached once its
// transports can be: once, or anew in each generation (LaunchedJob).
// Const functions may be called by any thread at any time, the others by one thread at a time. None
// of them waits.
class Job {
 public:
  virtual ~Job() = default;

  [[nodiscard]] virtual int rank() const = 0; // of this process
  [[nodiscard]] virtual int size() const = 0; // ranks are 0 to size() - 1
  // How many ranks run this one's program; 0: nobody has said.
  [[nodiscard]] virtual int ranks_of_program() const { return size(); }
  // Random, known to this job's processes only, and to those that it lets talk to it.
  [[nodiscard]] virtual Secret secret() const = 0;
  // Which of its generations this is: what was published in an earlier one is not fetched.
  [[nodiscard]] virtual std::uint32_t generation() const { return 0; }
  // See ProcessName.
  [[nodiscard]] std::uint32_t number() const { return number_of(secret()); }
  // The machine a rank is on, by a number that its ranks share and no others have; and its name, of
  // this process and of another.
  [[nodiscard]] virtual int node(int) const { return 0; }
  [[nodiscard]] virtual std::string_view host() const { return "this host"; }
  [[nodiscard]] virtual std::string_view host_of(int) const { return host(); }
  // A machine that has no rank of this job, but of jobs that it may meet; empty: there is none.
  [[nodiscard]] virtual std::string_view other_host() const { return {}; }

  // Endpoint addresses. What a rank publishes, up to endpoint_address_bytes, the others fetch when
  // they want to talk to it: nothing if it has not published yet. The bytes stay valid as long as
  // the generation.
  virtual void publish(std::span<const std::byte> endpoint_address) = 0;
  [[nodiscard]] virtual std::optional<std::span<const std::byte>> fetch(int rank) const = 0;
  // Goes with what this process publishes next; and what came with what was fetched of a rank, if
  // that was.
  void agree_on(const Agreement& agreement) { agreement_ = agreement; }
  [[nodiscard]] virtual std::optional<Agreement> agreement_of(int /*rank*/) const { return {}; }

  // Neighbours: the ranks of this machine, counted from 0, this process among them.
  [[nodiscard]] virtual int local_size() const { return size(); }
  [[nodiscard]] virtual int local_rank() const { return rank(); }
  [[nodiscard]] virtual int neighbour(int index) const { return index; }
  [[nodiscard]] virtual bool is_local(int) const { return true; }
  // Hardware threads that the ranks of this machine may use together: with more ranks than that, a
  // waiting rank must leave its core to others.
  [[nodiscard]] virtual int cores() const = 0;
  [[nodiscard]] bool oversubscribed() const { return local_size() > cores(); }

  // This process's memory, and that of a neighbour which has published. Throws base::Error if the
  // system refuses.
  [[nodiscard]] virtual SharedMemory own_memory() { return {}; }
  [[nodiscard]] virtual SharedMemory memory_of(int /*rank*/) const { return {}; }
  // Whether it is shared from the start: one alone on its machine shares it when it meets others.
  [[nodiscard]] virtual bool shares_memory() const { return local_size() > 1; }
  // Promises this process memory of the machine, beside what all ranks here were promised and have
  // not touched yet. Empty, or the sentence that says why there is not as much, with the remedy.
  virtual std::string promise(std::uint64_t /*bytes*/) { return {}; }
  virtual void withdraw(std::uint64_t /*bytes*/) {}
  // The process id of a neighbour that has published.
  [[nodiscard]] virtual pid_t pid(int /*rank*/) const { return -1; }

  [[nodiscard]] virtual Life life(int) const { return Life::unknown; }
  // How many neighbours have failed so far. Asked now and then by a wait in vain.
  [[nodiscard]] virtual unsigned failures() const { return 0; }
  // This process talks to nobody any more in this generation, though its program goes on: its
  // neighbours find that it has failed.
  virtual void give_up() {}

 protected:
  [[nodiscard]] const Agreement& agreement() const { return agreement_; }

 private:
  Agreement agreement_;
};

} // namespace macadam::boot
