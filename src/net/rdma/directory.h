// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"
#include "net/rdma/wire.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace macadam::net::rdma {

using engine::Rank;

using Secret = std::array<std::uint8_t, 16>;

// A job's secret as its processes use it in one of the job's generations: packets of an earlier one
// that come late are none of this one's.
inline Secret secret_of(Secret job, std::uint32_t generation) {
  for (std::size_t i = 0; i < sizeof generation; ++i)
    job[i] ^= static_cast<std::uint8_t>(generation >> (8 * i));
  return job;
}

// Who the processes of the job are and where they listen. Start-up provides it; the transport keeps
// a reference.
class Directory {
 public:
  virtual ~Directory() = default;

  [[nodiscard]] virtual Rank rank() const = 0; // this process
  [[nodiscard]] virtual Rank size() const = 0; // of the job: ranks are 0 to size() - 1
  // Whether messages to this peer go by RDMA, not by a nearer network.
  [[nodiscard]] virtual bool serves(Rank) const { return true; }
  // Whether this host has fewer cores than processes of the job: a wait must soon sleep.
  [[nodiscard]] virtual bool oversubscribed() const { return false; }
  // Random, known to this job's processes only.
  [[nodiscard]] virtual Secret secret() const = 0;

  // Called once, when this process listens at `own`.
  virtual void publish(const wire::Endpoint& own) = 0;
  // Where a peer listens; asked when a connection wants it and not before. Waits until the peer has
  // published. Throws base::Error if it never will. Any thread: the progress thread asks too, if it
  // `knows` the peer, and is then not made to wait.
  virtual wire::Endpoint find(Rank peer) = 0;
  [[nodiscard]] virtual bool knows(Rank) const { return true; }
};

} // namespace macadam::net::rdma
