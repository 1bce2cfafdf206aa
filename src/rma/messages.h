// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/op.h"
#include "datatype/type.h"
#include "engine/engine.h"
#include "engine/team.h"
#include "rma/control.h"
#include "rma/runs.h"
#include "rma/waiting.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace macadam::rma {

// Accesses by messages, which the target serves when it makes progress: what Jiang et al. compare
// with (section "Current Send/Receive-Based Design"), chosen by the setting `protocols`; the only
// way to memory of a neighbour that the kernel does not let us copy; and the fastest to a target
// that waits anyway, for accumulates and many short pieces (by_target.cc, scattered.h). One for a
// window, on each rank.
class Messages {
 public:
  using Posted = engine::Posted;
  using MemoryWaiter = engine::MemoryWaiter;

  // The team's context is the window's alone. `memory`: what places count from; null if they are
  // addresses. `control`: our control block, where tell() arrives. All outlive it; begins to serve
  // at once. `as_in_paper`: the data of a put are always a message of their own, behind the one
  // that tells where they belong, and long ones may be HYBRID.
  Messages(engine::Engine& engine, Waiting& waiting, const engine::Team& team,
           const datatype::PredefinedTypes& types, const datatype::PredefinedOps& ops,
           std::byte* memory, std::byte* control, bool as_in_paper);
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  // Serves no more. Nobody sends any more, as all have been in a barrier after their last flush.
  ~Messages();

  // Much is under way: what is posted next, but for what is combined, waits for a target.
  [[nodiscard]] bool is_busy() const;
  // As Transport::write(), read() and flush(), at a place of rank `to` of the window.
  Posted put(int to, const void* from, std::uint64_t place, std::size_t bytes,
             MemoryWaiter& waiter);
  Posted get(int from, void* to, std::uint64_t place, std::size_t bytes, MemoryWaiter& waiter);
  Posted flush(int to, MemoryWaiter& waiter);
  // As put(): many pieces. `packed` is all of their data, in order, and behind them as many runs,
  // which tell where they belong; taken unless busy.
  Posted put_runs(int to, std::vector<std::byte>& packed, std::size_t runs);
  // As get(): the data of all runs, of which there are `bytes`, packed.
  Posted get_runs(int from, std::span<const Run> runs, void* to, std::size_t bytes,
                  MemoryWaiter& waiter);
  // The target combines its elements in the runs with `data` (none of MPI_NO_OP), after all that
  // this rank has asked it to combine before. Never busy, as there is no other way. `old`: where
  // the values before go; null: nowhere. Long data, of more than most_combined(runs) bytes, are in
  // use until `waiter` is told, as `old` is.
  Posted combine(int to, const datatype::Op& op, const datatype::Type& element,
                 std::span<const Run> runs, std::span<const std::byte> data, void* old,
                 MemoryWaiter& waiter);
  // One element of `bytes` bytes: if it equals `compare`, it becomes `ours`; what it was goes to
  // `old`.
  Posted compare_and_swap(int to, std::uint64_t place, const void* ours, const void* compare,
                          void* old, std::size_t bytes, MemoryWaiter& waiter);
  [[nodiscard]] static constexpr std::size_t most_combined(std::size_t runs) {
    return room_inline - combining_bytes - runs * sizeof(Run);
  }
  // Writes `value` at an offset in the control block of rank `to`, once all before has landed.
  void tell(int to, std::size_t offset, Counter value);

 private:
  static constexpr std::size_t room_inline = 4000;  // bytes of data in the request itself
  static constexpr std::size_t data_alignment = 16; // of what is combined: any element's
  static constexpr std::size_t combining_bytes = 8;

 public:
  static constexpr std::size_t most_runs_of_get = room_inline / sizeof(Run);

