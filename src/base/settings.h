// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace macadam::base {

// Which networks connect the ranks: shared memory within a machine and the best there is between
// machines; or one everywhere: RDMA adapters, or a provider of libfabric.
enum class NetworkChoice : std::int64_t { automatic, shm, rdma, ofi };

// Which protocols are used: those of the papers, or the traditional ones that they compare with
// (eager and sender-initiated rendezvous; one-sided accesses by messages that the target serves).
enum class Protocols : std::int64_t { customized, sender };
// How a sender-initiated rendezvous moves its data (Small & Yuan, Figure 2).
enum class Rendezvous : std::int64_t { read, write };
// How shared memory moves a large message between two address spaces.
enum class CopyPath : std::int64_t { automatic, cma, pipeline };

// When processes connect over RDMA: at the first message (Wu et al.), or all pairs at start-up, at
// once or one after the other in the order of ranks (what that paper compares with).
enum class ConnectMode : std::int64_t { on_demand, all, serial };
// How messages find memory at their receiver over RDMA (Sur et al.): receives shared by all
// connections, or per connection with a window, or a ring per connection written by RDMA; or mixed:
// shared, with rings for the peers that talk most.
enum class ReceiveMode : std::int64_t { shared, credit, ring, mixed };

// Every setting of the library, declared once here and described once in settings.cc. A row gives
// the MACADAM_* variable, the MPI_T control variable and the line in `macadam info`.
struct Settings {
  NetworkChoice network = NetworkChoice::automatic;
  std::string net_interface; // for libfabric: an interface or an IP address; empty: the best
  Protocols protocols = Protocols::customized;
  Rendezvous rendezvous = Rendezvous::read;
  bool last_byte = false;              // a write is complete when its last byte is seen
  std::int64_t shm_eager = 128 << 10;  // bytes
  std::int64_t shm_hybrid = 256 << 10; // bytes
  CopyPath shm_copy = CopyPath::automatic;
  std::int64_t shm_queue = 256 << 10; // bytes of the shared receive queue
  std::int64_t shm_rings = 8;         // rings a process gives at most
  std::string rdma_device;            // "name[:port[:gid index]]"; empty: the best
  ConnectMode rdma_connections = ConnectMode::on_demand;
  ReceiveMode rdma_receive = ReceiveMode::shared;
  std::int64_t rdma_eager = 8 << 10;  // bytes
  std::int64_t rdma_hybrid = -1;      // bytes; -1: by what the adapter costs
  std::int64_t rdma_buffers = 4096;   // buffers of the pool at most
  std::int64_t rdma_shared = 512;     // receives kept posted to the shared queue
  std::int64_t rdma_watermark = 300;  // of these left when the progress thread posts more; 0: never
  std::int64_t rdma_window = 32;      // messages under way per connection: credit, ring
  std::int64_t rdma_queue_pairs = -1; // at most; -1: what the adapter has
  std::int64_t rdma_send_depth = 64;  // requests in the send queue of a connection
  std::int64_t rdma_cache = 1 << 30;  // bytes that stay registered after their use
  std::string rdma_driver;            // bytes that the driver holds (net/rdma/model.h)
  std::string levels; // rules of collectives for several machines (coll/level_rules.h)
  std::int64_t tags_per_peer = 128;         // ordinals kept per peer
  std::int64_t unexpected_limit = 64 << 20; // bytes of unexpected eager data in a process
  std::int64_t spin = -1;                   // microseconds before yielding; -1: by ranks per core
  std::int64_t buffered = 16 << 20;         // bytes of automatic buffers for buffered sends
  bool check = false;
  bool reproducible = false;
  std::string report = "no"; // "yes", or the file to write it to
  std::string trace;         // the folder to write it to; empty: none

  // No variable of users': tests take other values.
  std::int64_t shm_ring = 256 << 10; // bytes of one ring
  std::int64_t shm_ring_after = 16;  // messages of a peer before it may get a ring
  std::int64_t rdma_rnr_retries = 7; // resends to a peer without receives, 0 to 6; 7: for ever
};

// The values of `report`: whether there is to be one, and whether in a file.
[[nodiscard]] inline bool is_report_wanted(const Settings& settings) {
  return settings.report != "no";
}
[[nodiscard]] inline bool is_report_a_file(const Settings& settings) {
  return settings.report.ends_with(".json");
}

using SettingValue =
    std::variant<bool Settings::*, std::int64_t Settings::*, std::string Settings::*,
                 NetworkChoice Settings::*, Protocols Settings::*, Rendezvous Settings::*,
                 CopyPath Settings::*, ConnectMode Settings::*, ReceiveMode Settings::*>;

inline constexpr std::size_t longest_text = 255; // characters of a setting that is text

// When a setting can be changed: until the library starts, or at any time, for this process alone.
enum class Changeable : std::uint8_t { before_start, always };

// One setting as users see it. `name` without MACADAM_, lower case; `choices` for the enumerations,
// in the order of their values.
struct SettingRow {
  const char* name;
  SettingValue value;
  // "bytes", "us", "count", "text", "", "yes|no|file.json" or choices "customized|sender"
  const char* unit;
  const char* help; // one line
  Changeable changeable = Changeable::before_start;
};

// All settings, in the order in which they are shown.
std::span<const SettingRow> setting_rows();

// Sets one setting from text ("64K", "2M", "yes", "sender"). Throws MPI_ERR_ARG naming the
// variable, the text found and what is needed.
void set(Settings& settings, const SettingRow& row, const std::string& text);

// The value as text that set() would take.
std::string show(const Settings& settings, const SettingRow& row);

// Reads every MACADAM_* variable of `environment` (null-terminated, as `environ`) into `settings`.
// Returns warnings: misspelt variables with the nearest name, values that were refused. Variables
// that belong to other parts (MACADAM_JOB, ...) are given in `reserved`.
std::vector<std::string> read_environment(Settings& settings, const char* const* environment,
                                          std::span<const char* const> reserved);

} // namespace macadam::base
