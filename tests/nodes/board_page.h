// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace macadam::test {

// What one machine of a job tells the others, as it is in its file: a head, then a row for each of
// its ranks.
struct PageHead {
  static constexpr std::uint64_t magic_value = 0x6d61636164616d62; // "macadamb"
  enum class Phase : std::uint32_t { running, failed, ended };

  std::uint64_t magic = magic_value;
  std::uint32_t head_bytes = sizeof(PageHead); // another build may differ
  std::uint32_t nodes = 0;
  std::uint32_t node = 0;
  std::uint32_t ranks = 0;
  std::uint32_t beat = 0;    // grows with each writing
  std::uint32_t arrived = 0; // rounds of the barrier in which all ranks here have arrived
  Phase phase = Phase::running;
  std::int32_t status = 0; // if it has failed: mpiexec's exit status
  boot::Secret secret = {};
  std::array<char, 64> host = {};
  std::array<char, 256> sentence = {}; // why it has failed
};

struct PageRow {
  boot::RankState state = boot::RankState::starting;
  std::int32_t pid = 0;
  std::uint32_t published = 0;
  std::uint32_t endpoint_address_used = 0;
  std::array<std::byte, boot::endpoint_address_bytes> endpoint_address = {};
  bool operator==(const PageRow&) const = default;
};

struct Page {
  PageHead head;
  std::vector<PageRow> rows;
};

} // namespace macadam::test
