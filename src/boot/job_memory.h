// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/control.h"
#include "boot/door.h"
#include "boot/launched_job.h"
#include "boot/universe.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace macadam::boot {

// The memory that all processes of a job on one machine share: one memfd, made by mpiexec and
// inherited by the ranks. It has no name in any file system and goes away with the last process.
//
//   0          JobHeader
//   nodes      NodeRow[nodes]       the machines of the job, usually this one only
//   sets       SetRow[sets]         process sets that were named when the job was started
//   members    uint32_t[size]       ranks, machine by machine
//   wanted     uint64_t[size / 64]  a bit for each rank whose address is wanted here
//   rows       RankRow[size]        of all ranks; mpiexec keeps up to date those of other nodes
//   reports    ReportArea[local]    of this node's ranks; sparse: a page exists once written
//   segments   segment[local]       sparse, for the transport; not mapped here
//
// The segments are ranges of the same file, rather than a memfd for each rank: a rank then reaches
// any peer's memory with the one descriptor it has. Opening /proc/PID/fd/N of a peer instead would
// need a /proc that shows it and a peer that is not protected from ptrace; inheriting a descriptor
// for each rank would take as many descriptors in each process as the job has ranks.

// Room in the sparse file, which is neither memory nor address space: more than a rank will need.
inline constexpr std::uint64_t segment_capacity = std::uint64_t{1} << 44;

enum class RankState : std::uint32_t {
  starting,  // no process has taken this rank yet
  running,   // in MPI
  finalized, // not in MPI: has left it in good order, or has not begun
  aborted,   // called MPI_Abort: RankRow::code, RankRow::text
  dead,      // mpiexec has seen its process end
  gone,      // ... that was `finalized`
};

// What the system calls it: the target of the links in /proc/PID/fd, behind "/memfd:".
inline constexpr const char* job_memory_name = "macadam-job";

// The version of its layout: mpiexec and library must agree.
inline constexpr std::uint32_t job_memory_version = 15;

struct JobHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t size;  // ranks
  std::uint32_t nodes; // machines
  std::uint32_t sets;  // rows of process sets
  std::uint32_t node;  // ... of which this is one
  std::uint32_t cores; // hardware threads that the ranks of this node may use together
  // Process id of mpiexec; 0 for a program started alone that none serves.
  std::atomic<std::int32_t> launcher;
  std::int32_t file;         // mpiexec's descriptor of this memory
  std::int32_t universe;     // MPI_UNIVERSE_SIZE; 0: nobody has said
  std::uint32_t has_parent;  // 0: started by a user
  std::uint32_t parent_rank; // of the process that has started this job, in `parent`
  JobTicket parent;
  std::array<char, longest_socket_name + 1> socket; // mpiexec's (control.h); empty: it has none
  // Another machine of this mpiexec, null-terminated: jobs there may be met. Empty: it has none.
  std::array<char, longest_host_name + 1> other_host;
  // Bytes of all segments of this node that were promised to users, touched or not.
  std::atomic<std::uint64_t> promised;
  // LaunchedJob::enter()'s, in the upper half; in the lower how many are in it. On one machine.
  std::atomic<std::uint64_t> generation;
  Secret secret;
  // Raised by mpiexec to ask every rank for a report.
  alignas(64) std::atomic<std::uint32_t> reports_wanted;
  // Raised before it ends the ranks: a rank that answers with a report flushes its streams first.
  std::atomic<std::uint32_t> ending;
  std::atomic<std::uint32_t> absent; // ranks that ended without having joined
  // Where no mpiexec ends the job at a time limit: after how long the first ranks of the machines
  // do; 0: never.
  std::uint32_t timeout_ms;
  // Where no mpiexec gathers final reports: whether rank 0 prints those of all machines, and the
  // ranks of this node that have left theirs.
  std::uint32_t merges_reports;
  std::atomic<std::uint32_t> reported;
  // Ranks of this node that are `dead`, and those that have given up.
  std::atomic<std::uint32_t> failed;
  alignas(64) std::atomic<std::uint32_t> barrier_arrived; // of this node
  std::atomic<std::uint32_t> barrier_round;               // futex
};

// A machine of the job and its ranks: `ranks` of them, from the place `first` on among the members.
struct NodeRow {
  std::uint32_t first;
  std::uint32_t ranks;
  std::array<char, 64> host; // null-terminated
};

// Ranks of a process set: `ranks` of them, from `first` on. Rows of one name are one set.
struct SetRow {
  std::uint32_t first;
  std::uint32_t ranks;
  std::array<char, 248> name; // null-terminated
};
inline constexpr std::size_t longest_set_name = 247;

// What mpiexec's child does before it becomes the rank's program.
enum class StartStep : std::uint32_t { enter_folder, open_output, open_errors, execute };

// What a rank publishes: what the transport wants peers to know, and all else that is told with it.
struct PublishedAddress {
  Agreement agreement;
  std::array<std::byte, endpoint_address_bytes> endpoint;

  // As launchers carry it, with as much of the endpoint as is used.
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t used) const {
    return std::as_bytes(std::span(this, 1)).first(sizeof agreement + used);
  }
};
static_assert(sizeof(PublishedAddress) == sizeof(Agreement) + endpoint_address_bytes);

