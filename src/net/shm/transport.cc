// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/transport.h"

#include "base/error.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace macadam::net::shm {
namespace {

constexpr std::size_t longest_eager = std::size_t{1} << 20;
// Messages read from one queue or ring in one poll(), so that no source starves the others.
constexpr unsigned batch = 32;
// Polls that find nothing until this process looks whether its peers still run; and after each
// sleep.
constexpr unsigned polls_between_looks = 1 << 14;
// Nobody wakes a process when there is room again for what it could not send.
constexpr unsigned longest_sleep_for_room_us = 500;

// Lines of a queue or ring of about `bytes`.
std::uint64_t buffer_lines(std::int64_t bytes) {
  return std::bit_ceil(std::max(static_cast<std::uint64_t>(bytes) / line_bytes, fewest_lines));
}

// Seats beside one for each neighbour: for processes of other jobs.
constexpr std::uint32_t spare_seats = 1024;

std::uint32_t seats_for(const boot::Processes& processes) {
  return static_cast<std::uint32_t>(processes.job().local_size()) + spare_seats;
}

// The queue stands behind the header and the seats, and shares no page with them.
std::uint64_t queue_offset(std::uint32_t seats) {
  constexpr std::uint64_t grain = Extent::grain;
  return (seats_offset + seats * sizeof(Seat) + grain - 1) / grain * grain;
}

// Whether what a header says lies in the front that it begins.
bool is_sound(const Extent& front, const SegmentHeader& header) {
  return std::has_single_bit(header.queue_lines) && header.queue_lines >= fewest_lines &&
         front.holds_lines(header.queue_offset, header.queue_lines) && header.seats > 0 &&
         queue_offset(header.seats) <= header.queue_offset && header.chunk_count <= Chunks::most &&
         header.chunk_bytes % line_bytes == 0 &&
         front.holds_lines(header.chunks_offset, std::uint64_t{header.chunk_count} *
                                                     (1 + header.chunk_bytes / line_bytes));
}

engine::Limits make_limits(const base::Settings& settings) {
  const std::size_t eager = std::min(static_cast<std::size_t>(settings.shm_eager), longest_eager);
  const auto hybrid = static_cast<std::size_t>(settings.shm_hybrid);
  return {.name = "shm",
          .message = eager + longest_header,
          .eager = eager,
          .hybrid = hybrid,
          .orders_bytes = false,
          .packet = 4096, // the kernel copies by pages, and to call it costs as much as some
          .cheap_copy = eager,
          .notified_put = std::numeric_limits<std::size_t>::max(),
          .orders_puts = true, // what tells goes the way of messages
          .orders_writes = true,
          .atomics = true,
          .maps = true,
          .local_blocks = most_blocks,
          .target_blocks = most_blocks,
          .copies = true};
}

// A message that is being delivered. Its lines are given back also if it is damaged.
template <class Source>
class Delivery {
 public:
  explicit Delivery(Source& source) : source_(source) {}
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;
  ~Delivery() { source_.pop(); }

 private:
  Source& source_;
};

std::uint64_t random_word() {
  std::uint64_t word = 0;
  if (getrandom(&word, sizeof word, 0) != sizeof word) word = static_cast<std::uint64_t>(getpid());
  return word;
}

SharedCores shared_cores(const boot::Job& job) {
  if (!job.oversubscribed()) return {};
  return {static_cast<unsigned>(job.cores()), static_cast<unsigned>(job.local_size())};
}

} // namespace

Transport::Transport(const boot::Processes& processes, const base::Settings& settings,
                     System& system)
    : processes_(processes), settings_(settings), system_(system), rank_(processes.own()),
      limits_(make_limits(settings)), queue_lines_(buffer_lines(settings.shm_queue)),
      chunk_plan_(plan_chunks(queue_offset(seats_for(processes)) + queue_lines_ * line_bytes)),
      segment_(processes.job(), chunk_plan_.offset + Chunks::memory_bytes(chunk_plan_)),
      probe_word_(random_word()),
      waiter_(system, segment_.front().header(), shared_cores(processes.job()), settings.spin),
      ring_lines_(buffer_lines(settings.shm_ring)) {
  lay_out();
  limits_.shares_cores = !waiter_.has_core();
  if (static_cast<std::size_t>(settings.shm_eager) > longest_eager) {
    fallbacks_.push_back(fmt::format("shm: shm_eager is {} bytes, the transport takes {} at most",
                                     settings.shm_eager, longest_eager));
  }
  if (!waiter_.has_barrier()) {
    fallbacks_.push_back("shm: the kernel has no membarrier(), a sleeping rank looks for messages "
                         "every millisecond");
  }
}

