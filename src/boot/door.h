// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>

namespace macadam::boot {

// How a process that accepts at its port and one that connects to it meet without mpiexec: each has
// the other's memory, as their jobs know each other from before, or mpiexec has introduced the one
// that waits to the port's owner; and there a few words of its own. A process that cannot be met so
// goes elsewhere, to mpiexec, where all meet. tests/prove goes through every order of what follows.
//
// Nothing here waits, and whoever dies in between holds up nobody: the other one leaves when it
// likes, and what one has left in its own words is for itself to clear.

// Of the 128 random bits of a port's name: enough to tell ports apart, and too few to know one by.
struct PortMark {
  std::uint32_t first = 0, second = 0; // 30 bits each

  static PortMark of(const std::array<std::uint8_t, 16>& key) {
    PortMark mark;
    std::memcpy(&mark.first, key.data(), sizeof mark.first);
    std::memcpy(&mark.second, key.data() + sizeof mark.first, sizeof mark.second);
    mark.first >>= 2;
    mark.second >>= 2;
    return mark;
  }
};

struct Visitor {
  std::uint32_t job = 0; // number, of 23 bits
  std::uint32_t rank = 0;
};

// The words of a process.
struct Door {
  // Of who accepts here: its state in two bits; the port's mark and a count, or who knocks.
  std::atomic<std::uint64_t> word{0};
  // Of this process when it connects: its state in two bits, the port's mark, the meeting.
  std::atomic<std::uint64_t> question{0};
  // Processes that wait for this one at mpiexec, which says so.
  std::atomic<std::uint32_t> awaited{0};
  std::uint32_t turn = 0; // of its own: no two openings have the same word
};

enum class AtDoor : std::uint8_t { waits, met, elsewhere };

namespace door {

enum State : std::uint64_t { closed, open, knocked, gone };
// What is asked is answered once: by the port's owner, or by mpiexec, which then says the rest.
enum Question : std::uint64_t { none, asked, accepted, answered };

constexpr std::uint64_t state_of(std::uint64_t word) {
  return word & 3;
}
constexpr std::uint64_t open_word(PortMark port, std::uint32_t turn) {
  return std::uint64_t{turn} << 32 | std::uint64_t{port.first} << 2 | open;
}
constexpr std::uint64_t knock_word(Visitor visitor) {
  return std::uint64_t{visitor.rank} << 32 | std::uint64_t{visitor.job} << 2 | knocked;
}
constexpr std::uint64_t question_word(PortMark port, std::uint32_t meeting, Question question) {
  return std::uint64_t{meeting} << 32 | std::uint64_t{port.second} << 2 | question;
}

// Answers `visitor`, which asks at this port for this meeting. False if it does not ask any more.
inline bool answer(Door& visitor, PortMark port, std::uint32_t meeting, Question as) {
  std::uint64_t word = question_word(port, meeting, asked);
  return visitor.question.compare_exchange_strong(word, question_word(port, meeting, as),
                                                  std::memory_order_seq_cst);
}

} // namespace door

// The side that accepts. Its door was closed, and nobody else of its process uses it meanwhile.
class Accepting {
 public:
  Accepting(Door& own, PortMark port) : own_(own), port_(port) {
    own_.word.store(door::open_word(port, ++own_.turn), std::memory_order_seq_cst);
  }
  Accepting(const Accepting&) = delete;
  Accepting& operator=(const Accepting&) = delete;
  ~Accepting() { own_.word.store(door::closed, std::memory_order_seq_cst); }

