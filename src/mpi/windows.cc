// SPDX-License-Identifier: BSD-3-Clause
// Windows made, freed and asked about.
#include "mpi/window.h"

#include "mpi/agree.h"
#include "mpi/calls.h"
#include "mpi/collectives.h"
#include "mpi/comm_create.h"
#include "mpi/names.h"
#include "mpi/process.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <string_view>

namespace macadam::mpi {

using rma::Exposure;
using Memory = rma::Window::Memory;

// --- Waiting.

void ProcessWaiting::look() {
  self_.instance->look();
}

void ProcessWaiting::wait(bool (*done)(void*), void* argument, For what) {
  // Nobody wakes a process that waits for memory to change.
  const unsigned longest_us = what == For::memory ? 20 : Instance::longest_sleep_us;
  self_.instance->wait_until([&] { return done(argument); }, longest_us);
}

// --- Windows.

namespace {

constexpr const char* alignment_key = "mpi_minimum_memory_alignment";

// Section "Window Creation": what is not set is as here.
constexpr std::array known_hints = {
    Hints::Known{"no_locks", "false"},
    Hints::Known{"accumulate_ordering", "rar,raw,war,waw"},
    Hints::Known{"accumulate_ops", "same_op_no_op"},
    Hints::Known{"mpi_accumulate_granularity", "0"},
    Hints::Known{"same_size", "false"},
    Hints::Known{"same_disp_unit", "false"},
    Hints::Known{"alloc_shared_noncontig", "false"},
    Hints::Known{alignment_key, "1"},
};

} // namespace

Window::Window(Process& self, Communicator& inside, int made_by)
    : base::Object(base::ObjectKind::window), comm(&inside), ranks(inside.size()), waiting(self),
      rma(*self.instance->engine, waiting, inside.p2p, self.types, self.ops,
          self.settings.protocols == base::Protocols::sender, self.instance->windows.counters),
      flavor(made_by), hints(known_hints) {
  if (self.settings.check) rma.close_short_way();
}

Window::~Window() = default;

namespace {

// Whether the standard knows the value; what it does not know is as if it were not set.
bool can_be(std::string_view key, std::string_view value) {
  if (key == "accumulate_ops") return value == "same_op" || value == "same_op_no_op";
  if (key == "mpi_accumulate_granularity" || key == alignment_key) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    return !value.empty() && std::ranges::all_of(value, is_digit);
  }
  if (key != "accumulate_ordering") return value == "true" || value == "false";
  if (value == "none") return true;
  constexpr std::array<std::string_view, 4> orders = {"rar", "raw", "war", "waw"};
  for (std::size_t at = 0; at <= value.size();) { // separated by commas
    const std::size_t end = std::min(value.find(',', at), value.size());
    if (std::ranges::find(orders, value.substr(at, end - at)) == orders.end()) return false;
    at = end + 1;
  }
  return true;
}

// Whether it can be that of a window that is made already.
bool can_become(std::string_view key, std::string_view value) {
  const bool is_settled =
      key == "no_locks" || key == "alloc_shared_noncontig" || key == alignment_key;
  return !is_settled && can_be(key, value);
}

bool is_set(const Window& window, std::string_view key) {
  return window.hints[key] == "true";
}

// A window without memory yet.
Window& make_window(Process& self, Communicator& comm, int flavor) {
  check_intra(comm, "comm");
  CommunicatorRef own(&duplicate_ranks(self, comm), {&self});
  own->name = "window " + number_of(own->p2p.context);
  own->of_library = true;
  Window& window = *self.instance->windows.all.make(self, *own, flavor);
  own.release();
  self.instance->windows.live.push_back(window);
  window.errhandler = &share(self, self.errors_are_fatal);
  return window;
}

// Nobody uses its memory any more.
void discard(Process& self, Window& window) {
  const CommunicatorRef own(window.comm, {&self});
  void* const allocated = window.allocated;
  drop(self, window.errhandler);
  base::List<Window>::erase(window);
  give_back(self.instance->windows.all, window);
  if (allocated != nullptr) self.instance->nearest().free(allocated);
}

// Memory of the library for a window, which local peers map, aligned as the user wants it; null for
// none.
void* allocate(Process& self, Window& window, MPI_Aint bytes, const char* function) {
  if (bytes == 0) return nullptr;
  engine::Transport& near = self.instance->nearest();
  const std::string wanted(window.hints[alignment_key]);
  const std::uint64_t alignment = std::max(std::strtoull(wanted.c_str(), nullptr, 10), 1ull);
  MPI_Aint room = 0;
  if (__builtin_add_overflow(bytes, alignment - 1, &room)) {
    base::fail(MPI_ERR_NO_MEM, "{}: {} bytes aligned to {} are more than there are addresses",
               function, bytes, wanted);
  }
  window.allocated = near.allocate(static_cast<std::size_t>(room));
  if (window.allocated == nullptr) {
    base::fail(MPI_ERR_NO_MEM, "{}: {} bytes cannot be had from {} memory: {}", function, room,
               near.limits().name, near.why_not_allocated());
  }
  const auto address = reinterpret_cast<std::uintptr_t>(window.allocated);
  const std::uint64_t before = (alignment - address % alignment) % alignment;
  return static_cast<std::byte*>(window.allocated) + before;
}

template <class Fill>
void create(Process& self, Communicator& comm, int flavor, const Info* info, MPI_Win* win,
            Fill&& fill) {
  Window& window = make_window(self, comm, flavor);
  try {
    window.hints.take(info, can_be);
    window.rma.no_locks = is_set(window, "no_locks");
    fill(window);
  } catch (...) {
    discard(self, window);
    throw;
  }
  *win = window.handle();
}

// Exposes the memory that `find` gives, tells the others about it, and learns of theirs.
template <class Find>
void join(Process& self, Window& window, MPI_Aint bytes, MPI_Aint unit, Memory kind, Find&& find) {
  Exposure own;
  std::vector<Exposure> all;
  agree(self, *window.comm, attempt([&] {
          window.base = find();
          own = window.rma.register_window(window.base, static_cast<std::uint64_t>(bytes),
                                           static_cast<std::uint64_t>(unit));
          all.resize(static_cast<std::size_t>(window.ranks));
        }));
  window.size = bytes;
  window.unit = static_cast<int>(std::min<MPI_Aint>(unit, INT_MAX));
  allgather_bytes(self, *window.comm, &own, sizeof own, all.data());
  window.rma.join(std::move(all), kind);
  if (rma::Exposures::row_bytes(window.ranks) != 0) barrier(self, *window.comm); // rows are read
}

// Found here, and not by the accesses of other ranks.
void check_memory(const void* memory, MPI_Aint size) {
  if (memory == nullptr && size > 0) [[unlikely]]
    base::fail(MPI_ERR_BUFFER,
               "base is a null pointer, but size is {}; give the address of the memory, or a size "
               "of 0",
               size);
}

} // namespace

