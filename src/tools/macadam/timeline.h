// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/trace_file.h"
#include "tools/macadam/clocks.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace macadam::tools {

// What one rank has left: boot/trace_file.h, read.
struct RankTrace {
  std::uint32_t job = 0;
  int rank = 0, size = 0;
  std::string host, clock;
  double now = 0, wall = 0;
  std::uint64_t lost = 0;
  nlohmann::json header;
  std::vector<boot::TraceRecord> records;
};

// Throws std::runtime_error.
RankTrace read_rank(const std::string& file);
// Puts all its times on another clock.
void set_clock(RankTrace& rank, const ClockLine& line);

// A message of which both ends were noted: ranks by their place in the list, and records there.
struct Message {
  std::size_t sender = 0, receiver = 0;
  std::size_t sent = 0, seen = 0;
};
std::vector<Message> find_messages(const std::vector<RankTrace>& ranks);

struct TimelineSize {
  double seconds = 0;
  std::uint64_t calls = 0, steps = 0, pauses = 0, in_pauses = 0;
};

// The ranks, whose times are of one clock, in the Trace Event Format (JSON).
TimelineSize write_timeline(std::ostream& out, const std::vector<RankTrace>& ranks,
                            const std::vector<Message>& messages);

} // namespace macadam::tools
