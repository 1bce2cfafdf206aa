// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/counters.h"
#include "datatype/op.h"
#include "datatype/type.h"
#include "engine/engine.h"
#include "engine/team.h"
#include "rma/target.h"
#include "rma/waiting.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace macadam::rma {

using engine::Data;

class Messages;

// Counted always, for users: which operations are done how. Only `by_target` takes the target's
// processor.
struct Counters {
  std::uint64_t mapped = 0;
  std::uint64_t by_network = 0;
  std::uint64_t by_target = 0;
  std::uint64_t by_atomics = 0;
  std::uint64_t under_lock = 0;
  std::uint64_t locks_waited = 0;

  void list(base::CounterList& list) const;
};

// Elements in a target's memory, as the caller names them.
struct Place {
  int rank;
  MPI_Aint displacement; // in units of the target
  MPI_Count count;
  const datatype::Type* type;
};

// A request-based operation: complete once nothing of it is under way that uses our memory.
class Operation : public Waiter {
 public:
  void on_posted() final {
    target_->on_posted();
    ++pending_;
  }
  void on_done(bool ok) noexcept final {
    target_->on_done(ok);
    failed_ = failed_ || !ok;
    if (--pending_ == 0) finished(!failed_);
  }
  [[nodiscard]] bool under_way() const { return pending_ != 0; }

 protected:
  virtual ~Operation() = default;
  // The last part of it is done; not called if nothing was pending when the call ended.
  virtual void finished(bool ok) = 0;

 private:
  friend class Window;
  Target* target_ = nullptr;
  std::uint32_t pending_ = 0;
  bool failed_ = false;
};

// One process's side of a window: the memory of all ranks, as far as it has to do with them, and
// the epochs that are open. Puts and gets are loads and stores where memory is mapped, else RDMA
// writes and reads; locks and accumulates go by atomics. No rank ever has to act for another; in an
// epoch that both end it may (target_waits(), combines_at_target()).
//
// Errors are thrown as base::Error: MPI_ERR_RMA_SYNC (no epoch, or the wrong one),
// MPI_ERR_RMA_RANGE (outside the memory), MPI_ERR_DISP, MPI_ERR_PROC_ABORTED (the target has
// ended).
class Window {
 public:
  // `team` (whose rank maps the caller keeps) are the ranks of the window. All arguments outlive
  // it.
  // `by_messages`: accesses of other ranks' memory go by messages.
  Window(engine::Engine& engine, Waiting& waiting, const engine::Team& team,
         const datatype::PredefinedTypes& types, const datatype::PredefinedOps& ops,
         bool by_messages, Counters& counters);
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  // Nobody uses the memory any more: revokes its keys.
  ~Window();

  // --- Making and ending it: collective; the caller exchanges and synchronises.

  // Exposes this rank's memory, and tells what the others must know. Throws MPI_ERR_NO_MEM; after
  // that, as after any failure of join(), the window can only be destroyed.
  Exposure register_window(void* memory, std::uint64_t bytes, std::uint64_t unit);
  // `all` is what all ranks have told, by rank. Nobody meets another before all have joined, as
  // what one rank has not kept it reads from others.
  enum class Memory : std::uint8_t {
    own,      // each rank's is its own
    apart,    // the same, of a shared window: the others map it, whatever else is preferred
    together, // one block that belongs to rank 0: each rank's is behind that of the one before
    attached, // what it attaches later
  };
  void join(std::vector<Exposure> all, Memory memory);
  // Throws MPI_ERR_RMA_SYNC if an epoch is open. Then nothing of ours is on its way any more.
  void leave();

