// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gravel/core.h"
#include "gravel/prove/network.h"
#include "gravel/prove/program.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace macadam::gravel {
class StateHash;
}

namespace macadam::gravel::prove {

// What can happen next in a run.
struct Event {
  enum class What : std::uint8_t {
    call,    // the process takes its next step
    deliver, // the process polls and is given `delivery`
    retry,   // the process polls, nothing has come: what was refused is tried again
    die,
  } what;
  int at;
  Delivery delivery{};
};

struct Key {
  std::uint64_t first = 0, second = 0;
  bool operator==(const Key&) const = default;
};

// One run of a program, every step of which is somebody's decision: real cores on the network, and
// an oracle that knows what each wait must find and what must be in memory then.
class Execution {
 public:
  // Both outlive the execution.
  Execution(const Program& program, Decider& decider);

  [[nodiscard]] const std::vector<Event>& possible();
  void happen(const Event& event);
  // Nothing can happen any more: looks whether all is in order.
  void finish();
  [[nodiscard]] const std::string& wrong() const { return network_.wrong(); }
  // A hash of everything that the future of the run depends on (state.cc): cores, memory, the
  // oracle, what is under way. Ids and addresses count as what they name.
  [[nodiscard]] Key key() const;
  [[nodiscard]] std::string show(const Event& event) const;

 private:
  friend class macadam::gravel::StateHash;

  // An entry that has come and that nobody has taken out.
  struct Announced {
    std::uint32_t notification; // which ledger
    int source;
    EntryKind kind;
    int tag;
    std::size_t bytes;
    std::uint64_t address;  // of the slot
    std::uint32_t uses;     // that are not taken: several of promised buffers
    std::uint32_t position; // in the ledger, since the start
    bool kept;              // outside of its slot
  };
  struct Awaited {
    std::uint64_t request = 0;
    const Step* step = nullptr; // that made it
    int peer = -1;
    bool over = false; // it was when it was begun, so there is no request
  };
  struct Taken {
    std::uint64_t buffer = 0;
    int peer = -1;
    std::uint64_t memory = 0;
    std::size_t ordinal = 0; // among the buffers of the same consumer and tag
    std::vector<const Step*> fragments;
    std::vector<std::byte> content; // of a send buffer, when it was announced
    int tag = 0;
  };
  struct Process final : boot::Job {
    Process(Execution& e, int r) : execution(e), number(r) {}
    [[nodiscard]] int rank() const override { return number; }
    [[nodiscard]] int size() const override {
      return static_cast<int>(execution.processes_.size());
    }
    [[nodiscard]] boot::Secret secret() const override { return {}; }
    [[nodiscard]] int cores() const override { return size(); }
    void publish(std::span<const std::byte>) override {}
    [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int) const override { return {}; }

    Execution& execution;
    const int number;
    std::unique_ptr<Core> core;
    std::array<std::byte, memory_bytes> memory{};
    std::array<bool, memory_bytes> known{};         // what must be there is known
    std::array<std::byte, memory_bytes> expected{}; // ... and is this
    std::size_t next = 0;
    std::array<Awaited, 16> awaited{};
    std::array<Taken, 16> taken{};
    std::array<int, 16> found{};
    std::vector<Announced> announced;
    std::map<std::pair<int, std::uint32_t>, std::uint32_t> arrived; // by source and ledger
    // By peer and tag: where the buffers were posted; how many were taken; and by ordinal, byte and
    // value, what was put into buffers that were promised and not posted yet.
    std::map<std::pair<int, int>, std::vector<std::size_t>> posted;
    std::map<std::pair<int, int>, std::size_t> takes;
    std::map<std::pair<int, int>, std::map<std::pair<std::size_t, std::size_t>, std::byte>> early;
    bool dead = false;
  };

  [[nodiscard]] bool may_call(const Process& process) const;
  [[nodiscard]] static const Announced* oldest(const Process& process, const Step& step);
  [[nodiscard]] bool may_fail(const Process& process, int peer) const;
  [[nodiscard]] static std::uint32_t oldest_in_ledger(const Process& process, int source,
                                                      std::uint32_t notification);
  void keep_all(Process& process, int source, std::uint32_t notification);
  void forget(Process& process, int peer);
  static void lose_sight(Process& process, const Step& made);
  void call(Process& process);
  void perform(Process& process, const Step& step);
  static void note_posted(Process& process, int producer, const Step& step);
  void take(Process& process, const Step& step);
  void move(Process& process, const Step& step);
  void wait(Process& process, const Step& step);
  void check_received(Process& process, const Step& made);
  void scribble(Process& process, std::size_t at, std::size_t bytes, std::byte with);
  void say(const Process& process, const std::string& what);

  const Program& program_;
  Network network_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<Event> events_;
  std::vector<Delivery> deliveries_;
  bool died_ = false;
};

} // namespace macadam::gravel::prove