 private:
  enum class Kind : std::uint32_t {
    put,
    put_long,
    put_runs,
    put_runs_long,
    get,
    get_runs,
    combine,
    combine_long,
    compare_and_swap,
    flush,
    tell
  };
  struct Header {
    Kind kind;
    std::uint32_t number; // of the request, among those of this origin to this target
    std::uint64_t place;  // of runs: how many
    std::uint64_t bytes;  // of tell: the value
  };
  struct Combining; // behind the header of what combines
  // So that an epoch's memory does not grow with its operations.
  static constexpr std::uint64_t most_under_way = 1024;
  static constexpr std::uint64_t most_copied = 1 << 20; // bytes of columns, here and at targets
  // For requests that may come while one is served.
  struct Slot {
    Messages* owner = nullptr;
    engine::ReceiveRequest* receive = nullptr;
    alignas(data_alignment) std::array<std::byte, sizeof(Header) + room_inline> room;
  };
  struct Waited; // a send or receive that somebody waits for
  // What comes from one origin: the number of the request that is served next, those that came
  // early, and puts whose data are still to come, with what waits for them.
  struct Arriving {
    std::uint32_t next = 0;
    std::map<std::uint32_t, std::vector<std::byte>> early;
    std::uint32_t puts = 0;
    std::vector<Header> behind;
    bool combines = false; // when data have come that are on their way: all others are early
    bool in_turn = false;  // those that came early are being served
  };

  engine::Peer& peer(int rank) { return engine_.peer((*team_.local)[rank]); }
  engine::Data bytes_of(const void* memory, std::size_t bytes) const;
  using Bytes = std::span<const std::byte>;
  void request(int to, Header header, std::initializer_list<Bytes> data = {});
  Posted receive_answer(int from, void* to, std::size_t bytes, MemoryWaiter& waiter,
                        std::uint64_t copied = 0);
  // The message is in `waited`, or the user's.
  Posted send(int to, std::int32_t tag, std::unique_ptr<Waited> waited, const void* data,
              std::size_t bytes);
  Posted send(int to, std::int32_t tag, std::unique_ptr<Waited> waited, const void* data,
              std::size_t bytes, engine::SendMode mode);
  // The same of one that comes: to memory of `waited`, or the user's.
  Posted receive(int from, std::int32_t tag, std::unique_ptr<Waited> waited, void* to,
                 std::size_t bytes);
  static std::size_t long_data_offset(std::size_t runs);
  void listen(Slot& slot);
  bool take(Slot& slot);
  void serve(int from, std::byte* request);
  void serve(int from, const Header& header, std::byte* data);
  void serve_early(int from);
  void receive_put(int from, const Header& header);
  void receive_to_combine(int from, const Header& header, const std::byte* request);
  void land(Waited& what, bool ok);
  void answer(int from, const Header& header);
  void answer(int from, std::vector<std::byte> packed);
  std::byte* at(std::uint64_t place) const;
  [[nodiscard]] RunsHere runs_here(const std::byte* runs, const Header& header) const {
    return {memory_, runs, header.place};
  }
  void spread(const std::byte* packed, const Header& header) const;
  void combine_here(int from, const Header& header, std::byte* request);
  void combine_here(int from, const Header& header, const Combining& how, std::byte* data,
                    const std::byte* runs);
  void swap_here(int from, const Header& header, const std::byte* request);

  engine::Engine& engine_;
  Waiting& waiting_;
  const engine::Team& team_;
  const datatype::PredefinedTypes& types_;
  const datatype::PredefinedOps& ops_;
  std::byte* const memory_;
  std::byte* const control_;
  const std::size_t longest_inline_;
  const engine::SendMode mode_; // who sends waits for the epoch's end: no copy that lets it go on
  bool stopping_ = false;
  std::map<int, std::uint32_t> requested_; // by target: how many times
  std::map<int, Arriving> arriving_;
  std::array<Slot, 4> slots_;
  std::uint64_t waited_ = 0; // under way
  std::uint64_t copied_ = 0; // bytes of columns that are under way
};

} // namespace macadam::rma