struct RankRow {
  std::atomic<RankState> state;
  std::atomic<std::uint32_t> published;       // the generation of `address`
  std::int32_t child;                         // process that mpiexec has started for it
  std::int32_t pid;                           // of the process that joined
  std::int32_t app;                           // which program of the command line (MPI_APPNUM)
  std::uint32_t node;                         // its machine
  std::uint32_t place;                        // among the ranks of that machine
  std::int32_t code;                          // of MPI_Abort
  Blame blame;                                // of MPI_Abort
  std::int32_t start_error;                   // errno when the program could not be started
  StartStep failed_step;                      // which step of starting that was
  std::atomic<std::uint32_t> report_answered; // the last value of `reports_wanted` answered
  std::atomic<std::uint32_t> given_up;        // 1 + the generation in which it did
  // Bytes of the endpoint; 0: has opened no network, until now.
  std::atomic<std::uint32_t> endpoint_used;
  PublishedAddress address;
  // The generation in which no process of another machine reaches it, nor will.
  std::atomic<std::uint32_t> refuses_strangers;
  std::array<char, 120> text; // of MPI_Abort, null-terminated
};
static_assert(sizeof(RankRow) == 256);

enum class ReportKind : std::uint32_t { none, hang, final };

// Where a rank leaves a report for mpiexec (report.h describes the text), and where others knock.
struct ReportArea {
  std::uint32_t kind; // ReportKind
  std::uint32_t bytes;
  Door door;
  std::array<char, (256 << 10) - 8 - sizeof(Door)> text;
};
static_assert(sizeof(ReportArea) == 256 << 10);

// Where everything is, in bytes from the start.
struct JobLayout {
  std::uint64_t nodes, sets, members, wanted, rows, reports, segments;
  std::uint64_t mapped; // all before the segments
  std::uint64_t end;
};
constexpr std::uint64_t wanted_words(std::uint32_t size) {
  return (std::uint64_t{size} + 63) / 64;
}
constexpr JobLayout job_layout(std::uint32_t nodes, std::uint32_t sets, std::uint32_t size,
                               std::uint32_t local) {
  const auto round_up = [](std::uint64_t bytes, std::uint64_t to) {
    return (bytes + to - 1) & ~(to - 1);
  };
  constexpr std::uint64_t pages = std::uint64_t{64} << 10; // whole ones, on every system
  JobLayout layout{};
  layout.nodes = round_up(sizeof(JobHeader), alignof(NodeRow));
  layout.sets = layout.nodes + nodes * sizeof(NodeRow);
  layout.members = layout.sets + sets * sizeof(SetRow);
  layout.wanted = round_up(layout.members + size * sizeof(std::uint32_t), sizeof(std::uint64_t));
  layout.rows =
      round_up(layout.wanted + wanted_words(size) * sizeof(std::uint64_t), sizeof(RankRow));
  layout.reports = round_up(layout.rows + size * sizeof(RankRow), pages);
  layout.mapped = layout.reports + local * sizeof(ReportArea);
  layout.segments = round_up(layout.mapped, segment_capacity);
  layout.end = layout.segments + local * segment_capacity;
  return layout;
}

// The descriptor of the job's memory in mpiexec and its ranks, or one of the next, as shells'
// scripts use low ones for redirections.
inline constexpr int first_job_descriptor = 64;
inline constexpr int job_descriptors = 8; // so deep may jobs be started within ranks of jobs

// A machine, as mpiexec knows it before there is a job.
struct Node {
  std::string host;
  std::uint32_t ranks = 0;
};

// Ranks of a process set, as mpiexec knows them.
struct NamedRanks {
  std::string set; // at most longest_set_name bytes
  std::uint32_t first = 0, ranks = 0;
};

// The mapping of everything but the segments. Owns the mapping and the descriptor.
class JobMemory {
 public:
  // Makes the memory of a new job on `nodes`, of which this machine is the one with the index
  // `own`. `machines` says which machine each rank is on, as often as `nodes` has it; if it is
  // empty, ranks are numbered node by node. Throws MPI_ERR_OTHER when the system refuses.
  static JobMemory create(const std::vector<Node>& nodes, std::uint32_t own, std::uint32_t cores,
                          const std::vector<NamedRanks>& sets = {},
                          const std::vector<std::uint32_t>& machines = {});
  // The memory of a job of one: private, without a descriptor, until it is shared.
  static JobMemory alone(std::uint32_t cores, const std::string& host);
  // Makes it a file, so that others can be given it. What is in it stays, where it is. Nobody may
  // write to it meanwhile. Throws MPI_ERR_OTHER, and leaves it as it was.
  void share();
  // Maps the memory behind a descriptor got from mpiexec and takes the descriptor over, so that
  // programs started by this process do not inherit it. Throws MPI_ERR_OTHER, and takes nothing
  // over, if it is no memory of a job.
  static JobMemory attach(int fd);
  // The memory behind the descriptors that mpiexec leaves to a rank, of which there are several
  // where jobs are started within ranks.
  static std::vector<JobMemory> inherited();

