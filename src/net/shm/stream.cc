// SPDX-License-Identifier: BSD-3-Clause
#include "base/error.h"
#include "net/shm/transport.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

// Put and get. Memory that both sides map: memcpy. Private memory: either the kernel copies it
// (cross-memory attach, one core, at any time), or it is streamed: the one who has the data writes
// pieces into cells, from where the other's poll() copies them to their place (two cores, faster,
// but both must be in the library). `automatic` considers streaming as long as the target does
// nothing but poll, and then takes what was faster so far.
namespace macadam::net::shm {
namespace {

// Seconds without room after which a target that seems to poll is given up: it may have lost its
// core.
constexpr double patience = 20e-6;
// Seconds that a peer gets to begin its wait: one that has just announced its receive, or asked for
// data, is often on the way there, and a stream is several times as fast as the kernel.
constexpr double grace = 0.5e-6;

template <class Body>
Parts only(const Body& body) {
  return {&body, sizeof body, nullptr, 0};
}

} // namespace

// --- Cross-memory attach.

void Transport::probe(Peer& peer) {
  peer.pid = directory_.pid(peer.rank);
  const std::string reason =
      probe_cross_copy(peer.pid, peer.header->probe_address, peer.header->probe_value);
  peer.cross_copy = reason.empty();
  if (!peer.cross_copy) refuse_cross_copy(peer, reason);
}

void Transport::refuse_cross_copy(Peer& peer, const std::string& reason) {
  peer.cross_copy = false;
  std::string line = fmt::format("shm: no cross-memory attach: {}; large messages are copied "
                                 "through the segment by sender and receiver",
                                 reason);
  if (std::find(fallbacks_.begin(), fallbacks_.end(), line) == fallbacks_.end()) {
    fallbacks_.push_back(std::move(line));
  }
}

Transport::Copied Transport::cross_copy_with(Peer& peer, Direction direction, void* local,
                                             std::uint64_t remote, std::size_t bytes) {
  const int error = cross_copy(direction, peer.pid, local, remote, bytes);
  if (error == 0) {
    counters_.bytes_cross_copied += bytes;
    return Copied::yes;
  }
  if (error == ESRCH && !peer.failed) {
    peer.failed = true;
    take_cells_back(peer);
    failed_.push_back(&peer);
    unfinished_.store(true, std::memory_order_relaxed);
  }
  if (error == ESRCH || error == EFAULT) return Copied::failed;
  refuse_cross_copy(peer, std::strerror(error));
  return Copied::refused;
}

bool Transport::should_stream(const Peer& peer) const {
  if (!peer.cross_copy || settings_.shm_copy == base::CopyPath::pipeline) return true;
  if (settings_.shm_copy == base::CopyPath::cma || waiter_.oversubscribed()) return false;
  return peer.header->waiting.load(std::memory_order_relaxed) != 0 &&
         peer.header->asleep.load(std::memory_order_relaxed) == 0;
}

// The same for a long transfer.
bool Transport::will_stream(const Peer& peer) const {
  if (should_stream(peer)) return true;
  if (!has_choice(peer) || waiter_.oversubscribed()) return false;
  for (const double begin = seconds(); seconds() - begin < grace; relax())
    if (should_stream(peer)) return true;
  return false;
}

// Whether both ways are open for private memory of the peer.
bool Transport::has_choice(const Peer& peer) const {
  return peer.cross_copy && settings_.shm_copy == base::CopyPath::automatic;
}

// Where memory of the peer is in our address space; null if it is not there.
std::byte* Transport::mapped_address(const Peer& peer, RemoteMemory memory,
                                     std::size_t bytes) const {
  if (memory.key == private_key) {
    return peer.rank == rank_ ? reinterpret_cast<std::byte*>(memory.address) : nullptr;
  }
  const Segment& segment = peer.rank == rank_ ? segment_ : peer.segment;
  if (memory.key != mapped_key || !segment.holds(memory.address, bytes)) {
    base::fail(MPI_ERR_INTERN,
               "shared memory: rank {} has no memory with key {}, address {:#x}, {} bytes",
               peer.rank, memory.key, memory.address, bytes);
  }
  return segment.at(memory.address);
}

// --- Put.

Posted Transport::put(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
                      std::uint64_t cookie) {
  return put(static_cast<Peer&>(link), local, target, bytes, cookie, 0);
}

Posted Transport::put(Peer& peer, const void* local, RemoteMemory target, std::size_t bytes,
                      std::uint64_t cookie, std::uint32_t notice) {
  Stream& stream = *stream_slab_.make();
  stream.peer = &peer;
  stream.from = static_cast<const std::byte*>(local);
  stream.to = target.address;
  stream.all = stream.bytes = bytes;
  stream.notice = notice;
  stream.end = Stream::End::complete_put;
  stream.id = cookie;
  if (std::byte* mapped = mapped_address(peer, target, bytes)) {
    std::memcpy(mapped, local, bytes);
    counters_.bytes_mapped += bytes;
    stream.bytes = 0;
  }
  const bool all = stream.bytes == 0 ||
                   (will_stream(peer) && has_choice(peer) ? put_by_choice(stream) : start(stream));
  if (all && stream.ok && tell(stream)) {
    stream_slab_.free(&stream);
    return Posted::done;
  }
  streams_.push_back(stream);
  ++peer.puts_under_way;
  unfinished_.store(true, std::memory_order_relaxed);
  return Posted::pending;
}

// Short data go the way of messages, behind all pieces of streams, and the target's poll() puts
// them in their place: so they are ordered with everything, and wake it.
Posted Transport::put_noticed(engine::Link& link, const void* local, RemoteMemory target,
                              std::size_t bytes, std::uint64_t cookie, std::uint32_t notice) {
  auto& peer = static_cast<Peer&>(link);
  const NoticedPut head{target.address, static_cast<std::uint32_t>(target.key), notice};
  if (peer.puts_under_way == 0) {
    if (bytes > longest_noticed_put) return put(peer, local, target, bytes, cookie, notice);
    if (post(peer, Kind::noticed_put, {&head, sizeof head, local, bytes})) return Posted::done;
  }
  std::atomic_ref(counters_.busy).fetch_add(1, std::memory_order_relaxed);
  return Posted::busy;
}

void Transport::on_noticed_put(Peer& peer, const Line& line, Sink& sink) {
  const auto put = read_body<NoticedPut>(line);
  const std::size_t bytes = line.bytes() - sizeof put;
  if (put.key == mapped_key && !segment_.holds(put.address, bytes))
    base::fail(MPI_ERR_INTERN,
               "shared memory: rank {} puts {} bytes at {:#x}, outside of the segment", peer.rank,
               bytes, put.address);
  std::byte* const to =
      put.key == mapped_key ? segment_.at(put.address) : reinterpret_cast<std::byte*>(put.address);
  std::memcpy(to, line.body() + sizeof put, bytes);
  sink.on_put(peer.rank, put.notice, bytes);
}

// Moves the data by the best path, as far as that is possible now. True if there is nothing left to
// move.
bool Transport::start(Stream& stream) {
  Peer& peer = *stream.peer;
  if (peer.failed) stream.ok = false;
  if (stream.bytes == 0 || peer.failed) return true;
  if (!will_stream(peer) && finish_by_cross_copy(stream)) return true;
  return advance(stream);
}

// Puts by the path that was faster so far; the target waits, so both are open.
bool Transport::put_by_choice(Stream& stream) {
  PathChoice& choice = stream.peer->put_choice;
  const std::size_t bytes = stream.bytes;
  const auto [path, timed] = choice.next(bytes);
  const double begin = timed ? seconds() : 0;
  const bool by_kernel = path == Path::cross_copy && finish_by_cross_copy(stream);
  const bool all = by_kernel || advance(stream);
  if (timed && all && stream.ok) choice.record(bytes, path, seconds() - begin);
  return all;
}

// Lets the kernel move the rest of a stream; false if it must not.
bool Transport::finish_by_cross_copy(Stream& stream) {
  const Copied copied = cross_copy_with(
      *stream.peer, Direction::write, const_cast<std::byte*>(stream.from), stream.to, stream.bytes);
  if (copied == Copied::refused) return false;
  stream.bytes = 0;
  stream.ok = copied == Copied::yes;
  return true;
}

// Streams while there is room, and as long as the target makes room. If it stops, the kernel copies
// the rest; if the kernel must not, poll() comes back to it.
bool Transport::advance(Stream& stream) {
  if (stream.bytes == 0) return true;
  Peer& peer = *stream.peer;
  // Whoever streams to us must not wait for us now: both would wait.
  const bool was_waiting = waiter_.waiting();
  if (was_waiting) waiter_.set_waiting(false);
  const Wish wish = wish_of(peer, stream.all);
  const double begin = wish.timed && stream.bytes == stream.all ? seconds() : 0;
  double full_since = 0;
  while (stream.bytes > 0 && !peer.failed) {
    if (post_piece(stream, wish.stores, begin)) {
      full_since = 0;
      continue;
    }
    if (peer.header->waiting.load(std::memory_order_relaxed) == 0) break;
    const double time = seconds();
    if (full_since == 0) full_since = time;
    if (time - full_since > patience) break;
    relax();
  }
  if (stream.bytes > 0 && !peer.failed && has_choice(peer)) {
    ++counters_.streams_cut;
    finish_by_cross_copy(stream);
  }
  if (peer.failed) {
    stream.ok = false;
    stream.bytes = 0;
  }
  if (was_waiting) waiter_.set_waiting(true);
  return stream.bytes == 0;
}

// The notice of a put whose data are there, unless its last piece brought it; false if there was no
// room for it.
bool Transport::tell(Stream& stream) {
  if (stream.notice == 0 || !stream.ok) return true;
  const Notice notice{stream.notice, stream.all};
  return post(*stream.peer, Kind::notice, only(notice));
}

// Tells the one who waits for the stream; false if that found no room.
bool Transport::finish(Stream& stream, Sink& sink) {
  if (stream.end == Stream::End::answer_get) {
    const GetDone done{stream.id, stream.ok ? 1u : 0u};
    if (!stream.peer->failed && !post(*stream.peer, Kind::get_done, only(done))) return false;
  } else if (!tell(stream)) {
    return false;
  }
  const Stream::End end = stream.end;
  const std::uint64_t id = stream.id;
  const bool ok = stream.ok;
  if (end == Stream::End::complete_put) --stream.peer->puts_under_way;
  base::List<Stream>::erase(stream);
  stream_slab_.free(&stream);
  if (end == Stream::End::complete_put) sink.on_complete(id, ok);
  return true;
}

bool Transport::advance_streams(Sink& sink) {
  bool moved = false;
  for (auto i = streams_.begin(); i != streams_.end();) {
    Stream& stream = *i;
    ++i;
    const std::size_t before = stream.bytes;
    const bool all = advance(stream);
    moved |= stream.bytes != before;
    if (all) moved |= finish(stream, sink);
  }
  return moved;
}

// --- Get.

Posted Transport::get(engine::Link& link, void* local, RemoteMemory source, std::size_t bytes,
                      std::uint64_t cookie) {
  auto& peer = static_cast<Peer&>(link);
  if (const std::byte* mapped = mapped_address(peer, source, bytes)) {
    std::memcpy(local, mapped, bytes);
    counters_.bytes_mapped += bytes;
    return Posted::done;
  }
  if (bytes == 0) return Posted::done;
  auto state = peer.failed ? PendingGet::State::failed : PendingGet::State::to_ask;
  // An owner that waits moves the data, by the kernel if we do not wait too.
  bool ask_owner = should_stream(peer);
  double begin = 0;
  if (ask_owner && has_choice(peer) && waiter_.waiting()) {
    const auto [path, timed] = peer.get_choice.next(bytes);
    ask_owner = path == Path::stream;
    if (timed) begin = seconds();
  }
  if (!ask_owner && !peer.failed) {
    switch (cross_copy_with(peer, Direction::read, local, source.address, bytes)) {
    case Copied::yes:
      if (begin > 0) {
        peer.get_choice.record(bytes, Path::cross_copy, seconds() - begin);
      }
      return Posted::done;
    case Copied::failed:
      state = PendingGet::State::failed;
      break;
    case Copied::refused:
      break;
    }
  }
  PendingGet& get = *get_slab_.make();
  get.peer = &peer;
  get.to = static_cast<std::byte*>(local);
  get.from = source.address;
  get.bytes = bytes;
  get.cookie = cookie;
  get.id = get_ids_.add(&get);
  get.begin = begin;
  get.state = state;
  gets_.push_back(get);
  unfinished_.store(true, std::memory_order_relaxed);
  if (state == PendingGet::State::to_ask) ask(get);
  return Posted::pending;
}

// A free claim word of ours, no_claim if all are in use.
std::uint32_t Transport::take_claim() {
  const auto claim = static_cast<std::uint32_t>(std::countr_one(claims_used_));
  if (claim >= SegmentHeader::claims) return no_claim;
  claims_used_ |= 1u << claim;
  return claim;
}

// Asks the owner to move the data to us. That waits for a claim if we may yet do it ourselves.
void Transport::ask(PendingGet& get) {
  if (get.claim == no_claim && has_choice(*get.peer)) {
    get.claim = take_claim();
    if (get.claim == no_claim) return;
  }
  if (get.claim != no_claim) {
    get.ticket = ++last_ticket_ != 0 ? last_ticket_ : ++last_ticket_;
    segment_.header().claim[get.claim].store(get.ticket, std::memory_order_release);
  }
  const GetRequest request{
      get.claim, get.ticket, get.id, get.from, reinterpret_cast<std::uint64_t>(get.to), get.bytes};
  if (post(*get.peer, Kind::get_request, only(request))) get.state = PendingGet::State::asked;
}

// An owner that left its wait before it read our request might come back late. Whoever sets the
// claim word to zero, owner or we, moves the data. True if it is ours to do.
bool Transport::take_back(PendingGet& get) {
  if (!has_choice(*get.peer) || should_stream(*get.peer)) return false;
  if (get.state == PendingGet::State::to_ask) return true;
  std::uint32_t ticket = get.ticket;
  return segment_.header().claim[get.claim].compare_exchange_strong(ticket, 0);
}

void Transport::finish(PendingGet& get, bool ok, Sink& sink) {
  const std::uint64_t cookie = get.cookie;
  if (get.claim != no_claim) claims_used_ &= ~(1u << get.claim);
  get_ids_.remove(get.id);
  base::List<PendingGet>::erase(get);
  get_slab_.free(&get);
  sink.on_complete(cookie, ok);
}

bool Transport::watch_gets(Sink& sink) {
  bool moved = false;
  for (auto i = gets_.begin(); i != gets_.end();) {
    PendingGet& get = *i;
    ++i;
    if (get.state == PendingGet::State::to_ask) ask(get);
    Copied copied = Copied::refused;
    if (get.state == PendingGet::State::failed || get.peer->failed) {
      copied = Copied::failed;
    } else if (take_back(get)) {
      ++counters_.gets_taken_back;
      copied = cross_copy_with(*get.peer, Direction::read, get.to, get.from, get.bytes);
      if (copied == Copied::refused) get.state = PendingGet::State::to_ask;
    }
    if (copied == Copied::refused) continue;
    finish(get, copied == Copied::yes, sink);
    moved = true;
  }
  return moved;
}

void Transport::on_get_request(Peer& peer, const Line& line) {
  const auto request = read_body<GetRequest>(line);
  reach(peer);
  if (request.claim != no_claim) {
    std::uint32_t ticket = request.ticket;
    if (!peer.header->claim[request.claim].compare_exchange_strong(ticket, 0)) return;
  }
  Stream& stream = *stream_slab_.make();
  stream.peer = &peer;
  stream.from = reinterpret_cast<const std::byte*>(request.from);
  stream.to = request.to;
  stream.all = stream.bytes = request.bytes;
  stream.end = Stream::End::answer_get;
  stream.id = request.id;
  streams_.push_back(stream);
  unfinished_.store(true, std::memory_order_relaxed);
  start(stream);
}

void Transport::on_get_done(const Line& line, Sink& sink) {
  const auto done = read_body<GetDone>(line);
  PendingGet* get = get_ids_.find(done.id);
  if (get == nullptr) return;
  if (get->begin > 0) {
    get->peer->get_choice.record(get->bytes, Path::stream, seconds() - get->begin);
  }
  finish(*get, done.ok != 0, sink);
}

} // namespace macadam::net::shm
