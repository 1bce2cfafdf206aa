// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace macadam::boot {

// The memory that all processes of a job on one machine share: one memfd, made by mpiexec and
// inherited by the ranks. It has no name in any file system and goes away with the last process.
//
//   0                      JobHeader
//   rows_offset            RankRow[size]
//   reports_offset(size)   ReportArea[size]     sparse: a page exists once it was written
//   segments_offset(size)  segment[size]        sparse, for the transport; not mapped here
//
// The segments are ranges of the same file, rather than a memfd for each rank: a rank then reaches
// any peer's memory with the one descriptor it has. Opening /proc/PID/fd/N of a peer instead would
// need a /proc that shows it and a peer that is not protected from ptrace; inheriting a descriptor
// for each rank would take as many descriptors in each process as the job has ranks.

inline constexpr std::size_t card_bytes = 64;
inline constexpr std::size_t secret_bytes = 16;
// Address space, not memory: a process maps as much for each peer it talks to, and has 2^47 in all
// (the thread sanitizer leaves it far less).
inline constexpr std::uint64_t segment_capacity = std::uint64_t{1} << 36;

enum class RankState : std::uint32_t {
  starting,  // not in MPI yet
  running,   // has joined
  finalized, // has left MPI in good order
  aborted,   // called MPI_Abort: RankRow::code, RankRow::text
  dead,      // mpiexec has seen its process end
};

struct JobHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t size;    // ranks
  std::uint32_t cores;   // hardware threads that the job may use together
  std::int32_t launcher; // process id of mpiexec; 0 for a program started alone
  std::array<std::byte, secret_bytes> secret;
  std::array<char, 64> host; // null-terminated
  // Raised by mpiexec to ask every rank for a report.
  alignas(64) std::atomic<std::uint32_t> reports_wanted;
  std::atomic<std::uint32_t> absent; // ranks that ended without having joined
  alignas(64) std::atomic<std::uint32_t> barrier_arrived;
  std::atomic<std::uint32_t> barrier_round; // futex
};

// Whether a rank that aborts is the cause, or only follows another one that ended.
enum class Blame : std::uint32_t { self, peer };

// What mpiexec's child does before it becomes the rank's program.
enum class StartStep : std::uint32_t { enter_folder, execute };

struct RankRow {
  std::atomic<RankState> state;
  std::atomic<std::uint32_t> published;       // futex: 1 once `card` is written
  std::int32_t pid;                           // of the process that joined
  std::int32_t app;                           // which program of the command line (MPI_APPNUM)
  std::int32_t code;                          // of MPI_Abort
  Blame blame;                                // of MPI_Abort
  std::int32_t start_error;                   // errno when the program could not be started
  StartStep failed_step;                      // which step of starting that was
  std::atomic<std::uint32_t> report_answered; // the last value of `reports_wanted` answered
  std::uint32_t card_used;
  std::array<std::byte, card_bytes> card; // what the transport wants peers to know
  std::array<char, 152> text;             // of MPI_Abort, null-terminated
};
static_assert(sizeof(RankRow) == 256);

enum class ReportKind : std::uint32_t { none, hang, final };

// Where a rank leaves a report for mpiexec (report.h describes the text).
struct ReportArea {
  std::uint32_t kind; // ReportKind
  std::uint32_t bytes;
  std::array<char, (256 << 10) - 8> text;
};
static_assert(sizeof(ReportArea) == 256 << 10);

inline constexpr std::uint64_t rows_offset = 4096;
static_assert(sizeof(JobHeader) <= rows_offset);

constexpr std::uint64_t round_to_page(std::uint64_t bytes) {
  return (bytes + 4095) & ~4095ULL;
}
constexpr std::uint64_t reports_offset(std::uint32_t size) {
  return rows_offset + round_to_page(size * sizeof(RankRow));
}
constexpr std::uint64_t segments_offset(std::uint32_t size) {
  return (reports_offset(size) + size * sizeof(ReportArea) + segment_capacity - 1) &
         ~(segment_capacity - 1);
}

// The mapping of everything but the segments. Owns the mapping and the descriptor.
class JobMemory {
 public:
  // Makes the memory of a new job. Throws MPI_ERR_OTHER when the system refuses.
  static JobMemory create(std::uint32_t size, std::uint32_t cores, std::string_view host);
  // The memory of a job of one: private, without a descriptor.
  static JobMemory alone(std::uint32_t cores, std::string_view host);
  // Maps the memory behind a descriptor got from mpiexec and takes the descriptor over, so that
  // programs started by this process do not inherit it. Throws MPI_ERR_OTHER, and takes nothing
  // over, if it is no memory of a job.
  static JobMemory attach(int fd);

  JobMemory(JobMemory&& other) noexcept;
  JobMemory& operator=(JobMemory&&) = delete;
  ~JobMemory();

  [[nodiscard]] int fd() const { return fd_; } // -1 for a job of one
  [[nodiscard]] JobHeader& header() const { return *reinterpret_cast<JobHeader*>(base_); }
  [[nodiscard]] RankRow& row(int rank) const {
    return reinterpret_cast<RankRow*>(base_ + rows_offset)[rank];
  }
  [[nodiscard]] ReportArea& report(int rank) const {
    return reinterpret_cast<ReportArea*>(base_ + reports_offset(header().size))[rank];
  }

 private:
  JobMemory(int fd, std::byte* base, std::size_t bytes) : fd_(fd), base_(base), bytes_(bytes) {}

  int fd_;
  std::byte* base_;
  std::size_t bytes_;
};

// A memfd without a name anywhere, closed on exec. Throws MPI_ERR_OTHER.
int make_memfd(const char* what, std::uint64_t bytes);

} // namespace macadam::boot
