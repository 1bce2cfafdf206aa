// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/ranks.h"

#include <chrono>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::tools {

class Head;

// A descriptor of mpiexec's own that it writes to. It never waits for the reader, as mpiexec heeds
// no signal while it writes: what does not go at once is kept and goes later. If nobody reads any
// more, mpiexec ends as any filter does (SIGPIPE).
class Outlet {
 public:
  explicit Outlet(int fd);
  // One of a proxy: what is written goes to that stream of the first mpiexec (head.h).
  Outlet(Head& head, int stream) : fd_(stream), piece_(bound), head_(&head) {}

  void append(std::string_view text);
  [[nodiscard]] bool has_pending() const { return !pending_.empty(); }
  // So much is kept that its sources should wait.
  [[nodiscard]] bool is_full() const { return pending_.size() >= bound; }
  // The one entry to poll.
  [[nodiscard]] pollfd polled() const { return {has_pending() && !head_ ? fd_ : -1, POLLOUT, 0}; }
  // Writes what goes without waiting.
  void write_some();
  // Of the first write that failed, with which text was lost; 0: none has.
  [[nodiscard]] int error() const { return error_; }

 private:
  static constexpr std::size_t bound = 1 << 20;

  void write_to_head();

  int fd_;
  std::size_t piece_; // that goes without waiting whenever the descriptor is writable
  std::string pending_;
  int error_ = 0;
  Head* head_ = nullptr;
};

// Takes the ranks' output and writes it on: under the -l option every line with its rank before it.
// Lines are written whole, so those of different ranks never mix; one longer than 1 MiB is cut.
// What has no label and no end of line goes after a moment: it may be a prompt.
class RankOutput {
 public:
  using Clock = std::chrono::steady_clock;

  RankOutput(Outlet& out, Outlet& error) : out_(out), error_(error) {}
  RankOutput(const RankOutput&) = delete;
  RankOutput& operator=(const RankOutput&) = delete;
  ~RankOutput();

  // Makes the pipes of one rank and puts their writing ends into `streams`, for the caller to close
  // once the rank has started. `label` stands before its lines; empty: none. Throws
  // std::system_error.
  void add(const std::string& label, Streams& streams);

  // Appends what to poll, and takes the answer: as many entries from `first` on.
  void list(std::vector<pollfd>& polled) const;
  void take(const pollfd* first);
  // When take() has something to do at the latest.
  [[nodiscard]] std::optional<Clock::time_point> due() const;
  // Takes what is left, without waiting for more.
  void drain();

 private:
  struct Pipe {
    int fd; // the reading end; -1 at the end of the stream
    Outlet* target;
    std::string label;
    std::string line;         // begun and not ended
    Clock::time_point read{}; // the last time
  };

  // Reads once; false if there was nothing.
  static bool read_some(Pipe& pipe);
  [[nodiscard]] static std::optional<Clock::time_point> due(const Pipe& pipe);

  Outlet& out_;
  Outlet& error_;
  std::vector<Pipe> pipes_;
};

} // namespace macadam::tools
