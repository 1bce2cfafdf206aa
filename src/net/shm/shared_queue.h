// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/slots.h"

#include <cstdint>
#include <span>

// The shared receive queue: every local peer writes into it, its owner reads. Senders take lines by
// moving `tail`; the reader gives lines back by moving `head`, a quarter of the queue at a time.
//
// A sender that is killed between taking lines and publishing what stands there leaves lines that
// nobody fills. So each says before which ones it is about to take (Intent). If the reader stands
// before lines that were taken and not published, and no process that runs has said that it takes
// them, then one that has ended did, and the reader leaves them out.
namespace macadam::net::shm {

// What a sender is about to take, or took last. In a line of its own for each local process.
struct alignas(line_bytes) Intent {
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

 private:
  static constexpr unsigned count_bits = 8;
  static_assert(lines_for(longest_inline) < 1u << count_bits);

  std::atomic<std::uint64_t> word{0};
};
static_assert(sizeof(Intent) == line_bytes);

// Behind the header of a segment, before the queue.
inline constexpr std::uint64_t intents_offset = sizeof(SegmentHeader);
[[nodiscard]] inline std::span<Intent> intents_in(std::byte* front, unsigned local_size) {
  return {reinterpret_cast<Intent*>(front + intents_offset), local_size};
}

// A peer's end of the queue, or the owner's own for messages to itself.
class SharedQueueWriter {
 public:
  SharedQueueWriter() = default;
  // `intent` is this process's, for this queue.
  SharedQueueWriter(SegmentHeader& header, CircularBuffer buffer, Intent& intent)
      : header_(&header), buffer_(buffer), intent_(&intent) {}

  // Writes a message; false if there is no room now.
  bool write(Kind kind, Rank source, const MessageBody& body) {
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
        if (stated) intent_->withdraw(); // somebody else has taken those lines
        return false;
      }
      intent_->state({position, lines});
      // A process that sees the lines taken sees the intent too.
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
  Intent* intent_ = nullptr;
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

  // Leaves out lines of a process that has ended. `runs(i)`: the i-th of the processes, whose
  // intents these are, may run. True if there were any.
  template <class Runs>
  bool leave_out_abandoned(std::span<const Intent> intents, Runs&& runs) {
    if (taken() <= position_) return false;
    std::uint64_t end = position_;
    for (std::size_t i = 0; i < intents.size(); ++i) {
      const std::uint64_t its_end = end_of(intents[i]);
      if (its_end == position_) continue;
      if (runs(i)) return false;
      // Of two that ended at this very step nothing tells which of them took the lines.
      if (end != position_ && end != its_end) return false;
      end = its_end;
    }
    // A sender that has published in the meantime may have stated other lines by now.
    if (buffer_.stamped(position_)) return false;
    advance(end, position_);
    return true;
  }

 private:
  // The end of what an intent is about if the reader stands there, before the message or the gap
  // in front of it; or else where it stands.
  [[nodiscard]] std::uint64_t end_of(const Intent& intent) const {
    const auto [position, count] = intent.lines();
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
      if (word == buffer_.stamp(unstamped) + 1) [[unlikely]]
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