  // `door_of` gives the door of a visitor that this process knows and that runs, or null.
  template <class DoorOf>
  AtDoor look(DoorOf&& door_of) {
    const std::uint64_t word = own_.word.load(std::memory_order_seq_cst);
    if (door::state_of(word) == door::open) return AtDoor::waits;
    if (door::state_of(word) == door::gone) return AtDoor::elsewhere;
    visitor_ = {static_cast<std::uint32_t>(word >> 2) & 0x7fffff,
                static_cast<std::uint32_t>(word >> 32)};
    if (answer(door_of(visitor_))) {
      own_.word.store(door::closed, std::memory_order_seq_cst);
      return AtDoor::met;
    }
    own_.word.store(door::gone, std::memory_order_seq_cst);
    return AtDoor::elsewhere;
  }
  // Waits here no more, unless somebody has come.
  template <class DoorOf>
  AtDoor leave(DoorOf&& door_of) {
    std::uint64_t word = door::open_word(port_, own_.turn);
    if (own_.word.compare_exchange_strong(word, door::gone, std::memory_order_seq_cst))
      return AtDoor::elsewhere;
    return look(door_of);
  }

  // Who was met, and the number of the meeting.
  [[nodiscard]] Visitor visitor() const { return visitor_; }
  [[nodiscard]] std::uint32_t meeting() const { return meeting_; }

 private:
  // False if the visitor is not known, or has gone.
  bool answer(Door* visitor) {
    if (visitor == nullptr) return false;
    const std::uint64_t word = visitor->question.load(std::memory_order_seq_cst);
    meeting_ = static_cast<std::uint32_t>(word >> 32);
    return door::answer(*visitor, port_, meeting_, door::accepted);
  }

  Door& own_;
  PortMark port_;
  Visitor visitor_;
  std::uint32_t meeting_ = 0;
};

// What a process that connects has to answer in its own words; nobody else of it asks meanwhile.
// `meeting` is a number of its own choice. mpiexec may answer too, if the process waits there.
class Asking {
 public:
  Asking(Door& own, PortMark port, std::uint32_t meeting)
      : own_(own), port_(port), meeting_(meeting) {
    own_.question.store(door::question_word(port, meeting, door::asked), std::memory_order_seq_cst);
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  ~Asking() { own_.question.store(door::none, std::memory_order_seq_cst); }

  // By the port's owner.
  [[nodiscard]] bool accepted() const {
    return own_.question.load(std::memory_order_seq_cst) ==
           door::question_word(port_, meeting_, door::accepted);
  }
  // Waits no more; false if the owner has accepted it.
  [[nodiscard]] bool leave() {
    std::uint64_t word = door::question_word(port_, meeting_, door::asked);
    return own_.question.compare_exchange_strong(word, door::none, std::memory_order_seq_cst) ||
           word != door::question_word(port_, meeting_, door::accepted);
  }

 private:
  Door& own_;
  PortMark port_;
  std::uint32_t meeting_;
};

// The side that connects. `self` is as the other one knows it; for the rest see Asking.
class Knocking {
 public:
  Knocking(Door& own, Door& theirs, PortMark port, Visitor self, std::uint32_t meeting)
      : own_(own), theirs_(theirs), port_(port), self_(self), meeting_(meeting) {}

  AtDoor look() {
    if (asking_) return hear();
    std::uint64_t word = theirs_.word.load(std::memory_order_seq_cst);
    if (door::state_of(word) == door::gone) return AtDoor::elsewhere;
    if (door::state_of(word) != door::open) return AtDoor::waits;
    if (word != door::open_word(port_, static_cast<std::uint32_t>(word >> 32)))
      return AtDoor::elsewhere; // it accepts at another port
    asking_.emplace(own_, port_, meeting_);
    if (!theirs_.word.compare_exchange_strong(word, door::knock_word(self_),
                                              std::memory_order_seq_cst))
      asking_.reset();
    return AtDoor::waits;
  }
  // Waits here no more, unless it was accepted.
  AtDoor leave() { return asking_ && !asking_->leave() ? AtDoor::met : AtDoor::elsewhere; }

 private:
  AtDoor hear() {
    if (asking_->accepted()) return AtDoor::met;
    // Who has opened its door again, or closed it, did so without an answer.
    const bool waits = theirs_.word.load(std::memory_order_seq_cst) == door::knock_word(self_);
    return waits ? AtDoor::waits : leave();
  }

  Door& own_;
  Door& theirs_;
  PortMark port_;
  Visitor self_;
  std::uint32_t meeting_;
  std::optional<Asking> asking_; // once it has knocked
};

} // namespace macadam::boot
