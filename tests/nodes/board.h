// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "board_page.h"
#include "boot/job_memory.h"
#include "tools/mpiexec/neighbours.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace macadam::test {

// How the mpiexecs of several machines learn of each other in tests: a folder that all machines
// see, where each keeps a file about its own ranks (board_page.h) and reads those of the others.
// The folder belongs to one job and holds its secret, so only its owner may look into it.
class Board final : public tools::Neighbours {
 public:
  struct Place {
    std::string folder;      // empty and of mode 0700; made if it is not there
    std::uint32_t nodes = 0; // in the job
    std::uint32_t node = 0;  // this one
  };
  // Puts up this machine's page and waits until all others have theirs. Throws std::runtime_error
  // if the folder is not as it should be, or the others have not come after `longest`.
  Board(const Place& place, boot::Node self, std::chrono::seconds longest);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  // Tells the others that this machine has nothing more to do.
  ~Board();

  // The job as all machines see it.
  [[nodiscard]] boot::JobMemory make_job(std::uint32_t cores) const;

  std::chrono::milliseconds exchange(boot::JobMemory& memory) override;
  void tell_failure(const Failure& failure) override;
  [[nodiscard]] const std::optional<Failure>& failure() const override { return failure_; }

 private:
  using Clock = std::chrono::steady_clock;
  // What is known of one machine.
  struct Neighbour {
    Page page;
    Clock::time_point changed; // its page
  };

  void check_folder() const;
  [[nodiscard]] std::string file_of(std::uint32_t node) const;
  [[nodiscard]] bool read(std::uint32_t node, Page& page) const;
  void write();
  void describe(const boot::JobMemory& memory);
  void take(const Neighbour& neighbour, boot::JobMemory& memory);
  void look_for_failures();

  const Place place_;
  std::vector<Neighbour> neighbours_; // by node; our own page too
  std::optional<Failure> failure_;
  Clock::time_point written_;
  std::chrono::milliseconds pause_{};
};

} // namespace macadam::test