Transport::~Transport() = default;

void Transport::lay_out() {
  SegmentHeader& header = *new (segment_.front().base()) SegmentHeader;
  header.front_bytes = segment_.front().extent().bytes;
  header.queue_offset = queue_offset(seats_for(processes_));
  header.queue_lines = queue_lines_;
  header.seats = seats_for(processes_);
  header.chunks_offset = chunk_plan_.offset;
  header.chunk_bytes = chunk_plan_.bytes;
  header.chunk_count = chunk_plan_.count;
  header.probe_address = reinterpret_cast<std::uint64_t>(&probe_word_);
  header.probe_value = probe_word_;
  header.magic = SegmentHeader::magic_value;
  std::byte* const front = segment_.front().base();
  take_seat(front, processes_.own_name());
  chunks_ = Chunks(front, chunk_plan_);
  queue_ = SharedQueueReader(header, CircularBuffer(front + header.queue_offset, queue_lines_));
}

engine::Link& Transport::connect(Rank rank, engine::PeerState& state) {
  Peer& peer = peers_.get(rank);
  state = engine::PeerState::connected;
  if (peer.failed) {
    state = engine::PeerState::failed;
  } else if (is_there(peer)) {
    reach(peer);
  } else if (const auto why = processes_.why_never(rank)) {
    state = engine::PeerState::connecting; // what it has sent is read before it fails
    give_up(peer, *why);
  } else {
    state = engine::PeerState::connecting;
    if (std::ranges::find(awaited_, &peer) == awaited_.end()) awaited_.push_back(&peer);
    unfinished_.store(true, std::memory_order_relaxed);
  }
  return peer;
}

// Whether the peer can be reached: it has published, and knows of our job.
bool Transport::is_there(Peer& peer) {
  if (peer.rank == rank_ || peer.header != nullptr) return true;
  if (!processes_.fetch(peer.rank)) return false;
  const std::uint32_t own_job = processes_.own_name().job;
  if (processes_.name(peer.rank).job == own_job) return true;
  if (peer.front == nullptr) {
    std::optional<Mapping> kept = take_kept_front(peer.rank);
    if (!kept) {
      // The only rank of a job shares its segment when it meets another one.
      const Mapping probe(processes_.memory_of(peer.rank), {0, Extent::grain});
      if (probe.header().magic == 0) return false;
      waiter_.wake(probe.header()); // it may sleep until this process has come
    }
    const Mapping& front = kept ? peer.mappings.add(std::move(*kept)) : map_front(peer);
    peer.front = &front.header();
    peer.front_key = front.extent().key();
  }
  return std::ranges::any_of(peer.front->jobs, [&](const std::atomic<std::uint32_t>& job) {
    return job.load(std::memory_order_acquire) == own_job + 1;
  });
}

// Lets the processes of other jobs write here.
void Transport::know(Rank processes) {
  clear_seats();
  if (processes > static_cast<Rank>(processes_.job().size()) && !segment_.is_shared()) {
    segment_.share();
    shared_heap_.emplace(segment_);
  }
  SegmentHeader& header = segment_.front().header();
  for (const std::uint32_t job : processes_.others()) {
    const std::uint32_t number = job + 1;
    const auto is = [](std::uint32_t wanted) {
      return [wanted](const auto& place) { return place.load() == wanted; };
    };
    if (std::ranges::any_of(header.jobs, is(number))) continue;
    const auto place = std::ranges::find_if(header.jobs, is(0));
    if (place == std::end(header.jobs))
      base::fail(MPI_ERR_OTHER, "shared memory: this process talks to {} other jobs, the most",
                 SegmentHeader::most_jobs);
    place->store(number, std::memory_order_release);
  }
}

