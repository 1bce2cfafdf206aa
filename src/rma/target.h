// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/cursor.h"
#include "engine/engine.h"
#include "engine/transport.h"
#include "rma/control.h"
#include "rma/exposures.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace macadam::rma {

enum class Held : std::uint8_t {
  nothing,
  shared,
  exclusive,
  assumed, // MPI_MODE_NOCHECK: nobody asks for it
};

// What waits for operations of its own, and counts those that are under way.
struct Waiter : engine::MemoryWaiter {
  virtual void on_posted() = 0;

 protected:
  ~Waiter() = default;
};

// Operations that their caller waits for before it goes on.
struct Batch final : Waiter {
  void on_posted() override { ++pending; }
  void on_done(bool succeeded) noexcept override {
    --pending;
    ok = ok && succeeded;
  }
  std::uint32_t pending = 0;
  bool ok = true;
};

// Memory attached to a dynamic window, as its owner lists it for others.
struct Attached {
  std::uint64_t address = 0; // of the owner
  std::uint64_t bytes = 0;
  BothKeys keys;
};

// Where a place is: `here` in our address space, if it is mapped there, and `there` for the
// network. A place that is here may be address 0: MPI_BOTTOM, with a type of addresses.
struct Reach {
  std::optional<std::byte*> here;
  engine::RemoteMemory there;
  std::uint64_t place = 0; // as Messages count it: from the window's beginning, or an address
  // Attached memory that `there` does not name, as the place is in several regions with keys of
  // their own; else empty.
  std::vector<Attached> regions = {};
};

// A rank of the window as an origin sees it, made at the first use. It counts what is under way to
// it, so nothing is allocated for an operation. Short accesses and flushes need only the first line
// of the cache.
struct alignas(64) Target final : Waiter {
  void on_posted() override { ++pending; }
  void on_done(bool ok) noexcept override {
    --pending;
    failed = failed || !ok;
  }
  [[nodiscard]] bool has_unlanded() const { return unlanded || unserved || atomics_unlanded; }
  // As far as is known.
  [[nodiscard]] bool has_ended() const {
    return failed || peer->state == engine::PeerState::failed;
  }

  [[nodiscard]] engine::RemoteMemory memory_of(const BothKeys& keys) const {
    return is_near ? keys.near : keys.far;
  }

  // The short way: its memory in our address space, while an access epoch is open. Null otherwise.
  std::byte* direct = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t unit = 1;
  std::uint64_t last_displacement = 0; // the largest that is inside, or at the end

  bool open = false;     // accesses belong to the present epoch
  bool unlanded = false; // something was written that flush() has not seen land
  bool unserved = false; // ... by messages: an epoch's end is told by one more, behind them
  bool atomics_unlanded = false;
  bool failed = false;
  bool fetching = false;     // gets may be under way: see Window::is_fetching()
  bool is_near = false;      // reached by another network than the farthest
  bool by_messages = false;  // its memory is reached by them alone
  bool busy = false;         // see Window::Turn
  bool uses_atomics = false; // ours, of the network, and it knows (NetworkAtomics)
  bool barred = false;       // nobody uses them on its elements any more
  Held held = Held::nothing;
  std::uint32_t pending = 0; // operations under way that use our memory
  engine::Peer* peer = nullptr;

  // Notifications between it and us: how many we have sent, and how many of its own we have used
  // up.
  Counter posts_sent = 0;
  Counter posts_used = 0;
  Counter completions_sent = 0;
  Counter completions_used = 0;
  std::uint64_t ticket = 0;     // of the lock held
  std::byte* base = nullptr;    // as `direct`, always; null: reached through the network
  engine::Link* link = nullptr; // of `peer`: the network that reaches it
  engine::RemoteMemory data;
  engine::RemoteMemory control;
  std::byte* control_here = nullptr; // mapped
  AtAtomics* at_atomics = nullptr;   // there: ours
  // The network of the window's atomics; null: the processor's, on control_here.
  engine::Transport* atomics_network = nullptr;
  engine::Link* atomics_link = nullptr;
  engine::RemoteMemory atomics_control;
  engine::RemoteMemory atomics_data;
  Batch batch;
  std::uint64_t scratch[8] = {}; // for `batch`
  std::uint64_t answer = 0;      // of Window::ask_after()
  Counter counter_value = 0;     // that is sent
  std::uint8_t flag_sent = 0;    // of the NetworkAtomics of another,
  std::uint8_t flag_read = 0;    // ... in `batch`
  // For accumulates: room for a fragment, and where it belongs.
  std::vector<std::byte> fragment;
  std::vector<datatype::Segment> segments;
  std::vector<engine::RemoteMemory> word_places; // the same, for the network's atomics
  // For dynamic windows: what was attached when `version` was read, by address.
  std::uint64_t version = 0;
  std::vector<Attached> attached;
  int rank = 0;
};

// Those that have been met, by rank: pages of pointers, so that others cost next to nothing. The
// first one, which is the only one of most windows, is no step of its own on the way to a target.
class Targets {
 public:
  void grow(int ranks) { pages_.resize(static_cast<std::size_t>(ranks - 1) / page_targets); }
  void clear() {
    first_ = {};
    pages_.clear();
  }

  [[nodiscard]] Target* find(int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    if (index < page_targets) [[likely]]
      return first_[index].get();
    const auto& page = pages_[index / page_targets - 1];
    return page != nullptr ? (*page)[index % page_targets].get() : nullptr;
  }
  Target& add(std::unique_ptr<Target> target) {
    const auto index = static_cast<std::size_t>(target->rank);
    return *(page_of(index)[index % page_targets] = std::move(target));
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    const auto visit_page = [&](const Page& page) {
      for (const auto& target : page)
        if (target != nullptr) visit(*target);
    };
    visit_page(first_);
    for (const auto& page : pages_)
      if (page != nullptr) visit_page(*page);
  }

 private:
  static constexpr std::size_t page_targets = 64;
  using Page = std::array<std::unique_ptr<Target>, page_targets>;

  Page& page_of(std::size_t index) {
    if (index < page_targets) return first_;
    auto& page = pages_[index / page_targets - 1];
    if (page == nullptr) page = std::make_unique<Page>();
    return *page;
  }

  Page first_;
  std::vector<std::unique_ptr<Page>> pages_; // behind it
};

} // namespace macadam::rma
