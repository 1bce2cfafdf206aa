// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "boot/universe.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace macadam::boot {

// What the two sides of MPI_Comm_join say to each other over the user's socket. The same number of
// bytes each way, and none is read that comes behind.
class JoinedSocket final : public Pending<Met> {
 public:
  // `own`: what the other side is told, with a random number for the meeting.
  JoinedSocket(int socket, const Met& own);

  [[nodiscard]] bool done() noexcept override;
  Met take() override;

 private:
  struct Hello {
    std::uint64_t magic = 0;
    std::uint32_t version = 0;
    std::uint32_t rank = 0;
    JobTicket job = {};
    std::uint32_t meeting = 0; // that of both is the sum of theirs
    std::uint32_t reserved = 0;
  };
  static_assert(sizeof(Hello) == 280);
  using Bytes = std::array<std::byte, sizeof(Hello)>;

  // Move on as far as the socket lets them without waiting. False: not at the end yet.
  bool send();
  bool receive();

  int socket_;
  Bytes own_, theirs_;
  std::size_t sent_ = 0, received_ = 0;
  std::optional<base::Error> error_;
};

} // namespace macadam::boot