// Reaches peers that have published meanwhile; fails those that never will.
bool Transport::reach_awaited(Sink& sink) {
  bool any = false;
  for (std::size_t i = 0; i < awaited_.size();) {
    Peer& peer = *awaited_[i];
    std::optional<std::string> why;
    try {
      if (is_there(peer))
        reach(peer);
      else
        why = processes_.why_never(peer.rank);
    } catch (const base::Error& error) {
      why = error.text;
    }
    if (peer.header == nullptr && !why) {
      ++i;
      continue;
    }
    awaited_.erase(awaited_.begin() + static_cast<std::ptrdiff_t>(i));
    any = true;
    if (why) give_up(peer, *why);
    if (peer.ended) continue; // report_failed() tells
    sink.on_peer(peer.rank, engine::PeerState::connected);
  }
  return any;
}

void Transport::give_up(Peer& peer, const std::string& why) {
  add_fallback(fmt::format("rank {} is not reached: {}", peer.rank, why));
  note_end(peer);
}

// Maps the front of the peer's memory at the first call.
Peer& Transport::reach(Peer& peer) {
  if (peer.header != nullptr) [[likely]]
    return peer;
  const Mapping& front = peer.rank == rank_      ? segment_.front()
                         : peer.front != nullptr ? *peer.mappings.find(peer.front_key)
                                                 : map_front(peer);
  SegmentHeader& header = front.header();
  if (peer.rank != rank_ && !is_sound(front.extent(), header))
    fail_damaged(peer.rank, "the header of its segment names a queue or chunks outside of it");
  const std::optional<std::uint32_t> seat =
      peer.rank == rank_ ? own_seat : take_seat(front.base(), processes_.own_name());
  if (!seat)
    base::fail(MPI_ERR_OTHER,
               "shared memory: all {} places for processes that write to rank {} are taken; it has "
               "one for each rank of its job here, and {} for other jobs",
               header.seats, peer.rank, spare_seats);
  peer.seat = *seat;
  peer.queue =
      SharedQueueWriter(header, CircularBuffer(front.at(header.queue_offset), header.queue_lines),
                        seats_in(front.base(), header.seats)[peer.seat]);
  peer.chunks =
      Chunks(front.base(), {header.chunks_offset, header.chunk_bytes, header.chunk_count});
  peer.header = &header;
  if (peer.rank != rank_) {
    probe(peer);
    // Only peers of this job: what is mapped here of another job goes when the two part.
    if (peer.rank < static_cast<Rank>(processes_.job().size()))
      waiter_.meet(header, peer.rank < rank_);
  }
  return peer;
}

// As much as our own, which is right if the peer has the same settings.
const Mapping& Transport::map_front(Peer& peer) {
  const SharedMemory memory = processes_.memory_of(peer.rank);
  Mapping front(memory, segment_.front().extent());
  const SegmentHeader& header = front.header();
  if (header.magic != SegmentHeader::magic_value) {
    base::fail(
        MPI_ERR_OTHER,
        "shared memory: the segment of rank {} starts with {:#x}, needed {:#x}: all ranks of "
        "a job must run the same version of the library",
        peer.rank, header.magic, SegmentHeader::magic_value);
  }
  const Extent extent{0, header.front_bytes};
  if (extent.bytes % Extent::grain != 0 || extent.bytes == 0 || extent.bytes > memory.capacity)
    fail_damaged(peer.rank, "the header of its segment begins a front of impossible size");
  if (extent.bytes != front.extent().bytes) front = Mapping(memory, extent);
  return peer.mappings.add(std::move(front));
}

bool Transport::post(Peer& peer, Kind kind, const MessageBody& body) {
  if (peer.ring_state == RingState::ring) [[likely]] {
    const PairChannel::Written written = peer.channel.write(kind, body);
    if (written == PairChannel::Written::nothing) [[unlikely]]
      return false;
    ++(written == PairChannel::Written::to_mailbox ? counters_.sent_by_mailbox
                                                   : counters_.sent_by_ring);
  } else {
    if (peer.ring_state != RingState::queue)
      return change_ring_state(peer) && post(peer, kind, body);
    if (!peer.queue.write(kind, peer.seat, body)) return false;
    ++counters_.sent_by_queue;
  }
  wake(peer);
  return true;
}