void win_create(Process& self, void* base, MPI_Aint size, MPI_Aint disp_unit, Info* info,
                Communicator& comm, MPI_Win* win) {
  check_memory(base, size);
  create(self, comm, MPI_WIN_FLAVOR_CREATE, info, win, [&](Window& window) {
    join(self, window, size, disp_unit, Memory::own, [&] { return base; });
  });
}

void win_allocate(Process& self, MPI_Aint size, MPI_Aint disp_unit, Info* info, Communicator& comm,
                  void* baseptr, MPI_Win* win) {
  create(self, comm, MPI_WIN_FLAVOR_ALLOCATE, info, win, [&](Window& window) {
    join(self, window, size, disp_unit, Memory::own,
         [&] { return allocate(self, window, size, "MPI_Win_allocate"); });
    *static_cast<void**>(baseptr) = window.base;
  });
}

void win_allocate_shared(Process& self, MPI_Aint size, MPI_Aint disp_unit, Info* info,
                         Communicator& comm, void* baseptr, MPI_Win* win) {
  create(self, comm, MPI_WIN_FLAVOR_SHARED, info, win, [&](Window& window) {
    for (int rank = 0; rank < window.ranks; ++rank) {
      const engine::Rank each = (*window.comm->p2p.local)[rank];
      const engine::Limits& network = self.instance->engine->networks().reaching(each).limits();
      if (network.maps || window.ranks == 1) continue;
      base::fail(MPI_ERR_RMA_SHARED,
                 "rank {} of the communicator is reached over {}, so it shares no memory with this "
                 "one; MPI_Comm_split_type with MPI_COMM_TYPE_SHARED makes a communicator of those "
                 "that do",
                 rank, network.name);
    }
    const bool apart = is_set(window, "alloc_shared_noncontig");
    MPI_Aint own = size;
    if (!apart) {
      std::vector<MPI_Aint> sizes(static_cast<std::size_t>(window.ranks));
      allgather_bytes(self, *window.comm, &size, sizeof size, sizes.data());
      MPI_Aint sum = 0;
      for (const MPI_Aint each : sizes) { // by all, so that all find the same
        if (__builtin_add_overflow(sum, each, &sum))
          base::fail(MPI_ERR_SIZE, "the sizes of all ranks are together beyond 2^63 - 1 bytes");
      }
      own = window.comm->rank() == 0 ? sum : 0;
    }
    join(self, window, size, disp_unit, apart ? Memory::apart : Memory::together,
         [&] { return allocate(self, window, own, "MPI_Win_allocate_shared"); });
    if (!apart) window.base = window.rma.address_of(window.comm->rank());
    *static_cast<void**>(baseptr) = window.base;
  });
}