  [[nodiscard]] int rank() const { return team_.rank; }
  [[nodiscard]] int size() const { return team_.size(); }
  // Where a rank's memory is in our address space; null if it is not there, or has no bytes.
  std::byte* address_of(int rank) {
    const Target& of = target(rank);
    return of.bytes > 0 || memory_is_ == Memory::together ? of.base : nullptr;
  }
  [[nodiscard]] std::uint64_t bytes_of(int rank) { return target(rank).bytes; }
  [[nodiscard]] std::uint64_t unit_of(int rank) { return target(rank).unit; }
  // The first rank that has memory; the last one if none has.
  [[nodiscard]] int first_with_memory() const { return first_with_memory_; }
  // The info hint no_locks: lock() and lock_all() throw MPI_ERR_RMA_SYNC.
  bool no_locks = false;

  // --- Access. The origin's memory may be used until the operation is complete locally.

  // From now on direct() has nothing: the caller wants to see each access.
  void close_short_way() { short_way_ = false; }
  // Whether `bytes` bytes at a place are there for the taking: their address, or null, and then the
  // long way tells why or does it. `stores`: by plain stores, which a flush orders.
  [[nodiscard]] std::byte* direct(int rank, MPI_Aint displacement, std::size_t bytes, bool stores) {
    std::byte* const there = place_here(rank, displacement, bytes);
    if (there == nullptr) [[unlikely]]
      return nullptr;
    ++counters_.mapped;
    stored_ |= stores;
    return there;
  }
  // Request-based operations belong to passive-target epochs: refuses others.
  void check_request(const char* call);
  // `operation` may be null. True: complete already.
  bool put(const Data& origin, const Place& place, Operation* operation);
  bool get(const Data& origin, const Place& place, Operation* operation);

  // target = origin op target for each element, of which the old values go to `result` if it is not
  // null. Atomic per element with all other of these of this window; complete at the origin at
  // return, but for fences and post and wait, which end it. Throws MPI_ERR_OP, MPI_ERR_TYPE.
  void accumulate(const Data& origin, const Data* result, const Place& place,
                  const datatype::Op& op);
  // The short ways, of one type on all sides; false: take the long one. `result` may be null, and
  // `origin` for MPI_NO_OP.
  bool accumulate_directly(const void* origin, void* result, MPI_Count count,
                           const datatype::Type& type, int rank, MPI_Aint displacement,
                           const datatype::Op& op);
  bool compare_and_swap_directly(const void* origin, const void* compare, void* result,
                                 const datatype::Type& type, int rank, MPI_Aint displacement);
  // One element of a predefined type: `result` is what was there; `origin` is stored if that equals
  // `compare`. Atomic as accumulate().
  void compare_and_swap(const void* origin, const void* compare, void* result, const Place& place);

  // --- Dynamic windows: displacements are addresses of the target.

  // Opens memory of this process to the others; the address names it in detach(). Both throw
  // MPI_ERR_RMA_ATTACH (overlaps with what is attached; is not attached) and MPI_ERR_RMA_FLAVOR.
  void attach(void* memory, std::uint64_t bytes);
  void detach(const void* memory);

  // --- Synchronisation.

  // The asserts of a fence: `alone` if no access was before and none follows, so nobody waits.
  void fence(bool alone, bool access_follows);
  void lock(int rank, bool exclusive, bool unchecked);
  void unlock(int rank);
  void lock_all(bool unchecked);
  void unlock_all();
  // All that was begun to this rank, or to all, is complete: here and there, or here only.
  void flush(int rank);
  void flush_all();
  void flush_local(int rank);
  void flush_local_all();
  // The program's own loads and stores of the window's memory, in order with others' accesses.
  void sync();
  // `origins` may access this rank's memory until they complete (post, wait), `targets` be accessed
  // by it (start, complete): ranks of the window.
  void post(std::vector<int> origins, bool unchecked);
  void wait();
  [[nodiscard]] bool test();
  void start(std::vector<int> targets, bool unchecked);
  void complete();

  // For the hang report, where an epoch stands: ranks of the window.
  struct Standing {
    std::uint32_t fences = 0; // begun so far
    bool in_fence = false;
    int awaits_lock_of = -1; // none
    int awaits_post_of = -1;
    std::vector<int> await_complete_of;
  };
  [[nodiscard]] Standing standing() const;
  // The locks that this process holds: of which rank, whether alone.
  template <class Visit>
  void for_each_lock(Visit&& visit) const {
    for (const Target* const target : touched_)
      if (target->held != Held::nothing) visit(target->rank, target->held == Held::exclusive);
  }

