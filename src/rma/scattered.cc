// SPDX-License-Identifier: BSD-3-Clause
#include "rma/scattered.h"

#include "base/copy.h"
#include "datatype/cursor.h"
#include "rma/collected.h"
#include "rma/post.h"

#include <algorithm>
#include <span>
#include <utility>

namespace macadam::rma {

using datatype::PackCursor;
using datatype::Segment;

namespace {

// What pays for a message, and for copying all data twice: so many pieces, and no longer ones on
// average. The kernel takes a microsecond and a half for a call, and a third for each piece;
// networks far less, for a read more than for a write.
struct Worth {
  std::size_t fewest;
  std::size_t longest;
};
constexpr Worth copies{4, 1024};
constexpr Worth network_writes{16, 128};
constexpr Worth network_reads{16, 256};
// What is read is read with the gaps (pieces.h, blocks.cc) if they are shorter.
constexpr std::size_t worth_of_gaps = 2048;
// Bytes of a message, so that the target spreads one while others are on their way.
constexpr std::size_t most_in_message = 16 << 10;
constexpr std::size_t most_runs_of_put = most_in_message / sizeof(Run);

// The first pieces of a place: how many there are, up to `most`, and how long they are with and
// without the gaps between them.
struct Sample {
  std::size_t pieces = 0;
  std::size_t bytes = 0;
  std::size_t span = 0;
};

Sample sample_of(const Place& place, std::size_t most) {
  Sample sample;
  PackCursor theirs(*place.type, nullptr, place.count);
  std::intptr_t low = INTPTR_MAX, high = INTPTR_MIN, end = 0;
  while (sample.pieces < most) {
    const Segment next = theirs.next_segment();
    if (next.bytes == 0) break;
    const auto begin = reinterpret_cast<std::intptr_t>(next.data);
    sample.pieces += sample.pieces == 0 || begin != end ? 1 : 0;
    sample.bytes += static_cast<std::size_t>(next.bytes);
    end = begin + next.bytes;
    low = std::min(low, begin);
    high = std::max(high, end);
  }
  if (sample.pieces > 0) sample.span = static_cast<std::size_t>(high - low);
  return sample;
}

} // namespace

bool Window::Scattered::suits(const Target& target, Direction direction, const Place& place) {
  if (place.type->contiguous()) return false;
  const Worth worth = kernel_copies(target)          ? copies
                      : direction == Direction::read ? network_reads
                                                     : network_writes;
  const Sample sample = sample_of(place, worth.fewest);
  if (sample.pieces < worth.fewest || sample.bytes > sample.pieces * worth.longest) return false;
  return direction == Direction::write || sample.span > (sample.pieces - 1) * worth_of_gaps;
}

Window::Scattered::Scattered(Window& window, Target& target, Direction direction, const Reach& to,
                             Waiter& waiter)
    : window_(window), target_(target), direction_(direction), to_(to), waiter_(waiter) {}

void Window::Scattered::add(std::byte* ours, std::ptrdiff_t at, std::size_t bytes) {
  const bool reads = direction_ == Direction::read;
  if (bytes >= most_in_message) return move(ours, at, bytes);
  const std::size_t most_runs = reads ? Messages::most_runs_of_get : most_runs_of_put;
  if (runs_.bytes() + bytes > most_in_message || runs_.size() == most_runs) end();
  runs_.add(to_.place + static_cast<std::uint64_t>(at), bytes);
  ours_.add(ours, bytes);
}

void Window::Scattered::end() {
  if (runs_.empty()) return;
  if (!is_ready())
    move_each();
  else
    direction_ == Direction::read ? get() : put();
  runs_.clear();
  ours_.clear();
}

// Whether there is room for a message. Waits for it, if need be, for about as long as the pieces
// take one by one; so a target that comes late costs two or three times that.
bool Window::Scattered::is_ready() const {
  if (target_.by_messages) return true;
  const std::uint64_t looks_worth_a_piece = kernel_copies(target_) ? 3 : 1;
  std::uint64_t looks = 0;
  for (const Run& run : runs_.all())
    looks += run.count * looks_worth_a_piece;
  for (; looks > 0 && window_.messages_->is_busy(); --looks)
    window_.waiting_.look();
  return !window_.messages_->is_busy();
}

void Window::Scattered::move(std::byte* ours, std::ptrdiff_t at, std::size_t bytes) {
  window_.move_segment(target_, direction_, ours, to_, at, bytes, waiter_);
}

void Window::Scattered::move_each() {
  PieceWalk ours(ours_), theirs(runs_);
  while (theirs.left() > 0) {
    const std::size_t bytes = std::min(ours.left(), theirs.left());
    auto* const memory = reinterpret_cast<std::byte*>(ours.take(bytes));
    move(memory, static_cast<std::ptrdiff_t>(theirs.take(bytes) - to_.place), bytes);
  }
}

void Window::Scattered::put() {
  const std::span<const std::byte> runs = std::as_bytes(runs_.all());
  std::vector<std::byte> packed(runs_.bytes() + runs.size());
  RunsHere(ours_).pack(packed.data());
  base::copy(packed.data() + runs_.bytes(), runs.data(), runs.size());
  target_.unserved = true;
  window_.posted(target_,
                 [&] { return window_.messages_->put_runs(target_.rank, packed, runs_.size()); });
}

void Window::Scattered::get() {
  collect(std::exchange(ours_, {}), waiter_, [&](void* to, Waiter& waiter) {
    window_.post_counted(target_, waiter, [&] {
      return window_.messages_->get_runs(target_.rank, runs_.all(), to, runs_.bytes(), waiter);
    });
  });
}

} // namespace macadam::rma
