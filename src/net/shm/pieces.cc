// SPDX-License-Identifier: BSD-3-Clause
#include "base/error.h"
#include "net/shm/transport.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

// Long data through cells, piece by piece: the receiver copies a piece out while the sender copies
// the next one in. Of a message of the engine all pieces stand in one cell, so that it is sent as a
// whole or not at all; of a put each has its own.
namespace macadam::net::shm {
namespace {

// Memory of a process for its cells, together, and the fewest that it is cut into.
constexpr std::size_t cells_together = 512 << 10;
constexpr std::size_t fewest_cells = 8;

// Bytes in a piece of a put: at most half of the rest, so that the target soon ends after us, but
// not less than the shortest. Longer ones would not fit the cells' smallest size.
constexpr std::size_t shortest_piece = 4 << 10;
constexpr std::size_t longest_piece = 16 << 10;
// Bytes of a transfer from which on its place may be in no cache.
constexpr std::size_t very_long = 1 << 20;
// Bytes in a part of a message, and how many more make no part of their own.
constexpr std::size_t part_bytes = 8 << 10;
constexpr std::size_t little = 256;

constexpr Stores stores_of(Way way) {
  return way == Way::cells_past_cache ? Stores::past_cache : Stores::cached;
}

} // namespace

// Who sends nothing long, or only answers, never touches them.
CellPlan Transport::plan_cells(std::uint64_t offset) const {
  const std::size_t bytes = std::max(limits_.message, longest_piece);
  const std::size_t rounded = (bytes + line_bytes - 1) / line_bytes * line_bytes;
  const std::size_t count =
      std::clamp<std::size_t>(cells_together / rounded, fewest_cells, Cells::most);
  return {offset, static_cast<std::uint32_t>(rounded), static_cast<std::uint32_t>(count)};
}

const Cells& Transport::home_of(const Peer& peer, CellName name) const {
  return name.ours ? cells_ : peer.cells;
}

// A cell for data to the peer; false if none was found. Those that its data warmed are best.
bool Transport::take_cell(Peer& peer, CellName& name) {
  bool taken = false;
  while (!taken && peer.warm.take(name))
    taken = home_of(peer, name).take(name.cell, rank_);
  if (!taken) taken = take_own_cell(name);
  if (taken && name.ours) lent_to_[name.cell] = peer.rank;
  return taken;
}

// Ours in turn, because the one that was taken first is freed first, and to look at the others'
// words would slow down those who free them. Only one more is looked at, another one each time: the
// first may be with a process that does not read.
bool Transport::take_own_cell(CellName& name) {
  has_cells_ = true;
  const auto after = [&](std::uint32_t cell) { return cell + 1 < cells_.count() ? cell + 1 : 0; };
  name = {static_cast<std::uint8_t>(next_cell_), true};
  if (cells_.take(name.cell, rank_)) {
    next_cell_ = after(next_cell_);
    return true;
  }
  other_cell_ = after(other_cell_);
  name.cell = static_cast<std::uint8_t>(other_cell_);
  return cells_.take(name.cell, rank_);
}

// Where data stand that a peer has told of, `before` bytes from the beginning of their cell.
const std::byte* Transport::data_of(const Peer& peer, const Piece& piece,
                                    std::uint64_t before) const {
  const Cells& cells = home_of(peer, {piece.cell, !piece.senders});
  const bool sound = piece.cell < cells.count() && before <= cells.cell_bytes() &&
                     piece.bytes <= cells.cell_bytes() - before && piece.left <= piece.all &&
                     piece.bytes <= piece.all - piece.left;
  if (!sound)
    fail_damaged(peer.rank, fmt::format("{} bytes in cell {}, {} more to come, of {}", piece.bytes,
                                        piece.cell, piece.left, piece.all));
  return cells.data(piece.cell) + before;
}

// Its data are copied out: whoever needs a cell may take it, probably we for an answer.
void Transport::pass_on(Peer& peer, CellName name) {
  home_of(peer, name).free(name.cell);
  if (peer.cells.cell_bytes() == cells_.cell_bytes()) peer.warm.add(name);
}

// The peer is gone: it will neither read nor free them.
void Transport::take_cells_back(const Peer& peer) {
  for (std::uint32_t cell = 0; cell < cells_.count(); ++cell)
    if (cells_.held_by(cell, peer.rank) ||
        (cells_.held_by(cell, rank_) && lent_to_[cell] == peer.rank))
      cells_.free(cell);
}

Wish Transport::wish_of(const Peer& peer, std::size_t bytes) {
  return peer.lead == Lead::ring ? peer.talk.out.wish(size_class(bytes)) : Wish{};
}

// A message that is too long for the lanes. Where another process could take the room in between,
// it is one part.
bool Transport::post_parts(Peer& peer, const Parts& message) {
  const std::size_t all = message.header_bytes + message.payload_bytes;
  const bool in_parts = peer.lead == Lead::ring;
  CellName name;
  if (in_parts && !peer.talk.out.has_room_for(all / part_bytes + 1)) return false;
  if (!take_cell(peer, name)) return false;
  const Wish wish = wish_of(peer, all);
  const Way way = by_kernel(wish.way) ? Way::cells : wish.way;
  Piece piece{.all = all,
              .left = all,
              .begin = wish.timed ? seconds() : 0,
              .bytes = 0,
              .cell = name.cell,
              .senders = name.ours,
              .way = way};
  std::byte* to = home_of(peer, name).data(name.cell);
  std::memcpy(to, message.header, message.header_bytes);
  to += message.header_bytes;
  const auto* from = static_cast<const std::byte*>(message.payload);
  std::size_t header = message.header_bytes; // not yet in a part
  while (piece.left > 0) {
    const bool last = !in_parts || piece.left <= part_bytes + little;
    piece.bytes = static_cast<std::uint32_t>(last ? piece.left : part_bytes);
    const std::size_t bytes = piece.bytes - std::min<std::size_t>(header, piece.bytes);
    header -= piece.bytes - bytes;
    if (bytes > 0) copy(to, from, bytes, stores_of(way));
    to += bytes;
    from += bytes;
    piece.left -= piece.bytes;
    if (!post(peer, Kind::part, {&piece, sizeof piece, nullptr, 0})) {
      home_of(peer, name).free(name.cell);
      return false;
    }
  }
  return true;
}

void Transport::on_part(Peer& peer, const Line& line, Sink& sink) {
  const auto part = read_body<Piece>(line);
  reach(peer);
  const CellName name{part.cell, !part.senders};
  const std::byte* const from = data_of(peer, part, part.all - part.left - part.bytes);
  // Parts of a message follow each other, all in one cell.
  const std::uint64_t expected = peer.parts_left > 0 ? peer.parts_left : part.all;
  if (part.left + part.bytes != expected || part.all > home_of(peer, name).cell_bytes())
    fail_damaged(peer.rank, fmt::format("a part of {} bytes with {} more to come, of a message of "
                                        "{}, where {} were to come",
                                        part.bytes, part.left, part.all, expected));
  peer.parts_left = part.left;
  begin(peer, part);
  // Also if the sink throws: no part comes again, so the last one frees the cell.
  struct LastFreesCell {
    Transport& self;
    Peer& peer;
    const CellName name;
    const bool last;
    ~LastFreesCell() {
      if (last) self.pass_on(peer, name);
    }
  };
  {
    const LastFreesCell guard{*this, peer, name, part.left == 0};
    if (part.left + part.bytes != part.all)
      sink.on_next_part(peer.rank, from, part.bytes);
    else if (part.left > 0)
      sink.on_first_part(peer.rank, from, part.bytes, part.left);
    else
      sink.on_message(peer.rank, from, part.bytes);
  }
  if (part.left > 0) return;
  learn(peer, part.all, part.way, part.begin > 0 ? peer.began : 0);
}

// The next piece of a put; false if there is no room for it now.
bool Transport::post_piece(Stream& stream) {
  Peer& peer = *stream.peer;
  CellName name;
  if (!take_cell(peer, name)) return false;
  const std::size_t half = std::bit_floor(stream.bytes / 2 + 1);
  const std::size_t bytes = std::min(stream.bytes, std::clamp(half, shortest_piece, longest_piece));
  std::byte* const to = home_of(peer, name).data(name.cell);
  copy(to, stream.from, bytes, stores_of(stream.way));
  const bool last = bytes == stream.bytes;
  const PutPiece put{.piece = {.all = stream.all,
                               .left = stream.bytes - bytes,
                               .begin = stream.begin,
                               .bytes = static_cast<std::uint32_t>(bytes),
                               .cell = name.cell,
                               .senders = name.ours,
                               .way = stream.way},
                     .address = stream.to,
                     .notice = last && !stream.told ? stream.notice : 0};
  if (!post(peer, Kind::put_piece, {&put, sizeof put, nullptr, 0})) {
    home_of(peer, name).free(name.cell);
    return false;
  }
  stream.told = last;
  stream.from += bytes;
  stream.to += bytes;
  stream.bytes -= bytes;
  counters_.bytes_streamed += bytes;
  return true;
}

void Transport::on_put_piece(Peer& peer, const Line& line, Sink& sink) {
  const auto put = read_body<PutPiece>(line);
  reach(peer);
  const CellName name{put.piece.cell, !put.piece.senders};
  const std::byte* const from = data_of(peer, put.piece, 0);
  begin(peer, put.piece);
  copy(reinterpret_cast<std::byte*>(put.address), from, put.piece.bytes, placing(peer, put.piece));
  pass_on(peer, name);
  if (put.piece.left > 0) return;
  // We may answer at once, and look then whether the peer waits.
  __builtin_prefetch(&peer.header->waiting);
  learn(peer, put.piece.all, put.piece.way, put.piece.begin > 0 ? peer.began : 0);
  if (put.notice != 0 && !lost_half(peer)) sink.on_put(peer.rank, put.notice, put.piece.all);
}

// Very long data are often placed in memory that is in no cache, where stores past it are faster.
// Only transfers whose time is known can tell.
Stores Transport::placing(Peer& peer, const Piece& piece) {
  if (piece.left + piece.bytes < piece.all) return peer.placing;
  if (piece.all < very_long)
    peer.placing = Stores::cached;
  else
    peer.placing =
        piece.begin > 0 ? peer.place_choice.next(piece.all).way : peer.place_choice.best(piece.all);
  return peer.placing;
}

// The time of data begins with the sender's first store, unless they had to wait for those before
// them: then with the first that we see of them.
void Transport::begin(Peer& peer, const Piece& piece) {
  if (piece.begin > 0 && piece.left + piece.bytes == piece.all)
    peer.began = peer.busy ? seconds() : piece.begin;
}

// The longest messages that EAGER takes come through cells. Where the kernel is faster a rendezvous
// is: the receiver has announced itself, or the copy that HYBRID makes costs no more than EAGER's.
std::size_t Transport::eager_limit(Way way) const {
  return by_kernel(way) ? limits_.always_eager : limits_.eager;
}

std::size_t Transport::eager_to(const engine::Link& link) const {
  return eager_limit(wish_of(static_cast<const Peer&>(link), limits_.eager).way);
}

std::size_t Transport::eager_from(const engine::Link& link) const {
  const auto& peer = static_cast<const Peer&>(link);
  if (peer.ring_memory == nullptr) return limits_.eager;
  return eager_limit(peer.talk.in.wished(size_class(limits_.eager)).way);
}

// How data of this size shall come from the peer is for us to say: we see how long they take from
// its first store to our last, of which either core may have the longer part, and how long until
// the next have come. `began` is 0 if they were not timed.
void Transport::learn(Peer& peer, std::size_t bytes, Way way, double began) {
  if (way > Way::halves)
    fail_damaged(peer.rank, fmt::format("data that came in way {}, which is none",
                                        static_cast<unsigned>(way)));
  if (peer.ring_memory == nullptr) return;
  Pace& pace = peer.paces[size_class(bytes)];
  double now = 0;
  if (began > 0) {
    now = seconds();
    const double took = now - began;
    if (const auto cost = pace.cost(way, now, took)) peer.way_choice.record(bytes, way, *cost);
    if (bytes >= very_long && !by_kernel(way)) peer.place_choice.record(bytes, peer.placing, took);
  }
  auto [wish, timed] = peer.way_choice.next(bytes);
  if (timed && now == 0) now = seconds();
  pace.ended(way, timed, now);
  if (by_kernel(wish) && (!has_choice(peer) || bytes <= limits_.always_eager)) wish = Way::cells;
  peer.talk.in.wish(size_class(bytes), {wish, timed});
}

} // namespace macadam::net::shm
