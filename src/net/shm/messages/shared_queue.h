// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/messages/slots.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

// The shared receive queue: every local peer writes into it, its owner reads. Senders take lines by
// moving `tail`; the reader gives lines back by moving `head`, a quarter of the queue at a time.
//
// A sender that is killed between taking lines and publishing what stands there leaves lines that
// nobody fills. So each says before which ones it is about to take (Seat). If the reader stands
// before lines that were taken and not published, and no process that runs has said that it takes
// them, then one that has ended did, and the reader leaves them out.
namespace macadam::net::shm {

// A process's place in the segment of another, in a line of its own: who it is, and what it is
// about to take, or took last. Its number there is how the two speak of the writer. When the two
// have parted another process may have it.
struct alignas(line_bytes) Seat {
  struct Lines {
    std::uint64_t position = 0;
    std::uint32_t count = 0; // of the message, without a gap before it; 0: none
  };

  void state(Lines lines) {
    word.store(lines.position << count_bits | lines.count, std::memory_order_relaxed);
  }
  // Nothing was taken.
  void withdraw() { word.store(0, std::memory_order_relaxed); }
  [[nodiscard]] Lines lines() const {
    const std::uint64_t stated = word.load(std::memory_order_acquire);
    return {stated >> count_bits, static_cast<std::uint32_t>(stated & ((1u << count_bits) - 1))};
  }

  // For one process; false if it is another's.
  [[nodiscard]] bool take() {
    State seen = State::free;
    return state_.load(std::memory_order_relaxed) == seen &&
           state_.compare_exchange_strong(seen, State::taken, std::memory_order_acquire);
  }
  void name(boot::ProcessName its) {
    name_ = its;
    state_.store(State::named, std::memory_order_release);
  }
  // Nothing: the process has not come so far.
  [[nodiscard]] std::optional<boot::ProcessName> name() const {
    const State now = state_.load(std::memory_order_acquire);
    if (now == State::free || now == State::taken) return std::nullopt;
    return name_;
  }
  // The owner's: lets the process begin no access to its memory any more (access.h).
  void bar() { barred_.store(true, std::memory_order_seq_cst); }
  // Whether one goes on. A process that was killed in one leaves it so.
  [[nodiscard]] bool accesses() const { return accesses_.load(std::memory_order_seq_cst); }

  // The last that its process does here; and what the owner of the segment does then.
  void leave() { state_.store(State::left, std::memory_order_release); }
  [[nodiscard]] bool was_left() const {
    return state_.load(std::memory_order_acquire) == State::left;
  }
  void give_to_others() {
    withdraw();
    barred_.store(false, std::memory_order_relaxed);
    accesses_.store(false, std::memory_order_relaxed);
    state_.store(State::free, std::memory_order_release);
  }

 private:
  static constexpr unsigned count_bits = 8;
  static_assert(lines_for(longest_inline) < 1u << count_bits);

  enum class State : std::uint32_t { free, taken, named, left };
  friend class Access;

  std::atomic<std::uint64_t> word{0};
  boot::ProcessName name_;
  std::atomic<State> state_{State::free};
  std::atomic<bool> accesses_{false}; // see access.h
  std::atomic<bool> barred_{false};
};
static_assert(sizeof(Seat) == line_bytes);

// Behind the header of a segment, before the queue.
inline constexpr std::uint64_t seats_offset = sizeof(SegmentHeader);
[[nodiscard]] inline std::span<Seat> seats_in(std::byte* front, std::uint32_t seats) {
  return {reinterpret_cast<Seat*>(front + seats_offset), seats};
}

// Takes a seat in a segment, whose header is sound, for a process; gives its number. Nothing if all
// are taken.
inline std::optional<std::uint32_t> take_seat(std::byte* front, boot::ProcessName its) {
  auto& header = *reinterpret_cast<SegmentHeader*>(front);
  const std::span<Seat> seats = seats_in(front, header.seats);
  for (std::uint32_t place = 0; place < header.seats; ++place) {
    if (!seats[place].take()) continue;
    std::uint32_t end = header.seats_taken.load(std::memory_order_relaxed);
    while (end <= place &&
           !header.seats_taken.compare_exchange_weak(end, place + 1, std::memory_order_relaxed))
      continue;
    seats[place].name(its);
    return place;
  }
  return std::nullopt;
}

// A peer's end of the queue, or the owner's own for messages to itself.
class SharedQueueWriter {
 public:
  SharedQueueWriter() = default;
  // `seat` is this process's, for this queue.
  SharedQueueWriter(SegmentHeader& header, CircularBuffer buffer, Seat& seat)
      : header_(&header), buffer_(buffer), seat_(&seat) {}

