// SPDX-License-Identifier: BSD-3-Clause
#include "base/copy.h"
#include "base/error.h"
#include "net/shm/transport.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

// Long data through chunks, fragment by fragment: the receiver copies a fragment out while the
// sender copies the next one in. Of a message of the engine all fragments stand in one chunk, so
// that it is sent as a whole or not at all; so does the tail of a put, but each before has its own.
namespace macadam::net::shm {
namespace {

// Memory of a process for its chunks, together, and the fewest that it is cut into.
constexpr std::size_t chunks_together = 512 << 10;
constexpr std::size_t fewest_chunks = 24;
static_assert(fewest_chunks > Chunks::in_turn);

// Bytes in a fragment of a put: at most half of the rest, so that the target soon ends after us,
// but not less than the shortest. Longer ones would not fit the chunks' smallest size. What is left
// when a fragment could hold it is the tail.
constexpr std::size_t shortest_fragment = 4 << 10;
constexpr std::size_t longest_fragment = 64 << 10;
constexpr std::size_t fragment_of(std::size_t left) {
  const std::size_t half = std::bit_floor(left / 2 + 1);
  return std::min(left, std::clamp(half, shortest_fragment, longest_fragment));
}
// Fragments in a tail, at most.
constexpr std::uint64_t most_in_tail = 8;
static_assert(most_in_tail + 1 < lines_at_once(fewest_lines)); // each takes a line
static_assert([] {
  std::uint64_t fragments = 0;
  for (std::size_t left = longest_fragment - 3; left > 0; ++fragments) // one of the worst
    left -= fragment_of(left);
  return fragments;
}() == most_in_tail);
// Bytes in a fragment of a message: a quarter of it, but within these; and how many more make no
// fragment of their own.
constexpr std::size_t shortest_of_message = 8 << 10;
constexpr std::size_t longest_of_message = 32 << 10;
constexpr std::size_t little = 256;
// Chunks and long messages written for a peer after which data seem to go one way: as many of the
// messages as a ring takes, and more chunks than this process can have filled, before it has to
// look for those of others.
constexpr std::uint32_t most_in_both = 128;
static_assert(most_in_both > fewest_chunks);

} // namespace

// A process that sends nothing long, or only answers, never touches them.
ChunkPlan Transport::plan_chunks(std::uint64_t offset) const {
  const std::size_t bytes = std::max(limits_.message, longest_fragment);
  const std::size_t rounded = (bytes + line_bytes - 1) / line_bytes * line_bytes;
  const std::size_t count =
      std::clamp<std::size_t>(chunks_together / rounded, fewest_chunks, Chunks::most);
  return {offset, static_cast<std::uint32_t>(rounded), static_cast<std::uint32_t>(count)};
}

const Chunks& Transport::home_of(const Peer& peer, ChunkName name) const {
  return name.ours ? chunks_ : peer.chunks;
}

// A chunk for data to the peer, of which there are so many; false if none was found. Those that its
// data warmed are best. A put ahead may keep its chunk for long: it leaves those that are taken in
// turn to others, and looks at a second one, as the first may be kept as long.
bool Transport::take_chunk(Peer& peer, ChunkName& name, For use, std::size_t needed) {
  bool taken = false;
  while (!taken && use != For::put_ahead && peer.warm.take(name))
    taken = home_of(peer, name).take(name.chunk, name.ours ? own_seat : peer.seat);
  if (!taken)
    taken = use == For::put       ? take_in_turn(peer, needed, name)
            : use == For::message ? take_own_chunk(name)
                                  : take_other_chunk(name) || take_other_chunk(name);
  if (taken && name.ours) {
    lent_to_[name.chunk] = peer.rank;
    touched_.set(name.chunk);
  }
  if (taken) ++peer.long_one_way;
  return taken;
}

// Ours in turn, because the one that was taken first is freed first, and to look at the others'
// words would slow down those who free them. If the next is not free, one of the others is looked
// at, another one each time. If that is not free either, the turn goes on: the next may be with a
// process that does not read.
bool Transport::take_own_chunk(ChunkName& name) {
  if (take_next_chunk(turn_, 1, name) || take_other_chunk(name)) return true;
  turn_.pass();
  return false;
}

// For a put: if the peer itself still has the next in turn, it will soon free it, and no other page
// is touched. Those that others have are passed over.
bool Transport::take_in_turn(const Peer& peer, std::size_t needed, ChunkName& name) {
  for (std::uint32_t looks = 0; looks < Chunks::in_turn; ++looks) {
    if (take_next_chunk(turn_, needed, name)) return true;
    if (lent_to_[name.chunk] == peer.rank) return false;
    turn_.pass();
  }
  return take_other_chunk(name);
}

bool Transport::take_other_chunk(ChunkName& name) {
  if (take_next_chunk(others_, 1, name)) return true;
  others_.pass();
  return false;
}

bool Transport::take_next_chunk(ChunkTurn& turn, std::size_t needed, ChunkName& name) {
  std::uint32_t chunk = 0;
  const bool taken = turn.take(chunks_, own_seat, needed, chunk);
  name = {static_cast<std::uint8_t>(chunk), true};
  return taken;
}

// If all goes one way, the peer reads right behind us what we wrote before: its core and ours take
// lines from each other all the time, which past the caches costs up to eight times less.
// (Processes that share cores have caches in common.)
bool Transport::goes_one_way(const Peer& peer) const {
  return peer.long_one_way > most_in_both && !limits_.shares_cores;
}

// Data into a chunk.
void Transport::fill(const Peer& peer, std::byte* to, const std::byte* from,
                     std::size_t bytes) const {
  if (bytes >= worth_past_caches && goes_one_way(peer))
    base::copy_past_caches(to, from, bytes);
  else
    base::copy(to, from, bytes);
}

// Where the data of a fragment stand, `before` bytes from the beginning of their chunk.
const std::byte* Transport::data_of(const Peer& peer, const Fragment& fragment,
                                    std::uint64_t before) const {
  const Chunks& chunks = home_of(peer, {fragment.chunk, !fragment.senders});
  const bool sound = fragment.chunk < chunks.count() && before <= chunks.chunk_bytes() &&
                     fragment.bytes <= chunks.chunk_bytes() - before &&
                     fragment.left <= fragment.all &&
                     fragment.bytes <= fragment.all - fragment.left;
  if (!sound)
    fail_damaged(peer.rank,
                 fmt::format("{} bytes in chunk {}, {} more to come, of {}", fragment.bytes,
                             fragment.chunk, fragment.left, fragment.all));
  return chunks.data(fragment.chunk) + before;
}

// Its data are copied out: whoever needs a chunk may take it, probably we for an answer.
void Transport::pass_on(Peer& peer, ChunkName name) {
  peer.long_one_way = 0;
  home_of(peer, name).free(name.chunk);
  if (peer.chunks.chunk_bytes() == chunks_.chunk_bytes()) peer.warm.add(name);
}

// The peer is gone: it will neither read nor free them.
void Transport::take_chunks_back(const Peer& peer) {
  const std::span<const Seat> seats = seats_here();
  const auto is_its = [&](std::uint32_t chunk) {
    const std::optional<std::uint32_t> seat = chunks_.holder(chunk);
    if (!seat || *seat >= seats.size()) return false;
    return *seat == own_seat ? lent_to_[chunk] == peer.rank : is_of(seats[*seat], peer);
  };
  for (std::uint32_t chunk = 0; chunk < chunks_.count(); ++chunk)
    if (is_its(chunk)) chunks_.free(chunk);
}

// A message that is too long for the circular buffers. Where another process could take the room in
// between, it is one fragment.
bool Transport::post_fragments(Peer& peer, const MessageBody& message) {
  const std::size_t all = message.header_bytes + message.payload_bytes;
  const bool in_fragments = peer.ring_state == RingState::ring;
  const std::size_t each = std::clamp(all / 4, shortest_of_message, longest_of_message);
  ChunkName name;
  if (in_fragments && !peer.channel.out.has_room_for(all / each + 1)) return false;
  if (!take_chunk(peer, name, For::message, 1)) return false;
  Fragment fragment{.all = all, .left = all, .bytes = 0, .chunk = name.chunk, .senders = name.ours};
  std::byte* to = home_of(peer, name).data(name.chunk);
  base::copy(to, message.header, message.header_bytes);
  to += message.header_bytes;
  const auto* from = static_cast<const std::byte*>(message.payload);
  std::size_t header = message.header_bytes; // not yet in a fragment
  while (fragment.left > 0) {
    const bool last = !in_fragments || fragment.left <= each + little;
    fragment.bytes = static_cast<std::uint32_t>(last ? fragment.left : each);
    const std::size_t bytes = fragment.bytes - std::min<std::size_t>(header, fragment.bytes);
    header -= fragment.bytes - bytes;
    if (bytes > 0) fill(peer, to, from, bytes);
    to += bytes;
    from += bytes;
    fragment.left -= fragment.bytes;
    if (!post(peer, Kind::fragment, {&fragment, sizeof fragment, nullptr, 0})) {
      home_of(peer, name).free(name.chunk);
      return false;
    }
  }
  return true;
}

void Transport::on_fragment(Peer& peer, const Line& line, Sink& sink) {
  const auto fragment = read_body<Fragment>(line);
  reach(peer);
  const ChunkName name{fragment.chunk, !fragment.senders};
  const std::byte* const from =
      data_of(peer, fragment, fragment.all - fragment.left - fragment.bytes);
  // Fragments of a message follow each other, all in one chunk.
  const std::uint64_t expected = peer.fragments_left > 0 ? peer.fragments_left : fragment.all;
  if (fragment.left + fragment.bytes != expected ||
      fragment.all > home_of(peer, name).chunk_bytes())
    fail_damaged(peer.rank,
                 fmt::format("a fragment of {} bytes with {} more to come, of a message of "
                             "{}, where {} were to come",
                             fragment.bytes, fragment.left, fragment.all, expected));
  peer.fragments_left = fragment.left;
  if (fragment.left + fragment.bytes != fragment.all)
    sink.on_next_fragment(peer.rank, from, fragment.bytes);
  else if (fragment.left > 0)
    sink.on_first_fragment(peer.rank, from, fragment.bytes, fragment.left);
  else
    sink.on_message(peer.rank, from, fragment.bytes);
  if (fragment.left > 0) return;
  pass_on(peer, name);
}

// Whether so many bytes are posted all or not at all, as no other process takes the room in
// between.
bool Transport::is_one_chunk(const Peer& peer, std::size_t bytes) {
  return bytes <= longest_fragment && peer.ring_state == RingState::ring;
}

// The next fragment of a put, or all of its tail; false if there is no room for it now. Where
// another process could take the room in between, each fragment of the tail has its own chunk. What
// is put ahead is one: nobody copies it out meanwhile.
bool Transport::post_put_fragment(Stream& stream, For use) {
  Peer& peer = *stream.peer;
  const bool is_tail = is_one_chunk(peer, stream.bytes);
  if (is_tail && !peer.channel.out.has_room_for(most_in_tail)) return false;
  ChunkName name;
  if (!take_chunk(peer, name, use, stream.all / longest_fragment)) return false;
  std::byte* to = home_of(peer, name).data(name.chunk);
  const std::size_t tail = is_tail ? stream.bytes : 0;
  do {
    const std::size_t bytes = use == For::put_ahead ? stream.bytes : fragment_of(stream.bytes);
    fill(peer, to, stream.from, bytes);
    to += bytes;
    if (post_copied(stream, name, bytes, tail)) continue;
    home_of(peer, name).free(name.chunk); // the first: there is room for all of a tail
    return false;
  } while (is_tail && stream.bytes > 0);
  return true;
}

// Says to the target that the next bytes of a stream stand in a chunk; false if there is no room.
bool Transport::post_copied(Stream& stream, ChunkName name, std::size_t bytes, std::size_t tail) {
  const bool last = bytes == stream.bytes;
  const PutFragment put{.fragment = {.all = stream.all,
                                     .left = stream.bytes - bytes,
                                     .bytes = static_cast<std::uint32_t>(bytes),
                                     .chunk = name.chunk,
                                     .senders = name.ours},
                        .address = stream.to,
                        .tail = static_cast<std::uint32_t>(tail),
                        .notification = last && !stream.notified ? stream.notification : 0};
  if (!post(*stream.peer, Kind::put_fragment, {&put, sizeof put, nullptr, 0})) return false;
  stream.notified = last;
  stream.from += bytes;
  stream.to += bytes;
  stream.bytes -= bytes;
  counters_.bytes_streamed += bytes;
  in_transfer_.store(true, std::memory_order_relaxed);
  return true;
}

void Transport::on_put_fragment(Peer& peer, const Line& line, Sink& sink) {
  const auto put = read_body<PutFragment>(line);
  reach(peer);
  const ChunkName name{put.fragment.chunk, !put.fragment.senders};
  const Fragment& fragment = put.fragment;
  if (put.tail > 0 && (fragment.left > put.tail || fragment.bytes > put.tail - fragment.left))
    fail_damaged(peer.rank,
                 fmt::format("a fragment of {} bytes with {} more to come, of a tail of {}",
                             fragment.bytes, fragment.left, put.tail));
  // Bytes of the tail that stand before this fragment in its chunk.
  const std::uint64_t before = put.tail > 0 ? put.tail - fragment.left - fragment.bytes : 0;
  const std::byte* const from = data_of(peer, fragment, before);
  base::copy(reinterpret_cast<std::byte*>(put.address), from, put.fragment.bytes);
  if (put.tail == 0 || put.fragment.left == 0) pass_on(peer, name);
  if (fragment.left > 0) {
    in_transfer_.store(true, std::memory_order_relaxed);
    if (put.tail == 0) wake(peer); // it may wait for room
    return;
  }
  // We may answer at once, and look then whether the peer waits.
  __builtin_prefetch(&peer.header->waiting);
  if (put.notification != 0) sink.on_put(peer.rank, put.notification, put.fragment.all);
}

} // namespace macadam::net::shm