 private:
  enum class Access : std::uint8_t { none, fence, started, locks, all_locked };

  enum class Direction : std::uint8_t { write, read };
  class FailureProbe; // post.h
  class Pieces;       // pieces.h
  class Scattered;    // scattered.h
  class End;          // post.h

  // Where bytes are in our address space, if they are, inside of the memory, and an epoch is open.
  [[nodiscard]] std::byte* place_here(int rank, MPI_Aint displacement, std::size_t bytes) const {
    const Target* const target = targets_.find(rank);
    if (target == nullptr || target->direct == nullptr) [[unlikely]]
      return nullptr;
    // A negative displacement is larger than any.
    if (static_cast<std::uint64_t>(displacement) > target->last_displacement) [[unlikely]]
      return nullptr;
    const std::uint64_t offset = static_cast<std::uint64_t>(displacement) * target->unit;
    if (bytes > target->bytes - offset) [[unlikely]]
      return nullptr;
    return target->direct + offset;
  }

  // window.cc
  Target& target(int rank) {
    Target* const known = targets_.find(rank);
    return known != nullptr ? *known : meet(rank);
  }
  Target& meet(int rank);
  [[nodiscard]] Exposure exposure_of(int rank);
  void find_memory(Target& target, const Exposure& exposure);
  void expect_messages();
  void begin_messages();
  [[nodiscard]] BothKeys register_both(void* memory, std::size_t bytes);
  void deregister_both(const BothKeys& keys) noexcept;

  // epoch.cc
  Target& opened(int rank);
  void open(Target& target);
  void close(Target& target);
  void close_all();
  void post_flush(Target& target);
  void flush_messages(Target& target);
  void wait_landed(Target& target);
  void wait_for_touched();
  void flush_touched();
  void land_stores();
  void look_now_and_then();
  void check_passive(const Target& target, const char* call) const;
  void check_passive(const char* call) const;
  void check_no_access(const char* call) const;
  void check_no_fence_access(const char* call) const;
  static void check_alive(const Target& target);
  [[nodiscard]] const Target* find_lost() const;
  void ask_after(Target& target);

  // notification_counters.cc
  void meet_all();
  [[nodiscard]] Counter counter(std::size_t offset) const;
  void send_notification(Target& target, std::size_t offset, Counter value);
  void open_started(Target& target);
  [[nodiscard]] bool has_completed(int origin, FailureProbe& failure_probe);
  void check_exposed(const char* call) const;
  void end_exposure();

  // remote_atomics.h, remote_atomics.cc: the control block of a target
  void post_fetch_add(Target& target, std::size_t offset, std::uint64_t add, std::uint64_t& result);
  void post_store(Target& target, std::size_t offset, const void* value, std::size_t bytes);
  void post_load(Target& target, std::size_t offset, std::uint64_t& result);
  void take_network_lock(Target& target, std::size_t lock, bool exclusive, std::uint64_t& ticket);
  void give_network_lock(Target& target, std::size_t lock, bool exclusive, std::uint64_t ticket);
  void wait_for_turn(Target& target, std::size_t turn, std::uint64_t ticket);
  void take_lock(Target& target, std::size_t lock, bool exclusive, std::uint64_t& ticket);
  void give_lock(Target& target, std::size_t lock, bool exclusive, std::uint64_t ticket);
  AtAtomics& at_atomics(const Target& target, int rank) const;
  [[nodiscard]] bool is_alone(const Target& target) const;
  template <class Change>
  void atomically(Target& target, Change&& change);
  std::uint64_t come_to_accumulate(Target& target, std::uint64_t how);
  void await_accumulate(Target& target, std::uint64_t ticket);
  void go_from_accumulate(Target& target, std::uint64_t ticket, std::uint64_t how);
  [[nodiscard]] bool anybody_in_bulk(const Target& target);
  void take_bulk(Target& target, std::uint64_t& ticket);
  void give_bulk(Target& target, std::uint64_t ticket);
  template <class Work>
  void run_in_bulk(Target& target, bool bars_atomics, Work&& work);
  void await_atomics(Target& target, int rank);

