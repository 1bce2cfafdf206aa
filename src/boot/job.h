// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::boot {

// The environment variable by which mpiexec tells a rank who it is: "FD:RANK", the descriptor of
// the job's memory and the rank. A user may set it to "alone".
inline constexpr const char* job_variable = "MACADAM_JOB";

// Memory that one rank owns and its peers may map: the bytes [offset, offset + capacity) of `fd`,
// sparse, zero at first. `offset` is a multiple of a huge page. The Job owns `fd`; never close it,
// ask again before each use. Pages are taken at first touch and given back by punching holes.
struct Segment {
  int fd;
  std::uint64_t offset;
  std::uint64_t capacity;
};

// Some ranks of a job that have a name, in their order there.
struct ProcessSet {
  std::string name;
  std::vector<std::uint32_t> ranks;
};

// What a process knows of its job, as MPI sees it; LocalJob below is the real one, the simulator
// has its own.
class Job {
 public:
  virtual ~Job() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  // True if the program was started without mpiexec.
  [[nodiscard]] virtual bool alone() const = 0;
  [[nodiscard]] virtual int app_number() const = 0; // MPI_APPNUM
  [[nodiscard]] virtual std::string_view host() const = 0;
  // The machine a rank is on, by a number that its ranks share and no others have.
  [[nodiscard]] virtual int node(int rank) const = 0;
  // Those that were named when the job was started.
  [[nodiscard]] virtual std::vector<ProcessSet> process_sets() const { return {}; }
  // Whether all ranks read one clock.
  [[nodiscard]] virtual bool one_clock() const { return true; }
  // Hardware threads that this host's ranks may use together: with more ranks than that, a waiting
  // rank must leave its core to others.
  [[nodiscard]] virtual int cores() const = 0;

  // A job has generations. The first process that enters begins one, if none is under way; it is
  // over once all that have entered have left again. So what a process holds for its peers (memory
  // that they have mapped, connections) it holds until the generation is over, since a peer that
  // has not left may still use it.

  // Takes part in MPI from now on: the end of the process before finalize() is a failure of the
  // job. The number of the generation, from 1 on. Throws base::Error.
  virtual std::uint32_t enter() = 0;
  // Needs nothing of the others any more, and has nothing under way that they need.
  virtual void leave() = 0;
  // Whether all have left a generation.
  [[nodiscard]] virtual bool is_over(std::uint32_t generation) const = 0;

  // The wait in MPI_Finalize, until all ranks have called it as often as this one. Answers
  // report_wanted() meanwhile and calls `idle`, if given, every few milliseconds.
  virtual void barrier(const std::function<void()>& idle) = 0;

  // Is out of MPI: after this, until enter(), the end of the process is no failure of the job.
  virtual void finalize() = 0;

  // Ends the job: mpiexec ends the other ranks, names this one with `text`, for example
  // "called MPI_Abort(MPI_COMM_WORLD, 3)", and exits with `code` (1 to 255, else 1). Flushes
  // streams. A program started alone says the same itself.
  // With Blame::peer, for an error that says only that another rank is gone, mpiexec names that
  // rank if it sees within a moment how it ended.
  [[noreturn]] void abort(int code, std::string_view text, Blame blame = Blame::self) {
    end_job(code, text, blame);
    std::abort();
  }

  // True if mpiexec waits for a report of this rank. Cheap enough for an idle loop.
  [[nodiscard]] virtual bool report_wanted() const = 0;
  // Answers report_wanted(). `json` as in tools/mpiexec/hang_report.h, longest 256 KiB.
  virtual void write_report(std::string_view json) const = 0;
  // What the rank did, for the page that is printed at the end. `json` as in job_report.h. Call it
  // before finalize(). A program started alone prints the page itself.
  virtual void write_final_report(std::string_view json) = 0;

 private:
  // abort(); does not return.
  virtual void end_job(int code, std::string_view text, Blame blame) = 0;
};

// The job of mpiexec, or of one process. Made once in a process by join() and kept until it exits:
// a second join() of the same process is refused by the job.
//
// The const functions may be called by any thread at any time; the others by one thread at a time.
class LocalJob final : public Job {
 public:
  // Learns from mpiexec who this process is: from the variable, or, where the environment was
  // cleared, from the descriptor that it has inherited. A program started alone becomes a job of
  // one and opens nothing. Throws MPI_ERR_OTHER when mpiexec's message is damaged, when the rank is
  // taken by another process, or when another launcher started several processes that would all be
  // alone.
  static LocalJob join();

  LocalJob(LocalJob&&) noexcept = default;