Posted Transport::send(engine::Link& link, const void* header, std::size_t header_bytes,
                       const void* payload, std::size_t payload_bytes) noexcept {
  if (header_bytes + payload_bytes > limits_.message) [[unlikely]] {
    base::fail(MPI_ERR_INTERN, "shared memory: a message of {} bytes, at most {} are taken",
               header_bytes + payload_bytes, limits_.message);
  }
  MessageBody body{header, header_bytes, payload, payload_bytes};
  auto& peer = static_cast<Peer&>(link);
  const bool whole = header_bytes + payload_bytes <= longest_inline;
  const bool is_long =
      whole && payload_bytes >= worth_past_caches; // take_chunk() counts the others
  body.past_caches = is_long && goes_one_way(peer);
  if (peer.puts_under_way == 0 &&
      (whole ? post(peer, Kind::message, body) : post_fragments(peer, body))) [[likely]] {
    if (is_long) ++peer.long_one_way;
    return Posted::done;
  }
  std::atomic_ref(counters_.busy).fetch_add(1, std::memory_order_relaxed);
  return Posted::busy;
}

bool Transport::idle(unsigned fruitless, unsigned longest_us) {
  // The caller has tried again to send what was refused; if it was refused again, it waits for
  // room.
  const std::uint64_t busy = std::atomic_ref(counters_.busy).load(std::memory_order_relaxed);
  const bool wants_room = busy_at_idle_.load(std::memory_order_relaxed) != busy ||
                          unfinished_.load(std::memory_order_relaxed);
  if (wants_room) {
    busy_at_idle_.store(busy, std::memory_order_relaxed);
    longest_us = std::min(longest_us, longest_sleep_for_room_us);
  }
  const bool sleeps =
      waiter_.idle(fruitless, longest_us, in_transfer_.load(std::memory_order_relaxed));
  if (sleeps) in_transfer_.store(false, std::memory_order_relaxed);
  return sleeps;
}

bool Transport::poll(Sink& sink) noexcept {
  return breakdown_.poll(sink, [&] { return look(sink); });
}

void Transport::abandon(Sink& sink) noexcept {
  abandoned_ = true;
  processes_.job().give_up();
  close_memory();
  while (!streams_.empty()) {
    Stream& stream = streams_.pop_front();
    const bool is_put = stream.end == Stream::End::complete_put;
    const std::uint64_t cookie = stream.id;
    stream_slab_.free(&stream);
    if (is_put) sink.on_complete(cookie, false);
  }
  while (!gets_.empty())
    finish(gets_.front(), false, sink);
  report_lost(sink);
}

inline bool Transport::look(Sink& sink) {
  unsigned moved = 0;
  for (std::size_t i = 0; i < rings_.size(); ++i)
    moved += read_ring(*rings_[i], sink);
  moved += read_queue(sink);
  if (unfinished_.load(std::memory_order_relaxed)) [[unlikely]]
    moved += take_up(sink) ? 1 : 0;
  if (moved == 0) {
    if (++vain_polls_ >= polls_between_looks || waiter_.has_slept()) [[unlikely]]
      look_for_ended();
    return false;
  }
  waiter_.rouse();
  return true;
}

