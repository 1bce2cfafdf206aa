// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/comm.h"
#include "engine/observer.h"
#include "engine/transport.h"

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace macadam::mpi {

// Where the time of a process went and what it sent to whom, for the report. There is one while a
// report is wanted. Memory: one row for each function that was called and each peer talked to.
class Profile final : public engine::Observer, public coll::WaitObserver {
 public:
  // What ended a wait inside MPI.
  enum class Cause : std::uint8_t { none, late_sender, late_receiver, collective };
  static constexpr std::size_t causes = 4;

  // A call of MPI that is under way: lives in its entry point.
  struct Call {
    Call* outer; // that this one was made in, by a callback of the program's
    const char* function;
    double begun; // below 0: not to be counted
    // When the last thing came that somebody may have waited for; and of all of them, whose was
    // waited for longest.
    double ended;
    double longest;
    engine::Rank peer;
    Cause cause;
  };
  struct Function {
    std::uint64_t calls = 0;
    double seconds = 0;
  };
  struct Waits {
    std::uint64_t times = 0;
    double seconds = 0;
  };
  struct Peer {
    std::uint64_t messages = 0, bytes = 0; // sent to it
    std::uint64_t successive = 0; // short ones among them, each sent right after another to it
    std::uint64_t successive_bytes = 0;
    std::array<Waits, causes> waits = {}; // by Cause
  };
  // Messages by the number of binary digits of their length in bytes.
  static constexpr std::size_t sizes = 65;
  using Sizes = std::array<std::array<std::uint64_t, engine::protocols>, sizes>;

  // A message that could as well have been part of another one.
  static constexpr std::uint64_t short_message = 1024; // bytes
  // A wait of less is none: seconds.
  static constexpr double shortest_wait = 1e-6;

  // Time runs, by the clock of this transport; until stop() nothing else than that may end it.
  void start(const engine::Transport& clock);
  void stop() { clock_ = nullptr; }

  // Of an earlier instance, except for the call under way.
  void forget();

  void enter(Call& call, const char* function) noexcept;
  void leave(Call& call) noexcept;
  // The call under way, if any, while its thread has let the library's lock go and others make
  // theirs.
  Call* suspend() { return std::exchange(current_, nullptr); }
  void resume(Call* call) { current_ = call; }

  void on_step(const engine::Step& step) noexcept override;
  void on_word(engine::Rank peer) noexcept override { on_end(peer, Cause::collective); }

  // The call under way, if any, counts up to now.
  void close();
  [[nodiscard]] double seconds() const { return clock_ == nullptr ? 0 : clock_->now() - begun_; }
  // Functions by name; the addresses of equal names may differ.
  [[nodiscard]] const std::unordered_map<const char*, Function>& functions() const {
    return functions_;
  }
  [[nodiscard]] const std::unordered_map<engine::Rank, Peer>& peers() const { return peers_; }
  [[nodiscard]] const Sizes& sent() const { return sent_; }

 private:
  void count(const Call& call, double now);
  void on_sent(const engine::Step& step);
  void on_end(engine::Rank peer, Cause cause) noexcept; // of a wait, maybe

  const engine::Transport* clock_ = nullptr;
  double begun_ = 0;
  bool has_begun_ = false;
  Call* current_ = nullptr;
  std::unordered_map<const char*, Function> functions_;
  std::unordered_map<engine::Rank, Peer> peers_;
  Sizes sent_ = {};
  // The last message, if the same function has been called since and nothing has come meanwhile.
  const char* last_function_ = nullptr;
  engine::Rank last_peer_ = 0;
  bool last_was_short_ = false;
};

} // namespace macadam::mpi