void win_create_dynamic(Process& self, Info* info, Communicator& comm, MPI_Win* win) {
  create(self, comm, MPI_WIN_FLAVOR_DYNAMIC, info, win, [&](Window& window) {
    join(self, window, 0, 1, Memory::attached, [] { return nullptr; });
  });
}

void win_attach(Process&, Window& window, void* base, MPI_Aint size) {
  check_memory(base, size);
  window.rma.attach(base, static_cast<std::uint64_t>(size));
}

void win_detach(Process&, Window& window, const void* base) {
  window.rma.detach(base);
}

void win_free(Process& self, MPI_Win* win) {
  Window& window = *self.find<Window>(*win, base::ObjectKind::window);
  window.rma.leave();
  if (window.attributes) window.attributes->clear(window.handle());
  // Others may access our memory until they are here.
  barrier(self, *window.comm);
  self.handles.forget(window.handle());
  discard(self, window);
  *win = MPI_WIN_NULL;
}

void win_shared_query(Process&, Window& window, int rank, MPI_Aint* size, MPI_Aint* disp_unit,
                      void* baseptr) {
  if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC) {
    base::fail(MPI_ERR_RMA_FLAVOR, "a dynamic window has no memory of its own to be asked for");
  }
  const int wanted = rank == MPI_PROC_NULL ? window.rma.first_with_memory() : rank;
  std::byte* const address = window.rma.address_of(wanted);
  *size = address != nullptr ? static_cast<MPI_Aint>(window.rma.bytes_of(wanted)) : 0;
  *disp_unit = static_cast<MPI_Aint>(window.rma.unit_of(wanted));
  *static_cast<void**>(baseptr) = address;
}

void win_get_group(Process&, Window& window, MPI_Group* group) {
  *group = share(*window.comm->local).handle();
}

void win_set_info(Process&, Window& window, Info* info) {
  window.hints.take(info, can_become);
}

void win_get_info(Process& self, Window& window, MPI_Info* info_used) {
  *info_used = make_info_used(self, window.hints.entries());
}

void win_set_name(Process&, Window& window, const char* win_name) {
  window.name = kept_name(win_name);
  window.comm->name =
      "window " + (window.name.empty() ? number_of(window.comm->p2p.context) : window.name);
}

