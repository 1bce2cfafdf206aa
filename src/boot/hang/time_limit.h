// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/hang/hang_report.h"
#include "boot/job_memory.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace macadam::boot {

class LauncherClient;

// Ends the job of a launcher that is not mpiexec if it has not ended in time, as mpiexec -timeout
// does: rank 0 prints the page about what all ranks wait for. The first rank of each machine has
// one, a thread that sleeps until then: it asks the ranks there in the memory that they share,
// whatever its own program does, and leaves for rank 0 what they have answered.
class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;

  // Both outlive the object. `start`: when this machine's part of the job has begun. Throws
  // MPI_ERR_OTHER.
  TimeLimit(const JobMemory& memory, LauncherClient& launcher, Clock::time_point start);
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
  // The job has ended in time, as far as this machine is concerned.
  ~TimeLimit();

  // After the limit: the page is there, with what has come by then, and the job has ended.
  static constexpr std::chrono::seconds longest_page{30};

 private:
  // What the page needs of a rank.
  struct Seen {
    RankStatus status;
    bool stood = false; // between two looks
  };

  void watch();
  // False if the job has ended meanwhile.
  bool wait_until(Clock::time_point until);
  [[nodiscard]] std::vector<Seen> look() const;
  [[nodiscard]] std::string pack(const std::vector<Seen>& seen) const;
  // Of the machine `node`, into `all`, by rank.
  void unpack(std::uint32_t node, const std::string& text, std::vector<Seen>& all) const;
  [[nodiscard]] std::string make_page(Clock::time_point until);
  [[noreturn]] void end_job(const std::string& page);

  const JobMemory& memory_;
  LauncherClient& launcher_;
  const Clock::time_point limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool in_time_ = false;
  std::thread thread_; // last: it uses the others
};

} // namespace macadam::boot
