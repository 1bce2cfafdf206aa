// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/messages/slots.h"

#include <cstdint>

// A ring between one sender and one receiver, in the receiver's segment. The sender needs no atomic
// operation and touches one line a message.
namespace macadam::net::shm {

// Stands in front of a ring's lines.
struct alignas(line_bytes) RingControl {
  std::atomic<std::uint64_t> head{0}; // lines that the receiver gave back
};
static_assert(sizeof(RingControl) == line_bytes);

constexpr std::size_t ring_bytes(std::uint64_t lines) {
  return sizeof(RingControl) + lines * line_bytes;
}

// A receiver gives lines back this many at a time, and a sender whose receiver has read them begins
// the ring anew: so processes that talk in turn keep to few lines, which stay in their caches, and
// a burst has the whole ring.
constexpr std::uint64_t lines_at_once(std::uint64_t size) {
  return size / 8;
}

class RingWriter {
 public:
  RingWriter() = default;
  // A ring whose lines are all zero.
  RingWriter(RingControl& control, std::uint64_t lines)
      : control_(&control), buffer_(&control + 1, lines) {}

  // Writes a message; false if there is no room now. `in_a_row`: the reader has sent nothing since
  // the message before.
  bool write(Kind kind, Mark mark, const MessageBody& body, bool in_a_row = true) {
    const std::uint32_t lines = lines_for(body.header_bytes + body.payload_bytes);
    const std::uint64_t gap =
        !in_a_row && may_begin_anew(lines) ? buffer_.left(tail_) : buffer_.gap(tail_, lines);
    if (!has_room(gap + lines)) [[unlikely]]
      return false;
    if (gap > 0) [[unlikely]] {
      fill(buffer_.at(tail_), Kind::pad, mark, {});
      publish(gap);
    }
    // publish() looks at the line behind: it comes while a long payload is copied.
    if (lines > lines_ahead) prefetch_to_write(&buffer_.at(tail_ + lines));
    Line& first = buffer_.at(tail_);
    fill(first, kind, mark, body);
    publish(lines);
    Line& ahead = buffer_.at(tail_ + lines_ahead);
    if (in_a_row) {
      if (kind == Kind::message) cldemote(&first);
      prefetch_to_write(&ahead); // so that a stream of messages finds its lines ready
    } else {
      // Time is left to hand on the whole message, and the reader may keep the line ahead: it need
      // not take it from us when it begins to poll it.
      for (std::uint32_t i = 0; i < lines; ++i)
        cldemote(&first + i);
      __builtin_prefetch(&ahead);
    }
    return true;
  }

  // Where the next message will stand, in lines since the beginning.
  [[nodiscard]] std::uint64_t position() const { return tail_; }
  // Whether so many messages of one line would find room.
  [[nodiscard]] bool has_room_for(std::uint64_t lines) { return has_room(lines); }

 private:
  static constexpr std::uint64_t lines_ahead = 4;

  // One line more than asked for, because publish() looks at the line behind.
  bool has_room(std::uint64_t lines) {
    if (tail_ + lines < head_ + buffer_.size) [[likely]]
      return true;
    head_ = control_->head.load(std::memory_order_acquire);
    return tail_ + lines < head_ + buffer_.size;
  }

  // Whether the receiver has given back so many lines of this lap that there is room for the next
  // message and, nearly, for lines_at_once(), even if it reads nothing for long.
  bool may_begin_anew(std::uint64_t lines) {
    const std::uint64_t begin = tail_ - buffer_.index(tail_);
    const std::uint64_t enough = begin + lines_at_once(buffer_.size);
    if (tail_ < enough) [[likely]]
      return false;
    head_ = control_->head.load(std::memory_order_acquire);
    return head_ >= enough && head_ > begin + lines;
  }

  // The receiver polls the line behind this message next. What we once wrote there must not pass
  // for a stamp.
  void publish(std::uint64_t lines) {
    const std::uint64_t next = tail_ + lines;
    const std::atomic_ref stale(buffer_.at(next).stamp);
    if (stale.load(std::memory_order_relaxed) == buffer_.stamp(next)) [[unlikely]] {
      stale.store(0, std::memory_order_relaxed);
    }
    buffer_.publish(tail_);
    tail_ = next;
  }

  RingControl* control_ = nullptr;
  CircularBuffer buffer_;
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0; // as last seen
};

class RingReader {
 public:
  RingReader() = default;
  RingReader(RingControl& control, std::uint64_t lines)
      : control_(&control), buffer_(&control + 1, lines) {}

  // The next message, null if there is none; it stays valid until pop().
  [[nodiscard]] const Line* next() const {
    return buffer_.stamped(position_) ? &buffer_.at(position_) : nullptr;
  }

  [[nodiscard]] bool holds(const Line& line) const { return buffer_.holds(position_, line); }

  // Where that stands.
  [[nodiscard]] std::uint64_t position() const { return position_; }

  void pop() {
    position_ += buffer_.lines_of(position_, buffer_.at(position_));
    if (position_ - given_back_ >= lines_at_once(buffer_.size)) give_back();
  }

  // Tells the sender how far its lines are free again; pop() does it now and then.
  void give_back() {
    given_back_ = position_;
    control_->head.store(position_, std::memory_order_release);
  }

 private:
  RingControl* control_ = nullptr;
  CircularBuffer buffer_;
  std::uint64_t position_ = 0;
  std::uint64_t given_back_ = 0;
};

} // namespace macadam::net::shm
