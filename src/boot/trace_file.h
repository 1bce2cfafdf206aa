// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace macadam::boot {

// One line of a timeline as MACADAM_TRACE keeps it in memory and in its files: a call of MPI, a
// step of a message, or a pause in which the process did more than could be noted. Times are
// seconds of the process's monotonic clock.
struct TraceRecord {
  double at = 0;
  double until = 0;            // of calls and pauses
  std::uint64_t context = 0;   // of steps: the communicator
  std::uint64_t bytes = 0;     // of the message; of a pause, all that was sent in it
  std::uint64_t ordinal = 0;   // of the message on its channel, see engine::Step; of a pause, how
                               // many messages were sent in it
  std::uint64_t operation = 0; // ditto
  std::uint32_t peer = 0;
  std::int32_t tag = 0;
  std::uint32_t name = 0; // of the function, or of the step, in the header's lists
  enum class Kind : std::uint8_t { call, step, pause } kind = Kind::call;
  std::uint8_t protocol = 0;
  std::uint16_t thread = 0; // which made the call, counted from 0
};
static_assert(sizeof(TraceRecord) == 64 && std::is_trivially_copyable_v<TraceRecord>);

// The file of a process: one line, a JSON object, then the records as they lie in memory.
//
//   {"macadam": "trace", "record_bytes": 64, "records": 1200, "lost": 0,
//    "job": 1234, "rank": 0, "size": 4, "host": "a",
//    "clock": "a",                  ranks with the same word here read one clock
//    "now": 12.5, "wall": 1.7e9,    that clock, and the time of day, when the file was written
//    "functions": ["MPI_Send", ...], "steps": ["sent", ...], "protocols": ["EAGER", ...],
//    "communicators": [{"id": 4294967296, "name": "MPI_COMM_WORLD"}, ...],
//    "network": [{"at": 12.25, "what": "shared receives ran low", "count": 256}, ...],
//    "under_way": [{"name": "MPI_Finalize", "at": 12.0, "thread": 0}, ...]}
//
// `lost`: older records that the ring has no room for.
struct Trace {
  std::string header; // that line
  std::vector<TraceRecord> records;
};

// `folder/JOB.RANK.trace`; the folder is made if it is not there. Returns what went wrong, or
// nothing.
std::string write_trace(const std::string& folder, std::uint32_t job, int rank,
                        const std::string& header, std::span<const TraceRecord> older,
                        std::span<const TraceRecord> newer);

// Throws std::runtime_error that names the file if it is none, or cut short.
Trace read_trace(const std::string& file);

} // namespace macadam::boot