  // network_atomics.cc
  class AtNetworkAtomics;
  [[nodiscard]] NetworkAtomics& network_atomics(int rank) const;
  [[nodiscard]] bool by_network(const Target& target, const datatype::Type& element) const;
  bool find_words(const Target& target, const Reach& to,
                  std::span<const datatype::Segment> segments,
                  std::vector<engine::RemoteMemory>& words) const;
  void post_atomic(Target& target, const engine::Atomic& what, engine::RemoteMemory at,
                   std::uint64_t& result);
  [[nodiscard]] bool combine_by_network(Target& target, const datatype::Op& op,
                                        const datatype::Type& element,
                                        std::span<const engine::RemoteMemory> words,
                                        const std::byte* ours, std::byte* old);
  [[nodiscard]] bool swap_by_network(Target& target, const Reach& to, const void* origin,
                                     const void* compare, void* result);
  void bar_atomics(Target& target);
  void keep_out(Target& target, int origin);

  // post.h
  class Turn;
  static bool orders_writes(const Target& target);
  static bool is_fetching(Target& target);
  void wait_idle(const Target& target);
  template <class Post>
  engine::Posted posted(Target& target, Post&& post_it);
  template <class Post>
  void post_counted(Target& target, Waiter& waiter, Post&& post_it);
  template <class Post>
  void run_once(Target& target, Post&& post_it);
  template <class Post>
  void add_to_batch(Target& target, Post&& post_it);
  void wait_for_batch(Target& target);

  // direct.cc
  [[nodiscard]] std::byte* elements_here(const datatype::Type& type, MPI_Count count, int rank,
                                         MPI_Aint displacement) const;

  // transfer.cc
  [[nodiscard]] Reach reach(Target& target, const Place& place);
  [[nodiscard]] static bool kernel_copies(const Target& target) {
    return target.peer->transport->limits().target_blocks > 1;
  }
  [[nodiscard]] bool target_ends_too() const;
  [[nodiscard]] bool target_waits(const Target& target) const;
  [[nodiscard]] bool prefers_message(Target& target, Direction direction, const Place& place,
                                     bool whole);
  bool make_room_for_message();
  void move_segment(Target& target, Direction direction, void* ours, const Reach& to,
                    std::ptrdiff_t at, std::size_t bytes, Waiter& waiter);
  void move_by_message(Target& target, Direction direction, void* ours, std::uint64_t place,
                       std::size_t bytes, Waiter& waiter);
  void put_by_message(Target& target, const void* from, std::uint64_t place, std::size_t bytes,
                      Waiter& waiter);
  void get_by_message(Target& target, void* to, std::uint64_t place, std::size_t bytes,
                      Waiter& waiter);
  void write(Target& target, const void* from, const Reach& to, std::ptrdiff_t at,
             std::size_t bytes, Waiter& waiter);
  void read(Target& target, void* to, const Reach& from, std::ptrdiff_t at, std::size_t bytes,
            Waiter& waiter);
  void move(Target& target, Direction direction, const Data& origin, const Place& place,
            const Reach& to, Waiter& waiter);

  // deferred.cc
  struct Deferred {
    Target* target;
    Direction direction;
    void* ours;
    Reach to;
    std::size_t bytes;
  };
  [[nodiscard]] std::uint8_t at_end_word(AtEnd where) const;
  [[nodiscard]] AtEnd at_end(const Target& target) const;
  void tell_at_end(AtEnd where);
  void run_deferred(const Deferred& what, bool by_message);
  void run_all_deferred();

