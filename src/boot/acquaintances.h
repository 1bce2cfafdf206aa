// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/control.h"
#include "boot/met_job.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

namespace macadam::boot {

// The other jobs that a process has met. A few that it has parted from stay, with what is mapped of
// them, as programs that meet tend to meet again; but none of another machine, which mpiexec would
// stay connected with.
class Acquaintances {
 public:
  // Of the jobs that nobody knows any more, and of those that nobody has met yet.
  static constexpr std::size_t most_kept = 4;

  struct Acquaintance {
    Ticket ticket;
    std::shared_ptr<MetJob> job; // shared with who knocks at its doors
    bool parted = false;
    bool introduced = false; // and not met yet
    struct Port {
      PortKey key;
      std::uint32_t rank;
    };
    std::vector<Port> ports; // its, that this process has connected to: the last ones
  };

  // Null if the job is not known, or, for one that was kept, has ended meanwhile.
  Acquaintance* find(const Secret& secret);
  // The same, which may be dropped as before.
  [[nodiscard]] std::shared_ptr<const MetJob> look(const Secret& secret);
  Acquaintance& add(const Ticket& ticket, std::shared_ptr<MetJob> job);
  // It may never be met, and is dropped for later ones until find() is asked for it.
  void mark_introduced(const Secret& secret);
  // Its communicators are gone: it may be dropped.
  void part(const Job& job);
  void drop_unused();

  void remember(const Secret& job, const PortKey& port, std::uint32_t rank);
  struct PortOwner {
    Acquaintance* job;
    std::uint32_t rank;
  };
  [[nodiscard]] std::optional<PortOwner> owner_of(const PortKey& port);
  [[nodiscard]] Acquaintance* find(std::uint32_t number);
  [[nodiscard]] bool empty() const { return known_.empty(); }

 private:
  std::list<Acquaintance>::iterator place_of(const Secret& secret);

  std::list<Acquaintance> known_; // those that were parted from in this order, the last one last
};

} // namespace macadam::boot
