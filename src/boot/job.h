// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace macadam::boot {

// The environment variable by which mpiexec tells a rank who it is: "FD:RANK", the descriptor of
// the job's memory and the rank.
inline constexpr const char* job_variable = "MACADAM_JOB";

// Memory that one rank owns and its peers may map: the bytes [offset, offset + capacity) of `fd`,
// sparse, zero at first. `offset` is a multiple of a huge page. The Job owns `fd`; never close it.
// Pages are taken at first touch and given back with fallocate(FALLOC_FL_PUNCH_HOLE).
struct Segment {
  int fd;
  std::uint64_t offset;
  std::uint64_t capacity;
};

// What a process knows of its job. Made once in a process by join() and kept until it exits: a
// second join() of the same process is refused by the job.
//
// The const functions may be called by any thread at any time; the others by one thread at a time.
class Job {
 public:
  // Learns from mpiexec who this process is. A program started alone becomes a job of one and opens
  // nothing. Throws MPI_ERR_OTHER when mpiexec's message is damaged, when the rank is taken by
  // another process, or when another launcher started several processes that would all be alone.
  static Job join();

  Job(Job&&) noexcept = default;
  ~Job() = default;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return static_cast<int>(memory_.header().size); }
  // Among the ranks of this host. All ranks are on one host as long as mpiexec is our own.
  [[nodiscard]] int local_rank() const { return rank_; }
  [[nodiscard]] int local_size() const { return size(); }
  // True if the program was started without mpiexec.
  [[nodiscard]] bool alone() const { return memory_.header().launcher == 0; }
  [[nodiscard]] int app_number() const { return own_row().app; } // MPI_APPNUM
  [[nodiscard]] std::string_view host() const { return memory_.header().host.data(); }
  // Hardware threads that this host's ranks may use together: with more ranks than that, a waiting
  // rank must leave its core to others.
  [[nodiscard]] int cores() const { return static_cast<int>(memory_.header().cores); }
  // Random, known to this job's processes only.
  [[nodiscard]] std::span<const std::byte, secret_bytes> secret() const {
    return memory_.header().secret;
  }
  // The process id of a rank that has published; see fetch().
  [[nodiscard]] int pid(int rank) const { return memory_.row(rank).pid; }

  // Addresses. What a rank publishes, once and up to card_bytes, the others fetch when they want to
  // talk to it. fetch() waits until that rank has published, and answers report_wanted() meanwhile;
  // the bytes stay valid as long as the Job. Throws MPI_ERR_PROC_ABORTED if the rank has ended and
  // will never publish.
  void publish(std::span<const std::byte> card);
  [[nodiscard]] std::span<const std::byte> fetch(int rank) const;
  [[nodiscard]] bool has_published(int rank) const {
    return memory_.row(rank).published.load(std::memory_order_acquire) != 0;
  }

  // This process's own segment, and a local peer's. Throws MPI_ERR_OTHER if the system refuses.
  Segment my_segment();
  [[nodiscard]] Segment open_segment(int rank) const;

  // The wait in MPI_Finalize, until all ranks have called it as often as this one. Answers
  // report_wanted() meanwhile and calls `idle`, if given, every few milliseconds.
  void barrier(const std::function<void()>& idle = {});

  // Leaves MPI: after this, the end of the process is no failure of the job.
  void finalize();

  // Ends the job: mpiexec ends the other ranks, names this one with `text`, for example
  // "called MPI_Abort(MPI_COMM_WORLD, 3)", and exits with `code` (1 to 255, else 1). Flushes
  // stdio. A program started alone says the same itself.
  // With Blame::peer, for an error that says only that another rank is gone, mpiexec names that
  // rank if it sees within a moment how it ended.
  [[noreturn]] void abort(int code, std::string_view text, Blame blame = Blame::self);

  // True if mpiexec waits for a report of this rank. One load: cheap enough for an idle loop.
  [[nodiscard]] bool report_wanted() const {
    return memory_.header().reports_wanted.load(std::memory_order_relaxed) !=
           own_row().report_answered.load(std::memory_order_relaxed);
  }
  // Answers report_wanted(). `json` as in report.h, longest 256 KiB.
  void write_report(std::string_view json) const { put_report(ReportKind::hang, json); }
  // What the rank did, for the page that mpiexec prints at the end. `json` as in report.h. Call it
  // before finalize(). A program started alone prints the page itself.
  void write_final_report(std::string_view json);

 private:
  Job(JobMemory memory, int rank) : memory_(std::move(memory)), rank_(rank) {}

  [[nodiscard]] RankRow& own_row() const { return memory_.row(rank_); }
  void put_report(ReportKind kind, std::string_view json) const;
  void report_waiting(std::string_view function, std::string_view what) const;

  JobMemory memory_;
  int rank_;
  int lone_segment_ = -1; // of a job of one, made when first wanted; lives as long as the process
};

} // namespace macadam::boot