  // Writes a message; false if there is no room now. `source` is the number of the seat.
  bool write(Kind kind, std::uint32_t source, const MessageBody& body) {
    std::uint64_t position = 0;
    std::uint64_t gap = 0;
    if (!take(lines_for(body.header_bytes + body.payload_bytes), position, gap)) [[unlikely]]
      return false;
    if (gap > 0) [[unlikely]] {
      fill(buffer_.at(position), Kind::pad, {source}, {});
      buffer_.publish(position);
      position += gap;
    }
    fill(buffer_.at(position), kind, {source}, body);
    buffer_.publish(position);
    return true;
  }

  // The first half of that: takes lines at a position, and as many before them as do not fit there
  // in a row.
  bool take(std::uint32_t lines, std::uint64_t& position, std::uint64_t& gap) {
    position = header_->tail.load(std::memory_order_relaxed);
    for (bool stated = false;; stated = true) {
      gap = buffer_.gap(position, lines);
      if (!has_room(position + gap + lines)) [[unlikely]] {
        if (stated) seat_->withdraw(); // somebody else has taken those lines
        return false;
      }
      seat_->state({position, lines});
      // A process that sees the lines taken sees the statement too.
      if (header_->tail.compare_exchange_weak(position, position + gap + lines,
                                              std::memory_order_release))
        return true;
    }
  }

 private:
  // The tail may be older than the head: then the difference is negative and taking lines fails.
  bool has_room(std::uint64_t end) {
    const auto used = [&] { return static_cast<std::int64_t>(end - head_); };
    const auto size = static_cast<std::int64_t>(buffer_.size);
    if (used() <= size) [[likely]]
      return true;
    head_ = header_->head.load(std::memory_order_acquire);
    return used() <= size;
  }

  SegmentHeader* header_ = nullptr;
  CircularBuffer buffer_;
  Seat* seat_ = nullptr;
  std::uint64_t head_ = 0; // as last seen
};

// The owner's end.
class SharedQueueReader {
 public:
  SharedQueueReader() = default;
  SharedQueueReader(SegmentHeader& header, CircularBuffer buffer)
      : header_(&header), buffer_(buffer) {}

  // The next message, null if there is none; it stays valid until pop().
  [[nodiscard]] const Line* next() const {
    return buffer_.stamped(position_) ? &buffer_.at(position_) : nullptr;
  }

  // See CircularBuffer. A message of one line needs not be looked at.
  [[nodiscard]] bool holds(const Line& line) const { return buffer_.holds(position_, line); }

  void pop() {
    const std::uint64_t first = position_;
    advance(first + buffer_.lines_of(first, buffer_.at(first)), first + 1);
  }

  // Where the next message will stand, and the end of all that senders have taken so far.
  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t taken() const {
    return header_->tail.load(std::memory_order_acquire);
  }

  // Leaves out lines of a process that has ended. `runs(i)`: the process of the i-th
  // of these seats may run. True if there were any.
  template <class Runs>
  bool leave_out_abandoned(std::span<const Seat> seats, Runs&& runs) {
    if (taken() <= position_) return false;
    std::uint64_t end = position_;
    for (std::size_t i = 0; i < seats.size(); ++i) {
      const std::uint64_t its_end = end_of(seats[i]);
      if (its_end == position_) continue;
      if (runs(i)) return false;
      // If two ended at this very step, nothing tells which of them took the lines.
      if (end != position_ && end != its_end) return false;
      end = its_end;
    }
    // A sender that has published in the meantime may have stated other lines by now.
    if (buffer_.stamped(position_)) return false;
    advance(end, position_);
    return true;
  }

 private:
  // The end of what a seat states if the reader stands there, before the message or the gap
  // in front of it; or else where it stands.
  [[nodiscard]] std::uint64_t end_of(const Seat& seat) const {
    const auto [position, count] = seat.lines();
    const std::uint64_t message = position + buffer_.gap(position, count);
    const bool there = count > 0 && (position == position_ || message == position_);
    return there ? message + count : position_;
  }

  // `unstamped`: the first line that bears no stamp of this lap.
  void advance(std::uint64_t end, std::uint64_t unstamped) {
    // Another sender may take the line behind its own at any time, so only the reader can keep
    // stale data from passing for a stamp. It looks (the data are in its cache), it hardly ever
    // writes.
    for (; unstamped < end; ++unstamped) {
      std::uint32_t& word = buffer_.at(unstamped).stamp;
      if (word == buffer_.stamp(unstamped + buffer_.size)) [[unlikely]]
        word = 0;
    }
    position_ = end;
    if (position_ - given_back_ >= buffer_.size / 4) {
      given_back_ = position_;
      header_->head.store(position_, std::memory_order_release);
    }
  }

  SegmentHeader* header_ = nullptr;
  CircularBuffer buffer_;
  std::uint64_t position_ = 0;
  std::uint64_t given_back_ = 0;
};

} // namespace macadam::net::shm