  JobMemory(JobMemory&& other) noexcept;
  JobMemory& operator=(JobMemory&&) = delete;
  ~JobMemory();

  // -1 for a job of one that is not shared. Opened again, if the program has closed it or has
  // something else there now; throws MPI_ERR_OTHER if that is impossible.
  [[nodiscard]] int fd() const;
  [[nodiscard]] bool shared() const { return fd_ >= 0; }
  // Bytes of it, segments and all, for which pages were taken.
  [[nodiscard]] std::uint64_t resident() const;
  [[nodiscard]] JobHeader& header() const { return *reinterpret_cast<JobHeader*>(base_); }
  [[nodiscard]] int size() const { return static_cast<int>(header().size); }
  [[nodiscard]] RankRow& row(int rank) const {
    return reinterpret_cast<RankRow*>(base_ + layout_.rows)[rank];
  }
  // Which machine a rank is on.
  [[nodiscard]] const NodeRow& node(std::uint32_t index) const {
    return reinterpret_cast<const NodeRow*>(base_ + layout_.nodes)[index];
  }
  [[nodiscard]] std::uint32_t node_of(int rank) const { return row(rank).node; }
  [[nodiscard]] const char* host_of(int rank) const { return node(node_of(rank)).host.data(); }
  [[nodiscard]] const NodeRow& own_node() const { return node(header().node); }
  // The ranks of a machine, and of this one, in their order.
  [[nodiscard]] std::span<const std::uint32_t> members(std::uint32_t index) const {
    return {reinterpret_cast<const std::uint32_t*>(base_ + layout_.members) + node(index).first,
            node(index).ranks};
  }
  [[nodiscard]] std::span<const std::uint32_t> members() const { return members(header().node); }
  // The place of a rank of this machine among them.
  [[nodiscard]] int local_index(int rank) const { return static_cast<int>(row(rank).place); }
  [[nodiscard]] bool is_local(int rank) const { return node_of(rank) == header().node; }
  // Ranks of other machines whose addresses are wanted here: a bit for each rank, set once.
  [[nodiscard]] std::span<std::atomic<std::uint64_t>> wanted() const {
    return {reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + layout_.wanted),
            wanted_words(header().size)};
  }
  // Process sets, of which some may be of several rows.
  [[nodiscard]] std::span<const SetRow> sets() const {
    return {reinterpret_cast<const SetRow*>(base_ + layout_.sets), header().sets};
  }
  // The report of a rank of this machine.
  [[nodiscard]] ReportArea& report(int rank) const {
    return reinterpret_cast<ReportArea*>(base_ + layout_.reports)[local_index(rank)];
  }
  // The same.
  [[nodiscard]] Door& door(int rank) const { return report(rank).door; }
  // What a rank has published for this generation, and how it stands then (Job).
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int rank,
                                                                std::uint32_t generation) const;
  [[nodiscard]] std::optional<Agreement> agreement_of(int rank, std::uint32_t generation) const;
  [[nodiscard]] Life life(int rank, std::uint32_t generation) const;
  // Asks mpiexec for the address of a rank of another machine, unless that was done.
  void want(int rank) const;
  // There is something to be seen in the memory: mpiexec takes it for the end of a child.
  void tell_launcher() const;
  // By mpiexec, for as long as it lives and has the descriptor: other processes see it, even if
  // mpiexec was killed. Lost if this process closes any descriptor of the memory.
  void hold() const;
  [[nodiscard]] bool is_held() const;
  // By a process for as long as it knows the job: a descriptor that it closes then. Another one may
  // ask whether somebody does. Throws MPI_ERR_OTHER.
  [[nodiscard]] int use() const;
  [[nodiscard]] bool is_used() const;

  // Whether all ranks of this machine have, at the barrier.
  [[nodiscard]] bool have_arrived() const {
    return header().barrier_arrived.load(std::memory_order_acquire) == own_node().ranks;
  }
  // Ends a round of the barrier: all ranks have arrived.
  void open_barrier() const;
  [[nodiscard]] std::uint64_t segment_offset(int rank) const {
    return layout_.segments + static_cast<std::uint64_t>(local_index(rank)) * segment_capacity;
  }

 private:
  JobMemory(int fd, const JobLayout& layout);
  void describe(const std::vector<Node>& nodes, std::uint32_t own, std::uint32_t cores,
                const std::vector<NamedRanks>& sets, const std::vector<std::uint32_t>& machines);
  void place(const std::vector<std::uint32_t>& machines);
  void remember_file();
  [[nodiscard]] bool is_memory(int fd) const;

  mutable int fd_;
  dev_t device_ = 0; // of the file
  ino_t inode_ = 0;
  JobLayout layout_;
  std::byte* base_;
};

// The memory of a job, by a descriptor that was sent to this process; takes that over. Throws
// MPI_ERR_OTHER.
JobMemory receive_memory(int fd);

// A memfd without a name anywhere, closed on exec. Throws MPI_ERR_OTHER.
int make_memfd(const char* what, std::uint64_t bytes);

} // namespace macadam::boot