  // by_target.cc
  [[nodiscard]] bool combines_at_target() const;
  void accumulate_by_target(Target& target, const Data* origin, const Data* result,
                            const Place& place, const Reach& to, const datatype::Op& op,
                            const datatype::Type& element);
  void swap_by_target(Target& target, const Reach& to, const void* origin, const void* compare,
                      void* result, std::size_t bytes);

  // blocks.cc
  [[nodiscard]] static bool takes_blocks(const Target& target, const Reach& to);
  bool move_list(Target& target, Direction direction, std::span<const engine::Block> ours,
                 std::span<const engine::Block> theirs, std::uint64_t key, Waiter& waiter);
  bool move_packed(Target& target, Direction direction, std::byte* packed,
                   std::span<const engine::Block> theirs, std::uint64_t key, Waiter& waiter);
  void move_blocks(Target& target, Direction direction, const Data& origin, const Place& place,
                   const Reach& to, Waiter& waiter);

  // attach.cc
  void refresh(Target& target);
  [[nodiscard]] Reach reach_attached(Target& target, const Place& place, std::uint64_t first_byte,
                                     std::uint64_t bytes);
  void publish_attached(auto&& change);
  void reserve_attached(std::size_t count);

  // accumulate.cc
  struct Accumulation;
  [[nodiscard]] bool by_processor(const datatype::Type& element) const;
  void land_before_atomic(Target& target);
  void combine_fragment(Target& target, Accumulation& what, std::size_t bytes);
  void combine_copied(Target& target, Accumulation& what, std::size_t bytes);
  static void begin(Operation* operation, Target& target);
  static bool end(Operation* operation);

  // A program that only accesses memory, and flushes or unlocks, still lets its process answer
  // others, now and then.
  static constexpr unsigned most_calls_before_look = 64;

  engine::Engine& engine_;
  engine::Transport& far_; // connects any two ranks of the window
  bool short_way_ = true;
  Waiting& waiting_;
  const engine::Team& team_;
  const Layout layout_;
  Exposures exposures_;
  engine::RemoteMemory whole_; // of Memory::together
  int first_with_memory_ = 0;
  Targets targets_;
  std::vector<Target*> touched_;      // opened in the present epoch
  std::vector<Deferred> deferred_;    // to its end
  bool atomics_by_processor_ = false; // else by the network that connects all
  bool data_by_processor_ = false;    // ... short accumulates too, without the lock
  Memory memory_is_ = Memory::own;
  Access access_ = Access::none;
  bool unchecked_ = false; // MPI_MODE_NOCHECK of lock_all
  bool stored_ = false;    // to mapped memory, since the last full fence
  std::size_t locks_ = 0;  // held, in Access::locks
  unsigned calls_before_look_ = most_calls_before_look;
  std::uint32_t fences_ = 0;
  bool in_fence_ = false;
  int awaits_lock_of_ = -1;
  int awaits_post_of_ = -1;
  bool awaits_completions_ = false; // of `origins_`
  bool exposed_ = false;            // to `origins_`, by post()
  std::vector<int> origins_;
  std::vector<int> targets_started_; // of start()
  Exposure own_;
  std::byte* memory_ = nullptr;
  std::byte* control_ = nullptr;
  std::vector<const void*> own_empty_;   // attached, of no bytes: listed for nobody
  std::vector<Attached> own_attached_;   // what is listed for others, by address,
  Attached* attached_list_ = nullptr;    // ... here,
  std::size_t attached_room_ = 0;        // ... where there is room for so many
  std::vector<Attached> attached_lists_; // all that were ever in use: memory of the network
  const datatype::PredefinedTypes& types_;
  const datatype::PredefinedOps& ops_;
  const bool prefers_messages_;
  bool may_use_messages_ = false;      // in epochs that a target ends too: begun with the first
  std::unique_ptr<Messages> messages_; // null: nobody needs them
  Counters& counters_;                 // of the process
};

} // namespace macadam::rma
