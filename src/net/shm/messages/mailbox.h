// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/bulk/stores.h"
#include "net/shm/messages/slots.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

// Lines that two processes write in turn, one message at a time: an answer goes back in the lines
// that brought the question. A line of a queue or ring that its reader polls has to be taken from
// it before it can be written, and is fetched by it then: two ways between the cores. A process
// that answers here has the line already, which leaves one.
namespace macadam::net::shm {

// A process's end of the block that it shares with one peer. Messages of the pair go by it and by
// rings. What keeps them in order: a message here tells where its sender's ring ended when it was
// written, and a line of a ring how often the block had been written.
class Mailbox {
 public:
  // Memory to ask for, aligned to lines, and where in it the block begins: in the second line of a
  // pair. Processors fetch both lines of a pair, and the block's first one is polled while the next
  // ones are written.
  static constexpr std::size_t bytes = (lines_for(longest_inline) + 1) * line_bytes;
  static std::byte* begin(std::byte* memory) {
    const bool second = (reinterpret_cast<std::uintptr_t>(memory) & line_bytes) != 0;
    return second ? memory : memory + line_bytes;
  }

  Mailbox() = default;
  // The first line is zero. The first turn is that of the process which is `first`.
  Mailbox(std::byte* begin, bool first) : line_(reinterpret_cast<Line*>(begin)), first_(first) {}

  [[nodiscard]] explicit operator bool() const { return line_ != nullptr; }

  // For a line of this process's ring; `read` is how far it has read the peer's.
  [[nodiscard]] Mark mark(std::uint64_t read) const { return {count_, sum(read)}; }

  // Whether a message should go here: this process has the turn, and the peer waited for it when it
  // wrote its last. If both write at the same time, each looks at the block before the other has
  // written it, and rings are as fast.
  [[nodiscard]] bool is_for_answer() const { return answers_ && is_mine(); }

  // `written` is where this process's ring ends, `read` as in mark().
  void write(Kind kind, const MessageBody& body, std::uint64_t written, std::uint64_t read) {
    fill(*line_, kind, {static_cast<std::uint32_t>(written), sum(read)}, body);
    std::atomic_ref(line_->stamp).store(++count_, std::memory_order_release);
    const std::uint32_t lines = lines_for(body.header_bytes + body.payload_bytes);
    for (std::uint32_t i = 0; i < std::min(lines, most_cldemoted); ++i)
      cldemote(line_ + i);
  }

  // Whether the peer wrote something here, not read yet, before this line of its ring.
  [[nodiscard]] bool precedes(const Line& ring_line) const {
    return static_cast<std::int32_t>(ring_line.place - count_) > 0;
  }
  // The peer's message, if there is one here and it comes next, behind what was `read` of the
  // peer's ring; or null. It stays valid until pop().
  [[nodiscard]] const Line* next(std::uint64_t read) const {
    if (line_ == nullptr || is_mine() ||
        std::atomic_ref(line_->stamp).load(std::memory_order_acquire) != count_ + 1 ||
        line_->place != static_cast<std::uint32_t>(read))
      return nullptr;
    return line_;
  }
  void pop() { ++count_; }

  // A message of the peer comes, here or in its ring; `written` as in write().
  void note(const Line& line, std::uint64_t written) { answers_ = line.seen == sum(written); }

 private:
  // More than these stay in their writer's cache.
  static constexpr std::uint32_t most_cldemoted = 16;

  [[nodiscard]] bool is_mine() const { return line_ != nullptr && (count_ % 2 == 0) == first_; }
  // Tells whether all that was written had been seen, with a chance in 256 to be wrong, which does
  // no harm.
  [[nodiscard]] std::uint8_t sum(std::uint64_t ring_position) const {
    return static_cast<std::uint8_t>(ring_position + count_);
  }

  Line* line_ = nullptr;
  std::uint32_t count_ = 0; // messages here, of both
  bool first_ = false;      // this process has the turn when the count is even
  bool answers_ = false;
};

} // namespace macadam::net::shm