void win_get_name(Process& self, MPI_Win win, char* win_name, int* resultlen) {
  const auto* window = self.find<Window>(win, base::ObjectKind::window);
  if (window == nullptr && win != MPI_WIN_NULL)
    base::fail(MPI_ERR_WIN, "win is no window, or one that was freed");
  hand_out_name(window != nullptr ? window->name : "MPI_WIN_NULL", win_name, resultlen);
}

// --- Synchronisation.

namespace {

constexpr int fence_asserts =
    MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;

void check_asserts(int found, int allowed, const char* names) {
  if ((found & ~allowed) != 0) {
    base::fail(MPI_ERR_ASSERT, "assert is {}, which is not made of {} or 0", found, names);
  }
}

} // namespace

void win_fence(Process& self, int assert, Window& window) {
  check_asserts(assert, fence_asserts,
                "MPI_MODE_NOSTORE, MPI_MODE_NOPUT, MPI_MODE_NOPRECEDE, MPI_MODE_NOSUCCEED");
  const bool begins = (assert& MPI_MODE_NOPRECEDE) != 0;
  const bool ends = (assert& MPI_MODE_NOSUCCEED) != 0;
  // These two all ranks must give, or none.
  constexpr std::array common = {"", "MPI_MODE_NOSUCCEED", "MPI_MODE_NOPRECEDE",
                                 "MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED"};
  compare_calls(self, *window.comm, common[(begins ? 2 : 0) + (ends ? 1 : 0)]);
  window.rma.fence(begins && ends, !ends);
}

void win_lock(Process&, int lock_type, int rank, int assert, Window& window) {
  if (lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED) {
    base::fail(MPI_ERR_LOCKTYPE, "lock_type is {}, neither MPI_LOCK_EXCLUSIVE ({}) nor SHARED ({})",
               lock_type, MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED);
  }
  check_asserts(assert, MPI_MODE_NOCHECK, "MPI_MODE_NOCHECK");
  if (rank == MPI_PROC_NULL) return;
  window.rma.lock(rank, lock_type == MPI_LOCK_EXCLUSIVE, assert != 0);
}

void win_unlock(Process&, int rank, Window& window) {
  if (rank != MPI_PROC_NULL) window.rma.unlock(rank);
}

void win_lock_all(Process&, int assert, Window& window) {
  check_asserts(assert, MPI_MODE_NOCHECK, "MPI_MODE_NOCHECK");
  window.rma.lock_all(assert != 0);
}

void win_unlock_all(Process&, Window& window) {
  window.rma.unlock_all();
}

void win_flush(Process&, int rank, Window& window) {
  if (rank != MPI_PROC_NULL) window.rma.flush(rank);
}

void win_flush_all(Process&, Window& window) {
  window.rma.flush_all();
}

void win_flush_local(Process&, int rank, Window& window) {
  if (rank != MPI_PROC_NULL) window.rma.flush_local(rank);
}

void win_flush_local_all(Process&, Window& window) {
  window.rma.flush_local_all();
}

void win_sync(Process&, Window& window) {
  window.rma.sync();
}

void win_post(Process&, Group& group, int assert, Window& window) {
  check_asserts(assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT,
                "MPI_MODE_NOCHECK, MPI_MODE_NOSTORE, MPI_MODE_NOPUT");
  window.rma.post(ranks_in(*window.comm, group), (assert& MPI_MODE_NOCHECK) != 0);
}

void win_start(Process&, Group& group, int assert, Window& window) {
  check_asserts(assert, MPI_MODE_NOCHECK, "MPI_MODE_NOCHECK");
  window.rma.start(ranks_in(*window.comm, group), assert != 0);
}

void win_complete(Process&, Window& window) {
  window.rma.complete();
}

void win_wait(Process&, Window& window) {
  window.rma.wait();
}

void win_test(Process&, Window& window, int* flag) {
  *flag = window.rma.test() ? 1 : 0;
}

} // namespace macadam::mpi