  // On several machines there is one generation: only MPI_Finalize, where all meet, ends it.
  std::uint32_t enter() override;
  void leave() override;
  [[nodiscard]] bool is_over(std::uint32_t generation) const override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return memory_.size(); }
  [[nodiscard]] bool alone() const override { return memory_.header().launcher == 0; }
  [[nodiscard]] int app_number() const override { return own_row().app; }
  [[nodiscard]] std::string_view host() const override { return memory_.own_node().host.data(); }
  [[nodiscard]] int node(int rank) const override {
    return static_cast<int>(memory_.node_of(rank));
  }
  [[nodiscard]] std::vector<ProcessSet> process_sets() const override;
  [[nodiscard]] bool one_clock() const override { return memory_.header().nodes == 1; }
  [[nodiscard]] int cores() const override { return static_cast<int>(memory_.header().cores); }
  // Among the ranks of this host, which follow each other.
  [[nodiscard]] int local_rank() const { return memory_.local_index(rank_); }
  [[nodiscard]] int local_size() const { return static_cast<int>(memory_.own_node().ranks); }
  [[nodiscard]] bool is_local(int rank) const { return memory_.is_local(rank); }
  [[nodiscard]] std::string_view host_of(int rank) const { return memory_.host_of(rank); }
  // That this process has entered last.
  [[nodiscard]] std::uint32_t generation() const { return generation_; }
  // Random, known to this job's processes only.
  [[nodiscard]] std::span<const std::byte, secret_bytes> secret() const {
    return memory_.header().secret;
  }
  // The process id of a rank of this host that has published; see fetch().
  [[nodiscard]] int pid(int rank) const { return memory_.row(rank).pid; }

  // Addresses. What a rank publishes, once in a generation and up to endpoint_address_bytes, the
  // others fetch when they want to talk to it. fetch() waits until that rank has published, and
  // answers report_wanted() meanwhile; the bytes stay valid as long as the generation. Throws
  // MPI_ERR_PROC_ABORTED if the rank has ended and will never publish.
  void publish(std::span<const std::byte> endpoint_address);
  [[nodiscard]] std::span<const std::byte> fetch(int rank) const;
  [[nodiscard]] bool has_published(int rank) const {
    return memory_.row(rank).published.load(std::memory_order_acquire) >= generation_;
  }

  // Whether mpiexec has seen the process of a rank end before it had left MPI.
  [[nodiscard]] bool has_failed(int rank) const {
    return memory_.row(rank).state.load(std::memory_order_acquire) == RankState::dead;
  }
  // How many of this host's ranks have, so far.
  [[nodiscard]] unsigned failures() const {
    return memory_.header().failed.load(std::memory_order_acquire);
  }

  // This process's own segment, and that of a rank of this host. Throws MPI_ERR_OTHER if the system
  // refuses.
  Segment my_segment();
  [[nodiscard]] Segment open_segment(int rank) const;
  // Nobody uses this process's segment any more: its pages go back, and it is as at first.
  void clear_segment();
  // Promises this process memory of the machine, beside what all ranks here were promised and have
  // not touched yet. Empty, or the sentence that says why there is not as much, with the remedy.
  std::string promise(std::uint64_t bytes);
  void withdraw(std::uint64_t bytes) { memory_.header().promised.fetch_sub(bytes); }

  void barrier(const std::function<void()>& idle) override;
  void barrier() { barrier({}); }
  void finalize() override;

  [[nodiscard]] bool report_wanted() const override {
    return memory_.header().reports_wanted.load(std::memory_order_relaxed) !=
           own_row().report_answered.load(std::memory_order_relaxed);
  }
  void write_report(std::string_view json) const override { put_report(ReportKind::hang, json); }
  void write_final_report(std::string_view json) override;

 private:
  LocalJob(JobMemory memory, int rank) : memory_(std::move(memory)), rank_(rank) {}
  // As this rank, which is taken by it.
  static LocalJob take(JobMemory memory, int rank);

  void end_job(int code, std::string_view text, Blame blame) override;
  [[nodiscard]] RankRow& own_row() const { return memory_.row(rank_); }
  void tell_launcher() const;
  void put_report(ReportKind kind, std::string_view json) const;
  void report_waiting(std::string_view function, std::string_view what) const;

  JobMemory memory_;
  int rank_;
  std::uint32_t generation_ = 1; // that this process has entered last
  bool parted_ = false;          // was in barrier(), on several machines
  int lone_segment_ = -1; // of a job of one, made when first wanted; lives as long as the process
};

} // namespace macadam::boot
