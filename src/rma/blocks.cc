// SPDX-License-Identifier: BSD-3-Clause
// Accesses of many segments, where the network takes lists of blocks: cross-memory attach. What
// that costs is the call (a microsecond and a half), each block of the target (a third of one,
// whatever is in it, as its page is looked up) and each of ours (25 ns). So a call takes as many as
// it can; our segments are packed where they are small; and of a target's memory that is read,
// small gaps are read with it. (What is written has no such way: others may write the gaps
// meanwhile.)
#include "base/copy.h"
#include "datatype/cursor.h"
#include "rma/post.h"
#include "rma/window.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace macadam::rma {

using datatype::PackCursor;
using datatype::Segment;
using engine::Block;
using engine::Posted;

namespace {

// Moved at a time, so that what is packed is still in the second-level cache.
constexpr std::size_t most_bytes = 256 << 10;
// Our segments are packed if they are shorter than this on average.
constexpr std::size_t packed_below = 1024;
// Bytes of a gap that are copied in the time that another block takes.
constexpr std::size_t gap_worth = 2048;

// The next segments, at most `limit` bytes in at most `most` blocks; how many bytes they have.
std::size_t take(PackCursor& from, std::uint64_t base, std::size_t limit, std::size_t most,
                 std::vector<Block>& blocks) {
  std::size_t bytes = 0;
  blocks.clear();
  while (bytes < limit && blocks.size() < most) {
    const Segment next = from.next_segment(static_cast<MPI_Count>(limit - bytes));
    if (next.bytes == 0) break;
    const std::uint64_t address = base + reinterpret_cast<std::uint64_t>(next.data);
    const auto length = static_cast<std::size_t>(next.bytes);
    if (!blocks.empty() && blocks.back().address + blocks.back().bytes == address)
      blocks.back().bytes += length;
    else
      blocks.push_back({address, length});
    bytes += length;
  }
  return bytes;
}

// All from the first byte of any of them to the last.
Block whole_of(std::span<const Block> blocks) {
  std::uint64_t low = blocks.front().address, high = low;
  for (const Block& block : blocks) {
    low = std::min(low, block.address);
    high = std::max(high, block.address + block.bytes);
  }
  return {low, high - low};
}

// Whether they are read faster with the gaps between them.
bool better_whole(std::span<const Block> blocks) {
  return blocks.size() > 1 &&
         whole_of(blocks).bytes <= std::min(most_bytes, blocks.size() * gap_worth);
}

} // namespace

bool Window::takes_blocks(const Target& target, const Reach& to) {
  return !target.by_messages && to.regions.empty() && kernel_copies(target);
}

// False: the target has ended, and `waiter` will be told.
bool Window::move_list(Target& target, Direction direction, std::span<const Block> ours,
                       std::span<const Block> theirs, std::uint64_t key, Waiter& waiter) {
  target.unlanded |= direction == Direction::write;
  const bool done = posted(target, [&] {
                      engine::Transport& network = *target.peer->transport;
                      const std::uint64_t cookie = waiter.cookie();
                      return direction == Direction::write
                                 ? network.write_blocks(*target.link, ours, theirs, key, cookie, {})
                                 : network.read_blocks(*target.link, ours, theirs, key, cookie, {});
                    }) == Posted::done;
  if (!done) waiter.on_posted();
  return done;
}

// The same between blocks of the target, as many as there are, and packed memory of ours.
bool Window::move_packed(Target& target, Direction direction, std::byte* packed,
                         std::span<const Block> theirs, std::uint64_t key, Waiter& waiter) {
  const std::size_t most = target.peer->transport->limits().target_blocks;
  for (; !theirs.empty(); theirs = theirs.subspan(std::min(most, theirs.size()))) {
    const auto now = theirs.first(std::min(most, theirs.size()));
    if (direction == Direction::read && better_whole(now)) {
      const Block whole = whole_of(now);
      const auto room = std::make_unique_for_overwrite<std::byte[]>(whole.bytes);
      const Block into{reinterpret_cast<std::uint64_t>(room.get()), whole.bytes};
      if (!move_list(target, direction, {&into, 1}, {&whole, 1}, key, waiter)) return false;
      for (const Block& block : now) {
        base::copy(packed, room.get() + (block.address - whole.address), block.bytes);
        packed += block.bytes;
      }
      continue;
    }
    Block ours{reinterpret_cast<std::uint64_t>(packed), 0};
    for (const Block& block : now)
      ours.bytes += block.bytes;
    if (!move_list(target, direction, {&ours, 1}, now, key, waiter)) return false;
    packed += ours.bytes;
  }
  return true;
}

// A put or get as a whole.
void Window::move_blocks(Target& target, Direction direction, const Data& origin,
                         const Place& place, const Reach& to, Waiter& waiter) {
  const std::size_t most = target.peer->transport->limits().target_blocks;
  PackCursor ours(*origin.type, origin.address, origin.count);
  PackCursor theirs(*place.type, nullptr, place.count);
  std::vector<Block> here, there;
  std::unique_ptr<std::byte[]> packed;
  const bool reads = direction == Direction::read;
  for (bool goes_on = true; goes_on && !theirs.done();) {
    const MPI_Count at = theirs.position();
    const std::size_t bytes = take(theirs, to.there.address, most_bytes, most, there);
    const std::size_t most_here =
        reads && better_whole(there) ? 1 : std::clamp<std::size_t>(bytes / packed_below, 1, most);
    const bool in_place = take(ours, 0, bytes, most_here, here) == bytes;
    if (in_place && here.size() == 1) {
      goes_on = move_packed(target, direction, reinterpret_cast<std::byte*>(here[0].address), there,
                            to.there.key, waiter);
    } else if (in_place) {
      goes_on = move_list(target, direction, here, there, to.there.key, waiter);
    } else {
      if (packed == nullptr) packed = std::make_unique_for_overwrite<std::byte[]>(most_bytes);
      ours.seek(at);
      if (!reads) ours.pack(packed.get(), bytes);
      goes_on = move_packed(target, direction, packed.get(), there, to.there.key, waiter);
      if (reads && goes_on) ours.unpack(packed.get(), bytes);
    }
  }
}

} // namespace macadam::rma
