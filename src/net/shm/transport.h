// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/id_table.h"
#include "base/list.h"
#include "base/settings.h"
#include "base/slab.h"
#include "boot/processes.h"
#include "engine/breakdown.h"
#include "engine/transport.h"
#include "net/shm/access.h"
#include "net/shm/bulk/claims.h"
#include "net/shm/bulk/copy.h"
#include "net/shm/heap.h"
#include "net/shm/peer.h"
#include "net/shm/system.h"
#include "net/shm/wait.h"

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace macadam::net::shm {

using engine::Posted;
using engine::RemoteMemory;
using engine::Sink;

// RemoteMemory::key of what peers cannot map: `address` is one of the owner's address space. Other
// keys are those of an Extent.
inline constexpr std::uint64_t private_key = 0;

struct Counters {
  std::uint64_t sent_by_queue = 0;
  std::uint64_t sent_by_ring = 0;
  std::uint64_t sent_by_mailbox = 0;
  std::uint64_t busy = 0;
  std::uint64_t rings_granted = 0;
  std::uint64_t rings_revoked = 0;
  std::uint64_t bytes_mapped = 0;
  std::uint64_t bytes_cross_copied = 0;
  std::uint64_t cross_copies = 0;
  std::uint64_t bytes_streamed = 0;
  std::uint64_t streams_cut = 0;
  std::uint64_t taken_back = 0;
  std::uint64_t wakes = 0;
};

// A put that goes in fragments through chunks: this core copies in, the target's copies out, both
// at the same time.
struct Stream : base::ListNode<> {
  enum class End : std::uint8_t {
    complete_put, // `id` is the cookie of our put
    answer_get,   // `id` is the get of the peer whose memory we fill
  };
  Peer* peer = nullptr;
  const std::byte* from = nullptr;
  std::uint64_t to = 0; // address at the target
  std::size_t all = 0;
  std::size_t bytes = 0;          // of these still to go
  std::uint32_t notification = 0; // 0: none
  bool notified = false;          // the target has it
  End end = End::complete_put;
  std::uint64_t id = 0;
  bool ok = true;
  bool uncopyable = false; // for the kernel
  double full_since = 0;   // since when the target leaves no room, 0: it does
};

// A get whose data the owner of the memory was asked to stream to us.
struct PendingGet : base::ListNode<> {
  Peer* peer = nullptr;
  std::byte* to = nullptr;
  std::uint64_t from = 0; // address at the owner
  std::size_t bytes = 0;
  std::uint64_t cookie = 0;
  std::uint64_t id = 0;
  std::uint32_t claim = no_claim; // our claim word, which holds `ticket` until someone takes it
  std::uint32_t ticket = 0;
  enum class State : std::uint8_t { to_ask, asked, failed } state = State::to_ask;
  bool uncopyable = false; // for the kernel
};

// Shared memory as a network. One instance a process; several in one process work too, each used by
// one thread.
class Transport : public engine::Transport {
 public:
  // Lays out this process's segment; then it may be published. All outlive the transport. Throws
  // MPI_ERR_NO_MEM if there is no memory for the queue.
  Transport(const boot::Processes& processes, const base::Settings& settings,
            System& system = real_system());
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  ~Transport() override;

  [[nodiscard]] const engine::Limits& limits() const noexcept override { return limits_; }
  [[nodiscard]] bool reaches(Rank peer) const noexcept override {
    return processes_.is_local(peer);
  }
  engine::Link& connect(Rank peer, engine::PeerState& state) override;
  void know(Rank processes) override;
  bool forget(Rank first, Rank processes) override;
  Posted send(engine::Link& link, const void* header, std::size_t header_bytes, const void* payload,
              std::size_t payload_bytes) noexcept override;
  Posted put(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
             std::uint64_t cookie) noexcept override;
  Posted put_at_once(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
                     std::uint32_t notification) noexcept override;
  Posted put_notified(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
                      std::uint64_t cookie, std::uint32_t notification) noexcept override;
  Posted get(engine::Link& link, void* local, RemoteMemory target, std::size_t bytes,
             std::uint64_t cookie) noexcept override;
  RemoteMemory register_cached(void* memory, std::size_t bytes) override;
  void release_cached(RemoteMemory) noexcept override {}
  std::uint64_t issue(engine::Link& link) noexcept override;
  bool use(engine::Link& issuer, std::uint64_t permit) noexcept override;
  engine::Revoked revoke(engine::Link& link, std::uint64_t permit) noexcept override;
  void discard(engine::Link& link, std::uint64_t permit) noexcept override;
  [[nodiscard]] bool is_mapped(RemoteMemory memory) const noexcept override;
  [[nodiscard]] bool is_direct_fast() noexcept override;
  std::byte* mapped(engine::Link& link, RemoteMemory memory, std::size_t bytes) override;
  const char* why_not_direct(engine::Link& link) noexcept override;
  void wake_peer(engine::Link& link) noexcept override;
  [[nodiscard]] bool peer_sleeps(engine::Link& link) noexcept override;
  [[nodiscard]] bool has_left(engine::Link& link) noexcept override;
  Posted write(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
               std::uint64_t cookie) noexcept override;
  Posted read(engine::Link& link, void* local, RemoteMemory target, std::size_t bytes,
              std::uint64_t cookie) noexcept override;
  Posted write_blocks(engine::Link& link, std::span<const engine::Block> local,
                      std::span<const engine::Block> target, std::uint64_t key,
                      std::uint64_t cookie, engine::Block around) noexcept override;
  Posted read_blocks(engine::Link& link, std::span<const engine::Block> local,
                     std::span<const engine::Block> target, std::uint64_t key, std::uint64_t cookie,
                     engine::Block around) noexcept override;
  Posted atomic(engine::Link& link, const engine::Atomic& what, RemoteMemory target,
                std::uint64_t* result, std::uint64_t cookie) noexcept override;
  void* allocate(std::size_t bytes) override { return heap().allocate(bytes); }
  [[nodiscard]] std::string why_not_allocated() const override { return segment_.why_not(); }
  void free(void* memory) noexcept override;
  bool poll(Sink& sink) noexcept override;
  void abandon(Sink& sink) noexcept override;
  bool idle(unsigned fruitless, unsigned longest_us) override;
  void begin_wait() override { waiter_.begin_wait(); }
  [[nodiscard]] bool waits(engine::Link& link) const noexcept override {
    return is_looking(static_cast<const Peer&>(link));
  }
  void give_turn() override { waiter_.give_turn(); }
  void resume() override;
  void pause_wait() override;
  void wake() override { waiter_.rouse(); }
  void look_after_peers() override { look_for_ended(); }
  void sleep_sooner() override { waiter_.sleep_sooner(); }
  [[nodiscard]] double now() const override { return system_.now(); }
  void list_counters(base::CounterList& list) const override;
  [[nodiscard]] std::vector<std::string> fallbacks() const override { return fallbacks_; }
  [[nodiscard]] std::size_t memory_bytes() const override;

  // What this process uses now, for tests: all of it is free when nothing is under way.
  struct InUse {
    std::size_t streams = 0;
    std::size_t gets = 0;
    std::size_t claims = 0;
    std::size_t permits = 0;
    std::size_t chunks = 0; // of ours, taken by whomever
  };
  [[nodiscard]] InUse in_use() const;

 protected:
  // Something waits for what peers do in their polls: long data under way, room to ask for.
  [[nodiscard]] bool is_unfinished() const { return unfinished_.load(std::memory_order_relaxed); }

 private:
  enum class Copied : std::uint8_t { yes, refused, failed };

  // What is left of a peer that this process has parted from: it may still write here, until it
  // says in its seat that it does so no more.
  // Of a process that this one has parted from, by its name.
  struct KeptFront {
    boot::Secret secret; // its job's, in its generation
    std::uint32_t rank;
    Mapping mapping;
  };
  struct Parted {
    std::uint32_t seat = 0;
    std::byte* ring_memory = nullptr;
    std::optional<std::uint64_t> last_position; // once it has left or ended: all it wrote is before
  };

  // parting.cc
  void part_from_seat(std::uint32_t place, Rank process);
  void part_from(Peer& peer);
  void clear_seats();
  [[gnu::cold, gnu::noinline]] void free_chunks_of(std::uint32_t seat);

  // transport.cc
  void lay_out();
  Peer& reach(Peer& peer);
  bool is_there(Peer& peer);
  bool reach_awaited(Sink& sink);
  [[nodiscard]] std::span<Seat> seats_here() const;
  [[nodiscard]] std::optional<Rank> process_in(const Seat& seat) const;
  [[nodiscard]] bool is_of(const Seat& seat, const Peer& peer) const {
    return seat.name() == processes_.name(peer.rank);
  }
  [[gnu::cold, gnu::noinline]] Peer& meet_in_seat(const Line& line);
  const Mapping& map_front(Peer& peer);
  void keep_front(Peer& peer);
  std::optional<Mapping> take_kept_front(Rank process);
  bool post(Peer& peer, Kind kind, const MessageBody& body);
  void wake(Peer& peer) {
    if (waiter_.wake(*peer.header)) [[unlikely]]
      ++counters_.wakes;
  }
  unsigned read_queue(Sink& sink);
  unsigned read_ring(Peer& peer, Sink& sink);
  void handle(Peer& peer, const Line& line, Sink& sink);
  [[noreturn, gnu::cold, gnu::noinline]] static void fail_damaged_line(Rank writer,
                                                                       const Line& line);
  [[noreturn, gnu::cold]] static void fail_damaged(Rank writer, const std::string& what);
  [[gnu::always_inline]] bool look(Sink& sink);
  bool take_up(Sink& sink);

  // ended.cc
  void look_for_ended();
  void note_end(Peer& peer) noexcept;
  void give_up(Peer& peer, const std::string& why);
  [[nodiscard]] bool is_accessing(const Seat& seat) const noexcept;
  void close_memory() noexcept;
  void fail_ended();
  bool report_failed(Sink& sink);

  // rings.cc
  void consider_ring(Peer& peer);
  [[nodiscard]] bool may_share_mailbox(const Peer& peer) const;
  void make_mailbox(Peer& peer);
  void on_grant(Peer& peer, const Line& line);
  void on_revoke(Peer& peer);
  void on_to_ring(Peer& peer);
  void on_ring_end(Peer& peer);
  void take_ring_back(Peer& peer);
  bool change_ring_state(Peer& peer);
  void owe(Peer& peer);
  bool settle(Peer& peer);
  void settle_rings();

  // Copies from or to the peer's memory, unless the peer has barred this process from it.
  template <class Copy>
  Copied accessed(Peer& peer, Copy&& copy);

  // direct.cc
  Posted access(Peer& peer, Direction direction, void* local, RemoteMemory target,
                std::size_t bytes, std::uint64_t cookie);
  Posted access_blocks(Peer& peer, Direction direction, std::span<const engine::Block> local,
                       std::span<const engine::Block> target, std::uint64_t key,
                       std::uint64_t cookie);
  Posted posted(Copied copied, std::uint64_t cookie);
  bool report_lost(Sink& sink);

  // fragments.cc
  [[nodiscard]] ChunkPlan plan_chunks(std::uint64_t offset) const;
  [[nodiscard]] const Chunks& home_of(const Peer& peer, ChunkName name) const;
  enum class For : std::uint8_t { message, put, put_ahead };
  bool take_chunk(Peer& peer, ChunkName& name, For use, std::size_t needed);
  bool take_in_turn(const Peer& peer, std::size_t needed, ChunkName& name);
  bool take_own_chunk(ChunkName& name);
  bool take_next_chunk(ChunkTurn& turn, std::size_t needed, ChunkName& name);
  bool take_other_chunk(ChunkName& name);
  [[nodiscard]] bool goes_one_way(const Peer& peer) const;
  void fill(const Peer& peer, std::byte* to, const std::byte* from, std::size_t bytes) const;
  [[nodiscard]] const std::byte* data_of(const Peer& peer, const Fragment& fragment,
                                         std::uint64_t before) const;
  void pass_on(Peer& peer, ChunkName name);
  void take_chunks_back(const Peer& peer);
  bool post_fragments(Peer& peer, const MessageBody& message);
  [[nodiscard]] static bool is_one_chunk(const Peer& peer, std::size_t bytes);
  bool post_put_fragment(Stream& stream, For use = For::put);
  bool post_copied(Stream& stream, ChunkName name, std::size_t bytes, std::size_t tail);
  void on_fragment(Peer& peer, const Line& line, Sink& sink);
  void on_put_fragment(Peer& peer, const Line& line, Sink& sink);

  // stream.cc
  void probe(Peer& peer);
  void refuse_cross_copy(Peer& peer, const char* reason) noexcept;
  void add_fallback(const std::string& text) noexcept;
  Copied cross_copy_with(Peer& peer, Direction direction, void* local, std::uint64_t remote,
                         std::size_t bytes);
  Copied cross_copied(Peer& peer, int error, std::size_t bytes);
  Copied copy_mapped(Peer& peer, Direction direction, void* local, std::byte* there,
                     std::size_t bytes);
  [[nodiscard]] bool should_stream(const Peer& peer) const;
  [[nodiscard]] bool should_ask(const Peer& peer) const;
  [[nodiscard]] bool is_looking(const Peer& peer) const;
  [[nodiscard]] bool will_stream(Peer& peer) const;
  [[nodiscard]] bool has_choice(const Peer& peer) const;
  [[nodiscard]] std::byte* mapped_address(Peer& peer, RemoteMemory memory, std::size_t bytes);
  bool reach_memory(Peer& peer, RemoteMemory memory, std::size_t bytes,
                    std::byte*& address) noexcept;
  Posted put(Peer& peer, const void* local, RemoteMemory target, std::size_t bytes,
             std::uint64_t cookie, std::uint32_t notification);
  bool write_mapped_and_tell(Stream& whole, RemoteMemory target);
  void write_mapped(Stream& stream, std::byte* there);
  bool start(Stream& stream);
  bool tell(Stream& stream);
  bool answer(const Stream& stream);
  bool advance(Stream& stream);
  bool makes_room(Stream& stream);
  bool end_stream(Stream& stream);
  void cross_copy_while_busy(Stream& stream);
  bool cross_copy_more(Stream& stream, std::size_t most);
  bool finish(Stream& stream, Sink& sink);
  bool advance_streams(Sink& sink);
  void advance_outside_wait();
  void take_up_later(Stream& stream);
  void ask(PendingGet& get);
  bool take_back(PendingGet& get);
  void finish(PendingGet& get, bool ok, Sink& sink);
  bool watch_gets(Sink& sink);
  void on_notified_put(Peer& peer, const Line& line, Sink& sink);
  void on_notification(Peer& peer, const Line& line, Sink& sink);
  void on_get_request(Peer& peer, const Line& line);
  void on_get_done(const Line& line, Sink& sink);

  // What is allocated from now on.
  Heap& heap() { return shared_heap_ ? *shared_heap_ : heap_; }

  // Ours in its segment.
  static Seat& seat_at(const Peer& peer) {
    return seats_in(reinterpret_cast<std::byte*>(peer.header), peer.header->seats)[peer.seat];
  }

  static constexpr std::uint32_t own_seat = 0; // in its own segment a process comes first

  const boot::Processes& processes_;
  const base::Settings& settings_;
  System& system_;
  const Rank rank_;
  engine::Limits limits_;
  const std::uint64_t queue_lines_;
  const ChunkPlan chunk_plan_;
  Segment segment_;
  std::uint64_t probe_word_; // what peers try to read, see SegmentHeader
  Waiter waiter_;
  SharedQueueReader queue_;
  Chunks chunks_;
  std::bitset<Chunks::most> touched_;           // of them: those that were used
  std::array<Rank, Chunks::most> lent_to_ = {}; // whom we sent data through them last
  ChunkTurn turn_{0, Chunks::in_turn};
  ChunkTurn others_{Chunks::in_turn, chunk_plan_.count};
  Heap heap_{segment_};
  std::optional<Heap> shared_heap_; // takes its place when the segment is shared later
  PeerTable peers_;
  std::vector<Peer*> seated_; // by their seats here; null: not met yet
  Peer nobody_;               // ... this: parted from
  std::vector<KeptFront> kept_fronts_;
  std::vector<Parted> parted_;

  // Something found no room or is not finished: poll() takes it up. Atomic, as idle() looks at it.
  std::atomic<bool> unfinished_ = false;
  std::atomic<bool> in_transfer_ = false;       // fragments of a put went by since the last sleep
  std::atomic<std::uint64_t> busy_at_idle_ = 0; // Counters::busy when idle() was called last

  std::uint64_t ring_lines_ = 0;
  std::int64_t rings_given_ = 0;
  std::vector<Peer*> rings_; // that may hold messages for us
  std::vector<Peer*> owing_; // a GRANT, a REVOKE or a marker found no room

  base::Slab<Stream> stream_slab_;
  base::List<Stream> streams_; // in the order in which they began
  base::Slab<PendingGet> get_slab_;
  base::List<PendingGet> gets_;
  base::IdTable<PendingGet> get_ids_;
  Claims claims_{segment_.front().header()};
  std::array<std::uint64_t, SegmentHeader::permits / 64> permits_used_ = {}; // a bit for each
  std::uint64_t last_permit_ = 0;
  std::vector<Peer*> awaited_; // wanted, and not published yet
  std::vector<Peer*> ended_;   // not yet reported as failed
  unsigned vain_polls_ = 0;    // since this process looked for them
  unsigned failures_seen_ = 0;
  std::vector<std::uint64_t> lost_; // cookies of direct accesses to them

  engine::Breakdown breakdown_;
  bool abandoned_ = false;
  std::vector<std::string> fallbacks_;
  Counters counters_;
};

template <class Copy>
Transport::Copied Transport::accessed(Peer& peer, Copy&& copy) {
  const Access access(seat_at(peer), *peer.header);
  const Copied copied = access.is_barred() ? Copied::failed : copy();
  if (!access.is_barred()) return copied;
  note_end(peer); // what was read may be other data
  return Copied::failed;
}

} // namespace macadam::net::shm
