// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"

#include <utility>

// What the library's own work costs a simulated rank, beside what its device charges: its copies
// (base/copy.h), its messages and its calls.
namespace macadam::sim {

class Rank;

// The program that runs is in a function of the process's, called at an address of the program:
// between two of them it computes, which is measured or repeated where that is asked for
// (ComputeTimes).
class Away {
 public:
  explicit Away(const void* place);
  ~Away();
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;

 protected:
  Rank* rank_;
};

// One call of MPI or Gravel, which costs Model::call_ns.
class Call : Away {
 public:
  explicit Call(const void* place);
};

// What a transport delivers, on its way to the engine: each message costs Model::matching_ns.
class ChargedSink final : public engine::Sink {
 public:
  explicit ChargedSink(engine::Sink& engine) : engine_(engine) {}

  void on_message(engine::Rank source, const std::byte* message,
                  std::size_t bytes) noexcept override {
    charge();
    engine_.on_message(source, message, bytes);
  }
  void on_first_fragment(engine::Rank source, const std::byte* fragment, std::size_t bytes,
                         std::size_t rest) noexcept override {
    charge();
    engine_.on_first_fragment(source, fragment, bytes, rest);
  }
  void on_next_fragment(engine::Rank source, const std::byte* fragment,
                        std::size_t bytes) noexcept override {
    engine_.on_next_fragment(source, fragment, bytes);
  }
  // Nothing to match: the notification says which request it is of.
  void on_put(engine::Rank source, std::uint32_t notification,
              std::size_t bytes) noexcept override {
    engine_.on_put(source, notification, bytes);
  }
  void on_complete(std::uint64_t cookie, bool ok) noexcept override {
    engine_.on_complete(cookie, ok);
  }
  void on_peer(engine::Rank peer, engine::PeerState state) noexcept override {
    engine_.on_peer(peer, state);
  }
  void on_failure(base::Error&& why) noexcept override { engine_.on_failure(std::move(why)); }

 private:
  static void charge() noexcept;
  engine::Sink& engine_;
};

// Does not return in a rank that has been killed.
void end_if_killed();

// A transport of a rank.
template <class Transport>
class Charged final : public Transport {
 public:
  using Transport::Transport;
  bool poll(engine::Sink& sink) noexcept override {
    ChargedSink charged(sink);
    return Transport::poll(charged);
  }
  bool idle(unsigned fruitless, unsigned longest_us) override {
    end_if_killed();
    return Transport::idle(fruitless, longest_us);
  }
};

} // namespace macadam::sim
