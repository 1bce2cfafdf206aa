// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

// What a rank says that it waits for, read from its text (hang_report.h).
namespace macadam::boot {

inline constexpr int any = -1; // rank or tag

// "2"; "1 of another job": hang_report.h says how these are numbered.
[[nodiscard]] inline std::string show_rank(int rank) {
  return rank < any ? fmt::format("{} of another job", -2 - rank) : fmt::format("{}", rank);
}

// A message or a receive as both sides name it.
struct Envelope {
  std::string comm;
  int peer = any;
  int tag = any;
  std::uint64_t bytes = 0;

  // A message of MPI's own: with a tag that users cannot give, or of a collective.
  [[nodiscard]] bool is_internal() const { return tag < any; }
  [[nodiscard]] bool is_of_collective() const { return comm.ends_with(" (collective)"); }
  [[nodiscard]] bool is_of_user() const { return !is_internal() && !is_of_collective(); }
  [[nodiscard]] std::string show_comm() const { return comm.empty() ? "" : " in " + comm; }
  [[nodiscard]] std::string show_tag() const {
    return tag == any ? "any tag" : fmt::format("tag {}", tag);
  }
  [[nodiscard]] std::string show_without_bytes() const {
    const std::string from = peer == any ? "any rank" : "rank " + show_rank(peer);
    return fmt::format("{}, {}{}", from, show_tag(), show_comm());
  }
  [[nodiscard]] std::string show() const {
    return fmt::format("{}, {} bytes", show_without_bytes(), bytes);
  }
};

struct Rendezvous {
  Envelope envelope;
  std::string protocol, stage;
  bool sending = false;
  bool tagged = false;   // the envelope's tag is known
  bool unmarked = false; // it is for the rank itself to mark partitions
};

struct Receive {
  Envelope envelope;
  bool announced = false;
  bool probe = false; // that waits; no receive
};

struct InCollective {
  std::uint64_t id = 0; // the communicator's
  std::string comm, function;
  std::uint32_t number = 0; // 0: not counted
  std::vector<int> members; // of the communicator; none: not known
  bool persistent = false;
};

// Locks of a window that a rank holds, by the rank that is locked, and the one that it waits for;
// and whose MPI_Win_post or MPI_Win_complete it waits for.
struct InWindow {
  std::uint64_t id = 0; // the window's
  std::string name;
  std::map<int, bool> holds; // exclusively
  int waits_for = any;
  std::vector<int> members;
  int post_of = any;
  std::vector<int> complete_of;
};

// One rank's text, read.
struct Waiting {
  std::string in, what;
  bool may_do_more = false;
  std::uint64_t moves = 0;
  std::vector<Receive> posted;
  std::vector<Envelope> unexpected;
  std::vector<Rendezvous> rendezvous;
  std::map<std::string, std::vector<int>> connections; // by state
  std::vector<InCollective> collectives;
  struct Called {
    std::uint32_t count = 0;
    std::string last;
  };
  std::map<std::uint64_t, Called> called; // collectives, by communicator
  std::vector<InWindow> windows;
  std::string damage; // why the text could not be read
};

// Never throws: Waiting::damage.
[[nodiscard]] Waiting read_waiting(const std::string& text);

} // namespace macadam::boot
