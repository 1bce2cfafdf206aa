// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::boot {

class Universe;

// Whether a rank that aborts is the cause, or only follows another one that ended.
enum class Blame : std::uint32_t { self, peer };

// Some ranks of a job that have a name, in their order there.
struct ProcessSet {
  std::string name;
  std::vector<std::uint32_t> ranks;
};

// A job with a launcher, which MPI needs besides: it begins and ends as a whole, and somebody looks
// at it.
class LaunchedJob : public Job {
 public:
  // True if the program was started without a launcher.
  [[nodiscard]] virtual bool alone() const = 0;
  [[nodiscard]] virtual int app_number() const = 0; // MPI_APPNUM
  // Those that were named when the job was started.
  [[nodiscard]] virtual std::vector<ProcessSet> process_sets() const { return {}; }
  // Jobs beyond this one: those that it starts and meets. Null where that is not written.
  [[nodiscard]] virtual Universe* universe() { return nullptr; }
  // Whether all ranks read one clock.
  [[nodiscard]] virtual bool one_clock() const { return true; }

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

  // No process of another machine reaches this one, whatever it has published: those that wait for
  // its address are told so. Until it publishes again.
  virtual void refuse_strangers() {}

  // The wait in MPI_Finalize, until all ranks have called it as often as this one. Answers
  // report_wanted() meanwhile and calls `idle`, if given, every few milliseconds. Where a job may
  // have another generation, no rank of it is in `idle` any more when this returns.
  virtual void barrier(const std::function<void()>& idle) = 0;

  // Is out of MPI: after this, until enter(), the end of the process is no failure of the job.
  virtual void finalize() = 0;

  // Ends the job: mpiexec ends the other ranks, names this one with `text`, for example
  // "called MPI_Abort(MPI_COMM_WORLD, 3)", and exits with `code` (1 to 255, else 1). Flushes
  // streams. A program started alone says the same itself. Of a longer text than longest_reason the
  // rest is lost.
  // With Blame::peer, for an error that says only that another rank is gone, mpiexec names that
  // rank if it sees within a moment how it ended.
  [[noreturn]] void abort(int code, std::string_view text, Blame blame = Blame::self) {
    end_job(code, text, blame);
    std::abort();
  }

  static constexpr std::size_t longest_reason = 119; // characters

  // Whether mpiexec is ending the job: this process has a moment yet.
  [[nodiscard]] virtual bool is_ending() const { return false; }
  // True if mpiexec waits for a report of this rank. Cheap enough for an idle loop.
  [[nodiscard]] virtual bool report_wanted() const = 0;
  // Answers report_wanted(). `json` as in boot/hang/hang_report.h, longest 256 KiB.
  virtual void write_report(std::string_view json) const = 0;
  // What the rank did, for the page that is printed at the end. `json` as in job_report.h. Call it
  // before finalize(). A program started alone prints the page itself.
  virtual void write_final_report(std::string_view json) = 0;

 private:
  // abort(); does not return.
  virtual void end_job(int code, std::string_view text, Blame blame) = 0;
};

} // namespace macadam::boot