// The line behind a message has to come from the other core, and to look at it delays what this
// process stores next, maybe the answer: that is left to the next poll, unless messages come fast.
unsigned Transport::read_ring(Peer& peer, Sink& sink) {
  const bool busy = peer.busy;
  bool more = true;
  unsigned read = 0;
  for (; read < batch && more; ++read) {
    const Line* line = peer.channel.next();
    if (line == nullptr) {
      peer.busy = false;
      break;
    }
    if (line->bytes > line_body) {
      if (!peer.channel.holds(*line)) [[unlikely]]
        fail_damaged_line(peer.rank, *line);
      if (line->bytes >= worth_past_caches) peer.long_one_way = 0;
      fetch_rest(*line);
    }
    if (line->kind == Kind::message) [[likely]] {
      const Delivery delivery(peer.channel);
      sink.on_message(peer.rank, line->body(), line->bytes);
      more = busy;
    } else if (line->kind == Kind::ring_end) {
      on_ring_end(peer);
      return read + 1;
    } else {
      const Kind kind = line->kind;
      const Delivery delivery(peer.channel);
      handle(peer, *line, sink);
      // A long message has ended: the receive of the next is often posted only after it, and
      // without one its data would be copied twice.
      more = kind != Kind::fragment || peer.fragments_left > 0;
    }
    peer.busy = true;
  }
  peer.heard += read;
  return read;
}

unsigned Transport::read_queue(Sink& sink) {
  unsigned read = 0;
  for (; read < batch; ++read) {
    const Line* line = queue_.next();
    if (line == nullptr) break;
    if (line->bytes > line_body && !queue_.holds(*line)) [[unlikely]]
      fail_damaged_line(line->place, *line);
    const Delivery delivery(queue_);
    if (line->kind != Kind::pad) {
      Peer* const met = line->place < seated_.size() ? seated_[line->place] : nullptr;
      if (met == &nobody_) [[unlikely]] // late, for what is over
        continue;
      Peer& peer = met != nullptr ? *met : meet_in_seat(*line);
      // The peer is back in the queue, so all it wrote into its ring comes before.
      while (peer.ring_read)
        [[unlikely]] {
          if (read_ring(peer, sink) == 0) fail_damaged_line(peer.rank, *line);
        }
      if (line->kind == Kind::message)
        sink.on_message(peer.rank, line->body(), line->bytes);
      else
        handle(peer, *line, sink);
      if (++peer.heard >= peer.consider_at) [[unlikely]]
        consider_ring(peer);
    }
  }
  return read;
}

// The first message from a seat.
Peer& Transport::meet_in_seat(const Line& line) {
  const std::span<const Seat> seats = seats_here();
  const std::optional<Rank> process =
      line.place < seats.size() ? process_in(seats[line.place]) : std::nullopt;
  if (!process) fail_damaged_line(line.place, line);
  if (seated_.size() <= line.place) seated_.resize(line.place + 1);
  // It has published, though this process, which may be waiting for that, has not seen it yet.
  return *(seated_[line.place] = &reach(peers_.get(*process)));
}

// Those that are taken.
std::span<Seat> Transport::seats_here() const {
  const Mapping& front = segment_.front();
  const std::uint32_t all = seats_for(processes_);
  return seats_in(front.base(), all).first(std::min(all, front.header().seats_taken.load()));
}

// Nothing: none that this process knows has come so far as to write.
std::optional<Rank> Transport::process_in(const Seat& seat) const {
  const auto name = seat.name();
  return name ? processes_.find(*name) : std::nullopt;
}

// Messages of the transport itself.
void Transport::handle(Peer& peer, const Line& line, Sink& sink) {
  if (line.bytes < least_body(line.kind)) fail_damaged_line(peer.rank, line);
  switch (line.kind) {
  case Kind::fragment:
    return on_fragment(peer, line, sink);
  case Kind::put_fragment:
    return on_put_fragment(peer, line, sink);
  case Kind::notified_put:
    return on_notified_put(peer, line, sink);
  case Kind::notification:
    return on_notification(peer, line, sink);
  case Kind::get_request:
    return on_get_request(peer, line);
  case Kind::get_done:
    return on_get_done(line, sink);
  case Kind::grant:
    return on_grant(peer, line);
  case Kind::revoke:
    return on_revoke(peer);
  case Kind::to_ring:
    return on_to_ring(peer);
  case Kind::pad:
    return;
  case Kind::message:
  case Kind::ring_end:
    break;
  }
  fail_damaged_line(peer.rank, line);
}

// Apart, so that those who read messages have none of this.
void Transport::fail_damaged_line(Rank writer, const Line& line) {
  fail_damaged(writer, fmt::format("a message of kind {} and {} bytes, which cannot stand there",
                                   static_cast<unsigned>(line.kind), line.bytes));
}

