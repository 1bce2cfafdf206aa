// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/hang/hang_report.h"
#include "boot/job_memory.h"
#include "tools/mpiexec/frames.h"
#include "tools/mpiexec/input.h"
#include "tools/mpiexec/silence.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::tools {

using boot::RankStatus;

// The mpiexec that the user has started, as the proxy on a machine sees it. Here go what the ranks
// of this machine do and print, and from here come news of the others and orders.
//
// An endpoint address travels only when somebody wants it: what ranks here want of others is asked
// for once, and what others want of ranks here is answered when it is there.
class Head {
 public:
  using Clock = std::chrono::steady_clock;

  // What the proxy has to do.
  struct Order {
    enum class Kind { signal, ask, locate, end } kind;
    int signal = 0;
    bool with_stacks = false; // of `ask`
    std::vector<int> ranks{}; // to locate
  };

  explicit Head(FrameStream& stream) : stream_(stream) {}

  // Since when it is taken for gone if it says nothing, and when a beat is due.
  void expect(double silence_seconds);

  void list(std::vector<pollfd>& polled) const;
  static constexpr std::size_t polled_entries = 3;
  // Takes the answers of poll(), and what has come. Writes into `memory` what concerns it:
  // addresses and the end of a barrier.
  void take(const pollfd* polled, boot::JobMemory& memory);
  std::optional<Order> next_order();
  // It has ended, cannot be understood, or has said nothing for too long.
  [[nodiscard]] bool is_gone() const { return is_gone_; }
  [[nodiscard]] const Silence& silence() const { return silence_; }
  // When take() is to be called at the latest.
  [[nodiscard]] Clock::time_point due() const { return beat_; }

  // Tells how the ranks of this machine stand, as far as that has changed, and what they want.
  void exchange(boot::JobMemory& memory);
  struct Failure {
    int rank;             // of the first job; -1: none of it
    std::string sentence; // who did what
    int status;           // mpiexec's exit status
    bool ends_jobs;
    bool quiet;          // it was asked for
    bool counts = false; // among those of tell_others()
  };
  // How many ranks of spawned jobs run here.
  void tell_others(std::uint32_t ranks);
  // To and from other machines (relay.h).
  void send(FrameKind kind, const boot::PacketWriter& body);
  std::optional<Frame> next_relayed();
  void tell(const Failure& failure);
  void tell(const boot::JobMemory& memory, const std::vector<RankStatus>& statuses);
  // Where ranks are in their programs.
  void tell(const std::map<int, std::string>& stacks);
  void tell_report(int rank, std::string_view text);

  // What ranks have printed: so much can be taken now.
  [[nodiscard]] std::size_t room(int stream) const { return room_of(stream); }
  void write(int stream, std::string_view text);

  // Standard input of rank 0, if that is here.
  InputPipe& input() { return input_; }

  // The end: wait until all has been taken, or nobody takes it.
  void finish();
  // ... as what was wanted of this side cannot be had.
  void refuse(const std::string& why);

 private:
  struct Told {
    boot::RankState state = boot::RankState::starting;
    std::int32_t pid = 0;
    bool operator==(const Told&) const = default;
  };

  std::size_t& room_of(int stream) { return room_[stream == 1 ? 0 : 1]; }
  [[nodiscard]] std::size_t room_of(int stream) const { return room_[stream == 1 ? 0 : 1]; }
  void write_rest();
  void on_frame(Frame frame, boot::JobMemory& memory);
  void tell_rows(const boot::JobMemory& memory);
  void tell_wants(const boot::JobMemory& memory);
  void answer_wants(const boot::JobMemory& memory);

  FrameStream& stream_;
  bool is_gone_ = false;
  std::deque<Order> orders_;
  std::deque<Frame> relayed_;
  std::uint32_t others_ = 0; // as was told
  Clock::time_point beat_{};
  Silence silence_{2};
  bool stopped_ = false; // by SIGTSTP: the head is, too, and says nothing
  std::array<std::size_t, 2> room_{output_window, output_window};
  InputPipe input_;

  std::vector<Told> told_;                 // by place
  std::vector<std::uint64_t> asked_for_;   // as JobMemory::wanted()
  std::vector<std::uint32_t> wanted_here_; // ranks of this machine
  std::uint32_t arrived_ = 0;              // rounds of the barrier that were told

 public:
  static constexpr std::size_t output_window = 256 << 10; // not yet written, of each stream
  static constexpr std::size_t input_window = 64 << 10;   // not yet given to rank 0
};

} // namespace macadam::tools
