// SPDX-License-Identifier: BSD-3-Clause
#include "base/copy.h"
#include "base/error.h"
#include "net/shm/transport.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

// Put and get. Memory that both sides map: memcpy. Private memory: either the kernel copies it
// (cross-memory attach, one core, at any time), or it is streamed: the process that has the data
// writes fragments into chunks, from where the other's poll() copies them to their place (two
// cores, but both must be in the library). `automatic` streams to a target that does nothing but
// poll, which is faster; for one that computes the kernel copies. Where processes share cores, one
// that polls may have to wait for its turn, and the stream goes on after that.
namespace macadam::net::shm {
namespace {

// Seconds without room after which a target that seems to poll is given up: it may have lost its
// core. One that streams to us at the same time is often away for 20 to 40 us. Where processes
// share cores, it may wait for ours, and gets it.
constexpr double patience = 80e-6, patience_on_shared_cores = 200e-6;
// Seconds that a peer gets to begin its wait: one that has just announced its receive, or asked for
// data, is often on the way there, and a stream may be several times as fast as the kernel.
constexpr double grace = 0.5e-6;
// So much of a transfer the kernel copies at once: a peer that begins to wait meanwhile takes part
// in the rest, and one that streams to us finds this process back before its patience ends.
constexpr std::size_t bytes_between_looks = 64 << 10;
// Fragments that a process that waits writes before it looks for those of others: more are pushed
// out of the caches, where few a turn more is lost than it takes to copy them.
constexpr unsigned fragments_at_once = 4;
// Graces or streams in vain, one after the other, after which a peer gets one only so often.
constexpr std::uint32_t few_in_vain = 4, again_every = 32;

// Whether one more is worth a try. Counts those that are not.
bool is_worth(std::uint32_t& in_vain) {
  return in_vain < few_in_vain || ++in_vain % again_every == 0;
}

void set_data(Stream& stream, Peer& peer, const void* from, std::uint64_t to, std::size_t bytes) {
  stream.peer = &peer;
  stream.from = static_cast<const std::byte*>(from);
  stream.to = to;
  stream.all = stream.bytes = bytes;
}

} // namespace

// --- Cross-memory attach.

void Transport::probe(Peer& peer) {
  peer.pid = processes_.pid(peer.rank);
  const std::string reason =
      probe_cross_copy(system_, peer.pid, peer.header->probe_address, peer.header->probe_value);
  peer.cross_copy = peer.is_its_pid = reason.empty();
  if (!peer.cross_copy) refuse_cross_copy(peer, reason.c_str());
}

void Transport::refuse_cross_copy(Peer& peer, const char* reason) noexcept {
  peer.cross_copy = false;
  add_fallback(base::make_error(MPI_ERR_OTHER,
                                "no cross-memory attach: {}; large messages are copied through the "
                                "segment by sender and receiver",
                                reason)
                   .text);
}

// For the user, who does without it if there is no memory.
void Transport::add_fallback(const std::string& text) noexcept {
  try {
    std::string line = "shm: " + text;
    if (std::ranges::find(fallbacks_, line) == fallbacks_.end())
      fallbacks_.push_back(std::move(line));
  } catch (const std::bad_alloc&) {
  }
}

Transport::Copied Transport::cross_copy_with(Peer& peer, Direction direction, void* local,
                                             std::uint64_t remote, std::size_t bytes) {
  return accessed(peer, [&] {
    return cross_copied(peer, cross_copy(system_, direction, peer.pid, local, remote, bytes),
                        bytes);
  });
}

// What became of a copy by the kernel.
Transport::Copied Transport::cross_copied(Peer& peer, int error, std::size_t bytes) {
  ++counters_.cross_copies;
  if (error == 0) {
    counters_.bytes_cross_copied += bytes;
    return Copied::yes;
  }
  if (error == ESRCH) {
    note_end(peer);
    return Copied::failed;
  }
  // Memory that the kernel does not copy (a device's, or secret), or that is not there. Whose it is
  // can copy it, or gets the signal.
  if (error == EFAULT) return Copied::refused;
  refuse_cross_copy(peer, std::strerror(error));
  return Copied::refused;
}

// Copies to or from memory of the peer, which is mapped at `there`.
Transport::Copied Transport::copy_mapped(Peer& peer, Direction direction, void* local,
                                         std::byte* there, std::size_t bytes) {
  return accessed(peer, [&] {
    if (direction == Direction::write)
      base::copy(there, local, bytes);
    else
      base::copy(local, there, bytes);
    counters_.bytes_mapped += bytes;
    return Copied::yes;
  });
}

bool Transport::should_stream(const Peer& peer) const {
  if (!peer.cross_copy || settings_.shm_copy == base::CopyPath::pipeline) return true;
  if (settings_.shm_copy == base::CopyPath::cma) return false;
  return is_looking(peer);
}

// Whether the peer waits and polls meanwhile: on a core of its own, unless nobody has one.
bool Transport::is_looking(const Peer& peer) const {
  const Waiting waiting = Waiter::seen(*peer.header);
  if (waiter_.oversubscribed()) return waiting.is;
  return waiting.is && peer.header->asleep.load(std::memory_order_relaxed) == 0 &&
         waiting.core != system_.core();
}

// The same for data that the peer must move. In a pause it moves none, though it has room for ours.
bool Transport::should_ask(const Peer& peer) const {
  return should_stream(peer) && !(has_choice(peer) && Waiter::seen(*peer.header).pauses);
}

// The same for a long transfer.
bool Transport::will_stream(Peer& peer) const {
  if (!has_choice(peer)) return should_stream(peer);
  // A peer that seems to wait, but took nothing out of the last streams.
  if (!is_worth(peer.vain_streams)) return false;
  if (should_stream(peer)) {
    peer.vain_graces = 0;
    return true;
  }
  if (waiter_.oversubscribed()) return false;
  // Peers that copy too are not on their way to a wait: they are asked seldom.
  if (!is_worth(peer.vain_graces)) return false;
  for (const double begin = system_.now(); system_.now() - begin < grace; system_.relax()) {
    if (!should_stream(peer)) continue;
    peer.vain_graces = 0;
    return true;
  }
  ++peer.vain_graces;
  return false;
}

// Whether both ways are open for private memory of the peer.
bool Transport::has_choice(const Peer& peer) const {
  return peer.cross_copy && settings_.shm_copy == base::CopyPath::automatic;
}

// Where memory of the peer is in our address space, from now on; null if it cannot be there.
std::byte* Transport::mapped_address(Peer& peer, RemoteMemory memory, std::size_t bytes) {
  const bool own = peer.rank == rank_;
  if (memory.key == private_key)
    return own ? reinterpret_cast<std::byte*>(memory.address) : nullptr;
  const Extent extent = Extent::of_key(memory.key);
  const Mapping* mapping = nullptr;
  if (extent.holds(memory.address, bytes)) {
    mapping = own ? segment_.find(memory.address, bytes) : peer.mappings.find(memory.key);
    if (mapping == nullptr && !own) {
      const SharedMemory whole = processes_.memory_of(peer.rank);
      if (extent.offset >= peer.header->front_bytes && extent.end() <= whole.capacity)
        mapping = &peer.mappings.add(Mapping(whole, extent));
    }
  }
  if (mapping == nullptr) {
    base::fail(MPI_ERR_INTERN,
               "shared memory: rank {} has no memory with key {:#x}, address {:#x}, {} bytes",
               peer.rank, memory.key, memory.address, bytes);
  }
  return mapping->at(memory.address);
}

// The same; false if there is no room for it.
bool Transport::reach_memory(Peer& peer, RemoteMemory memory, std::size_t bytes,
                             std::byte*& address) noexcept {
  try {
    address = mapped_address(peer, memory, bytes);
    return true;
  } catch (const base::Error& error) {
    add_fallback(error.text);
  } catch (const std::bad_alloc&) {
  }
  return false;
}

// --- Put.

Posted Transport::put(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
                      std::uint64_t cookie) noexcept {
  return put(static_cast<Peer&>(link), local, target, bytes, cookie, 0);
}

Posted Transport::put(Peer& peer, const void* local, RemoteMemory target, std::size_t bytes,
                      std::uint64_t cookie, std::uint32_t notification) {
  std::byte* mapped = nullptr;
  if (!reach_memory(peer, target, bytes, mapped)) return Posted::refused;
  Stream* const made = stream_slab_.try_make();
  if (made == nullptr) return Posted::busy;
  Stream& stream = *made;
  set_data(stream, peer, local, target.address, bytes);
  stream.notification = notification;
  stream.end = Stream::End::complete_put;
  stream.id = cookie;
  if (mapped != nullptr) write_mapped(stream, mapped);
  const bool all = stream.bytes == 0 || start(stream);
  if (all && stream.ok && tell(stream)) {
    stream_slab_.free(&stream);
    return Posted::done;
  }
  take_up_later(stream);
  ++peer.puts_under_way;
  return Posted::pending;
}

// To mapped memory; or what one chunk holds, to private memory of a peer with a ring, whose poll()
// copies it out.
Posted Transport::put_at_once(engine::Link& link, const void* local, RemoteMemory target,
                              std::size_t bytes, std::uint32_t notification) noexcept {
  auto& peer = static_cast<Peer&>(link);
  if (peer.ended || peer.puts_under_way != 0) return Posted::busy;
  Stream whole;
  set_data(whole, peer, local, target.address, bytes);
  whole.notification = notification;
  const bool left = target.key != private_key
                        ? write_mapped_and_tell(whole, target)
                        : is_one_chunk(peer, bytes) && post_put_fragment(whole, For::put_ahead);
  return left ? Posted::done : Posted::busy;
}

bool Transport::write_mapped_and_tell(Stream& whole, RemoteMemory target) {
  Peer& peer = *whole.peer;
  // Not in vain, as far as a ring tells.
  if (peer.ring_state == RingState::ring && !peer.channel.out.has_room_for(1)) return false;
  std::byte* mapped = nullptr;
  if (!reach_memory(peer, target, whole.bytes, mapped)) return false;
  write_mapped(whole, mapped);
  return whole.ok && tell(whole);
}

// All of its data, to where the peer's memory is mapped.
void Transport::write_mapped(Stream& stream, std::byte* there) {
  stream.ok = copy_mapped(*stream.peer, Direction::write, const_cast<std::byte*>(stream.from),
                          there, stream.bytes) == Copied::yes;
  stream.bytes = 0;
}

void Transport::take_up_later(Stream& stream) {
  streams_.push_back(stream);
  unfinished_.store(true, std::memory_order_relaxed);
}

// Short data go the way of messages, behind all fragments of streams, and the target's poll() puts
// them in their place: so they are ordered with everything, and wake it.
Posted Transport::put_notified(engine::Link& link, const void* local, RemoteMemory target,
                               std::size_t bytes, std::uint64_t cookie,
                               std::uint32_t notification) noexcept {
  auto& peer = static_cast<Peer&>(link);
  const NotifiedPut head{target.address, target.key != private_key, notification};
  if (peer.puts_under_way == 0) {
    if (bytes > longest_notified_put) return put(peer, local, target, bytes, cookie, notification);
    if (post(peer, Kind::notified_put, {&head, sizeof head, local, bytes})) return Posted::done;
  }
  std::atomic_ref(counters_.busy).fetch_add(1, std::memory_order_relaxed);
  return Posted::busy;
}

void Transport::on_notified_put(Peer& peer, const Line& line, Sink& sink) {
  const auto put = read_body<NotifiedPut>(line);
  const std::size_t bytes = line.bytes - sizeof put;
  const Mapping* const mapping = put.mapped ? segment_.find(put.address, bytes) : nullptr;
  if (put.mapped && mapping == nullptr)
    base::fail(MPI_ERR_INTERN,
               "shared memory: rank {} puts {} bytes at {:#x}, outside of the segment", peer.rank,
               bytes, put.address);
  std::byte* const to =
      put.mapped ? mapping->at(put.address) : reinterpret_cast<std::byte*>(put.address);
  base::copy(to, line.body() + sizeof put, bytes);
  sink.on_put(peer.rank, put.notification, bytes);
}

// The kernel has moved what the notification is of, or its end.
void Transport::on_notification(Peer& peer, const Line& line, Sink& sink) {
  const auto notified = read_body<Notification>(line);
  sink.on_put(peer.rank, notified.notification, notified.bytes);
}

// Moves the data by the best path, as far as that is possible now. True if there is nothing left to
// move.
bool Transport::start(Stream& stream) {
  Peer& peer = *stream.peer;
  if (stream.bytes == 0 || peer.ended) return true;
  if (!will_stream(peer)) cross_copy_while_busy(stream);
  return advance(stream);
}

// Lets the kernel move the rest of a stream, or so much of it as it can while the peer is busy.
void Transport::cross_copy_while_busy(Stream& stream) {
  Peer& peer = *stream.peer;
  do {
    if (!cross_copy_more(stream, bytes_between_looks)) return;
  } while (stream.bytes > 0 && (peer.vain_streams >= few_in_vain || !should_stream(peer)));
}

// False if the kernel must not.
bool Transport::cross_copy_more(Stream& stream, std::size_t most) {
  if (stream.uncopyable) return false;
  const std::size_t bytes = std::min(stream.bytes, most);
  const Copied copied = cross_copy_with(*stream.peer, Direction::write,
                                        const_cast<std::byte*>(stream.from), stream.to, bytes);
  stream.uncopyable = copied == Copied::refused;
  if (stream.uncopyable) return false;
  stream.ok = stream.ok && copied == Copied::yes;
  stream.from += bytes;
  stream.to += bytes;
  stream.bytes = stream.ok ? stream.bytes - bytes : 0;
  return true;
}

// Streams while there is room, and as long as the target makes room; true at the end. If it stops,
// the kernel copies the rest; if the kernel must not, poll() comes back to it. In a wait poll()
// does so after a few fragments, as the target may stream to us, and wait for room too.
bool Transport::advance(Stream& stream) {
  if (stream.bytes == 0) return true;
  Peer& peer = *stream.peer;
  for (unsigned posted = 0; stream.bytes > 0 && !peer.ended;) {
    if (post_put_fragment(stream)) {
      stream.full_since = 0;
      ++posted;
    } else if (!makes_room(stream)) {
      return end_stream(stream);
    } else {
      posted = fragments_at_once;
    }
    if (posted >= fragments_at_once && waiter_.waiting() && stream.bytes > 0) return false;
  }
  return end_stream(stream);
}

// Whether a target that has left no room is to be waited for.
bool Transport::makes_room(Stream& stream) {
  if (!Waiter::seen(*stream.peer->header).is) return false;
  if (waiter_.oversubscribed() && !waiter_.waiting())
    waiter_.pass_core(); // a wait does between two polls
  else
    system_.relax();
  const double time = system_.now();
  if (stream.full_since == 0) stream.full_since = time;
  return time - stream.full_since <=
         (waiter_.oversubscribed() ? patience_on_shared_cores : patience);
}

// True if nothing is left to move.
bool Transport::end_stream(Stream& stream) {
  Peer& peer = *stream.peer;
  if (stream.bytes == 0) {
    peer.vain_streams = 0;
  } else if (!peer.ended && has_choice(peer) && !stream.uncopyable) {
    ++counters_.streams_cut;
    // Where cores are shared, this process may have had other things to do before the peer's turn.
    if (!waiter_.oversubscribed() || waiter_.waiting()) ++peer.vain_streams;
    cross_copy_more(stream, stream.bytes);
  }
  if (peer.ended) {
    stream.ok = false;
    stream.bytes = 0;
  }
  return stream.bytes == 0;
}

// The notification of a put whose data are there, unless its last fragment brought it; false if
// there was no room for it.
bool Transport::tell(Stream& stream) {
  if (stream.notified || !stream.ok || stream.notification == 0) return true;
  const Notification notification{stream.notification, stream.all};
  stream.notified = post(*stream.peer, Kind::notification, only(notification));
  return stream.notified;
}

bool Transport::answer(const Stream& stream) {
  const GetDone done{stream.id, stream.ok};
  return post(*stream.peer, Kind::get_done, only(done));
}

// Tells the process that waits for the stream; false if that found no room, and may yet.
bool Transport::finish(Stream& stream, Sink& sink) {
  Peer& peer = *stream.peer;
  const bool is_put = stream.end == Stream::End::complete_put;
  const bool told = is_put ? tell(stream) : peer.ended || answer(stream);
  if (!told && !peer.ended) return false;
  const std::uint64_t id = stream.id;
  const bool ok = stream.ok && told;
  if (is_put) --peer.puts_under_way;
  base::List<Stream>::erase(stream);
  stream_slab_.free(&stream);
  if (is_put) sink.on_complete(id, ok);
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

void Transport::resume() {
  waiter_.resume();
  advance_outside_wait();
}

void Transport::pause_wait() {
  waiter_.pause();
  advance_outside_wait();
}

// What was begun in a wait must not stand still while this process computes.
void Transport::advance_outside_wait() {
  for (Stream& stream : streams_)
    advance(stream);
}

// --- Get.

Posted Transport::get(engine::Link& link, void* local, RemoteMemory source, std::size_t bytes,
                      std::uint64_t cookie) noexcept {
  auto& peer = static_cast<Peer&>(link);
  std::byte* mapped = nullptr;
  if (!reach_memory(peer, source, bytes, mapped)) return Posted::refused;
  if (mapped != nullptr)
    return posted(copy_mapped(peer, Direction::read, local, mapped, bytes), cookie);
  if (bytes == 0) return Posted::done;
  auto state = peer.ended ? PendingGet::State::failed : PendingGet::State::to_ask;
  bool uncopyable = false;
  // An owner that waits moves the data, by the kernel if we do not wait too.
  if (!should_ask(peer) && !peer.ended) {
    switch (cross_copy_with(peer, Direction::read, local, source.address, bytes)) {
    case Copied::yes:
      return Posted::done;
    case Copied::failed:
      state = PendingGet::State::failed;
      break;
    case Copied::refused:
      uncopyable = true;
      break;
    }
  }
  PendingGet* const made = base::try_make(get_slab_, get_ids_);
  if (made == nullptr) return Posted::busy;
  PendingGet& get = *made;
  get.peer = &peer;
  get.to = static_cast<std::byte*>(local);
  get.from = source.address;
  get.bytes = bytes;
  get.cookie = cookie;
  get.state = state;
  get.uncopyable = uncopyable;
  gets_.push_back(get);
  unfinished_.store(true, std::memory_order_relaxed);
  if (state == PendingGet::State::to_ask) ask(get);
  return Posted::pending;
}

// Asks the owner to move the data to us. That waits for a claim if we may yet do it ourselves.
void Transport::ask(PendingGet& get) {
  if (get.claim == no_claim && has_choice(*get.peer)) {
    get.claim = claims_.take();
    if (get.claim == no_claim) return;
  }
  if (get.claim != no_claim) get.ticket = claims_.offer(get.claim);
  const GetRequest request{
      get.claim, get.ticket, get.id, get.from, reinterpret_cast<std::uint64_t>(get.to), get.bytes};
  if (post(*get.peer, Kind::get_request, only(request))) get.state = PendingGet::State::asked;
}

// True if the get is ours to do.
bool Transport::take_back(PendingGet& get) {
  if (get.uncopyable || !has_choice(*get.peer) || should_ask(*get.peer)) return false;
  return get.state == PendingGet::State::to_ask || claims_.take_back(get.claim, get.ticket);
}

void Transport::finish(PendingGet& get, bool ok, Sink& sink) {
  const std::uint64_t cookie = get.cookie;
  if (get.claim != no_claim) claims_.give_back(get.claim);
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
      ++counters_.taken_back;
      copied = cross_copy_with(*get.peer, Direction::read, get.to, get.from, get.bytes);
      get.uncopyable = copied == Copied::refused;
      if (get.uncopyable) get.state = PendingGet::State::to_ask;
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
    if (request.claim >= SegmentHeader::claims) // an index that a peer has written
      fail_damaged(peer.rank, fmt::format("claim {} of {}", request.claim, SegmentHeader::claims));
    if (!Claims::take_from(*peer.header, request.claim, request.ticket)) return;
  }
  Stream& stream = *stream_slab_.make();
  set_data(stream, peer, reinterpret_cast<const void*>(request.from), request.to, request.bytes);
  stream.end = Stream::End::answer_get;
  stream.id = request.id;
  take_up_later(stream);
  start(stream);
}

void Transport::on_get_done(const Line& line, Sink& sink) {
  const auto done = read_body<GetDone>(line);
  PendingGet* get = get_ids_.find(done.id);
  if (get == nullptr) return;
  finish(*get, done.ok, sink);
}

} // namespace macadam::net::shm