void Transport::fail_damaged(Rank writer, const std::string& what) {
  base::fail(MPI_ERR_INTERN,
             "shared memory: what rank {} has written is damaged: {}; some process of the job has "
             "written where it must not: look for a wild pointer (AddressSanitizer, valgrind)",
             writer, what);
}

bool Transport::take_up(Sink& sink) {
  breakdown_.raise();
  settle_rings();
  fail_ended();
  bool moved = advance_streams(sink);
  moved |= watch_gets(sink);
  moved |= report_lost(sink);
  moved |= report_failed(sink);
  moved |= reach_awaited(sink);
  unfinished_.store(!owing_.empty() || !streams_.empty() || !gets_.empty() || !ended_.empty() ||
                        !awaited_.empty(),
                    std::memory_order_relaxed);
  return moved;
}

RemoteMemory Transport::register_cached(void* memory, std::size_t bytes) {
  if (const Mapping* const mapping = segment_.find(memory, bytes);
      mapping != nullptr && mapping->is_shared() == segment_.is_shared())
    return {mapping->address_of(memory), mapping->extent().key()};
  return {reinterpret_cast<std::uint64_t>(memory), private_key};
}

std::size_t Transport::memory_bytes() const {
  const std::size_t chunks = touched_.count() * (line_bytes + chunk_plan_.bytes);
  const std::size_t seats = seats_here().size_bytes();
  return sizeof(SegmentHeader) + seats + queue_lines_ * line_bytes + chunks + heap_.used() +
         (shared_heap_ ? shared_heap_->used() : 0);
}

// After abandon() peers may still read what they were told of: it stays as it is.
void Transport::free(void* memory) noexcept {
  if (abandoned_) return;
  const Mapping* const mapping = segment_.find(memory, 1);
  const bool of_first = mapping != nullptr && mapping->is_shared() != segment_.is_shared();
  (of_first ? heap_ : heap()).free(memory);
}

Transport::InUse Transport::in_use() const {
  InUse now{.streams = stream_slab_.live(), .gets = get_slab_.live(), .claims = claims_.in_use()};
  for (const std::uint64_t word : permits_used_)
    now.permits += static_cast<std::size_t>(std::popcount(word));
  for (std::uint32_t chunk = 0; chunk < chunks_.count(); ++chunk)
    now.chunks += chunks_.holder(chunk).has_value() ? 1 : 0;
  return now;
}

void Transport::list_counters(base::CounterList& list) const {
  const auto add = [&](const char* name, const char* text, const std::uint64_t& value) {
    list.add("shm", name, text, value);
  };
  add("sent_by_queue", "messages written to shared receive queues", counters_.sent_by_queue);
  add("sent_by_ring", "messages written to rings", counters_.sent_by_ring);
  add("sent_by_mailbox", "answers written to the mailbox that brought the question",
      counters_.sent_by_mailbox);
  add("busy", "messages that found no room at first", counters_.busy);
  add("rings_granted", "rings given to busy peers", counters_.rings_granted);
  add("rings_revoked", "rings taken back for busier peers", counters_.rings_revoked);
  add("bytes_mapped", "bytes put or got in memory that both sides map", counters_.bytes_mapped);
  add("bytes_cross_copied", "bytes put or got by cross-memory attach",
      counters_.bytes_cross_copied);
  add("cross_copies", "times the kernel was asked for that", counters_.cross_copies);
  add("bytes_streamed", "bytes put in fragments through the segment", counters_.bytes_streamed);
  add("streams_cut", "streams that cross-memory attach finished, as the target stopped polling",
      counters_.streams_cut);
  add("taken_back", "copies left to a peer that stopped polling before it began them",
      counters_.taken_back);
  add("yields", "times a wait gave its core to others", waiter_.counts().yields);
  add("sleeps", "times a wait slept in the kernel", waiter_.counts().sleeps);
  add("wakes", "sleeping peers woken", counters_.wakes);
  add("cores_left", "moves away from a core that a waiting peer was on",
      waiter_.counts().cores_left);
}

} // namespace macadam::net::shm
