// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/slots.h"

#include <cstdint>

// The shared receive queue: every local peer writes into it, its owner reads. Senders take lines by
// moving `tail`; the reader gives lines back by moving `head`, a quarter of the queue at a time.
namespace macadam::net::shm {

// A peer's end of the queue, or the owner's own for messages to itself.
class SharedQueueWriter {
 public:
  SharedQueueWriter() = default;
  SharedQueueWriter(SegmentHeader& header, Lane lane) : header_(&header), lane_(lane) {}

  // Writes a message; false if there is no room now.
  bool write(Kind kind, Rank source, const Parts& parts) {
    const std::uint32_t lines = lines_for(parts.header_bytes + parts.payload_bytes);
    std::uint64_t position = header_->tail.load(std::memory_order_relaxed);
    std::uint64_t gap = 0;
    do {
      gap = lane_.gap(position, lines);
      if (!has_room(position + gap + lines)) [[unlikely]]
        return false;
    } while (!header_->tail.compare_exchange_weak(position, position + gap + lines,
                                                  std::memory_order_relaxed));
    if (gap > 0) [[unlikely]] {
      fill(lane_.at(position), Kind::pad, {source}, {});
      lane_.publish(position);
      position += gap;
    }
    fill(lane_.at(position), kind, {source}, parts);
    lane_.publish(position);
    return true;
  }

 private:
  // The tail may be older than the head: then the difference is negative and taking lines fails.
  bool has_room(std::uint64_t end) {
    const auto used = [&] { return static_cast<std::int64_t>(end - head_); };
    const auto size = static_cast<std::int64_t>(lane_.size);
    if (used() <= size) [[likely]]
      return true;
    head_ = header_->head.load(std::memory_order_acquire);
    return used() <= size;
  }

  SegmentHeader* header_ = nullptr;
  Lane lane_;
  std::uint64_t head_ = 0; // as last seen
};

// The owner's end.
class SharedQueueReader {
 public:
  SharedQueueReader() = default;
  SharedQueueReader(SegmentHeader& header, Lane lane) : header_(&header), lane_(lane) {}

  // The next message, null if there is none; it stays valid until pop().
  [[nodiscard]] const Line* next() const {
    return lane_.stamped(position_) ? &lane_.at(position_) : nullptr;
  }

  void pop() {
    const std::uint64_t end = position_ + lane_.lines_of(position_, lane_.at(position_));
    // Another sender may take the line behind its own at any time, so only the reader can keep
    // stale data from passing for a stamp. It looks (the data are in its cache), it hardly ever
    // writes.
    for (std::uint64_t inner = position_ + 1; inner < end; ++inner) {
      std::uint32_t& word = lane_.at(inner).stamp;
      if (word == lane_.stamp(inner) + 1) [[unlikely]]
        word = 0;
    }
    position_ = end;
    if (position_ - given_back_ >= lane_.size / 4) {
      given_back_ = position_;
      header_->head.store(position_, std::memory_order_release);
    }
  }

 private:
  SegmentHeader* header_ = nullptr;
  Lane lane_;
  std::uint64_t position_ = 0;
  std::uint64_t given_back_ = 0;
};

} // namespace macadam::net::shm
