// SPDX-License-Identifier: BSD-3-Clause
// How a window is made and ended, and how a target is found at its first use.
#include "rma/window.h"

#include "base/copy.h"
#include "base/error.h"
#include "rma/messages.h"
#include "rma/post.h"
#include "rma/remote_atomics.h"

#include <algorithm>
#include <new>
#include <utility>

namespace macadam::rma {

using engine::RemoteMemory;
using engine::Transport;

void Counters::list(base::CounterList& list) const {
  const auto add = [&](const char* name, const char* text, const std::uint64_t& value) {
    list.add("one-sided", name, text, value);
  };
  add("rma_mapped", "puts, gets and atomics done by loads and stores", mapped);
  add("rma_network", "puts and gets done by RDMA or a copy of the kernel", by_network);
  add("rma_by_target", "operations done by messages, which the target serves", by_target);
  add("rma_atomics", "short accumulates done by atomics of the processor or the network",
      by_atomics);
  add("rma_under_lock", "accumulates done under the lock of the target", under_lock);
  add("rma_locks_waited", "locks of windows that others held", locks_waited);
}

Window::Window(engine::Engine& engine, Waiting& waiting, const engine::Team& team,
               const datatype::PredefinedTypes& types, const datatype::PredefinedOps& ops,
               bool by_messages, Counters& counters)
    : engine_(engine), far_(engine.networks().farthest(*team.local)), waiting_(waiting),
      team_(team), layout_(team.size()), types_(types), ops_(ops), prefers_messages_(by_messages),
      counters_(counters) {}

Window::~Window() {
  if (control_ == nullptr) return;
  messages_.reset();
  Transport& near = engine_.networks().nearest();
  deregister_both(own_.data);
  deregister_both(own_.control);
  for (const Attached& each : own_attached_)
    deregister_both(each.keys);
  for (const Attached& list : attached_lists_) {
    deregister_both(list.keys);
    near.free(reinterpret_cast<void*>(list.address));
  }
  near.free(control_);
}

BothKeys Window::register_both(void* memory, std::size_t bytes) {
  Transport& near = engine_.networks().nearest();
  const RemoteMemory key = near.register_region(memory, bytes);
  if (&far_ == &near) return {key, key};
  try {
    return {key, far_.register_region(memory, bytes)};
  } catch (...) {
    near.deregister_region(key);
    throw;
  }
}

// Of keys that were not given, too.
void Window::deregister_both(const BothKeys& keys) noexcept {
  Transport& near = engine_.networks().nearest();
  if (&far_ != &near) far_.deregister_region(keys.far);
  near.deregister_region(keys.near);
}

Exposure Window::register_window(void* memory, std::uint64_t bytes, std::uint64_t unit) {
  Transport& near = engine_.networks().nearest();
  own_.shares = near.limits().maps;
  for (int rank = 0; rank < size(); ++rank)
    own_.shares = own_.shares && near.reaches((*team_.local)[rank]);
  const std::size_t block = layout_.bytes(own_.shares);
  control_ = static_cast<std::byte*>(near.allocate(block));
  if (control_ == nullptr) {
    base::fail(
        MPI_ERR_NO_MEM,
        "no memory of {} for the {} bytes by which the {} ranks of the window synchronise: {}",
        near.limits().name, block, size(), near.why_not_allocated());
  }
  std::memset(control_, 0, block);
  new (control_) Control;
  memory_ = static_cast<std::byte*>(memory);
  own_.control = register_both(control_, block);
  own_.data = register_both(memory, bytes);
  own_.bytes = bytes;
  own_.unit = unit;
  own_.mapped = near.is_mapped(own_.control.near) && (bytes == 0 || near.is_mapped(own_.data.near));
  return own_;
}

void Window::join(std::vector<Exposure> all, Memory memory) {
  memory_is_ = memory;
  if (memory == Memory::together) { // shared memory only, so it is all the same network
    whole_ = all[0].data.near;
    std::uint64_t offset = 0;
    for (Exposure& each : all) {
      each.data.near = each.data.far = {whole_.address + offset, whole_.key};
      offset += each.bytes;
    }
  }
  exposures_.keep(all, rank());
  if (Exposures::row_bytes(size()) != 0) {
    base::copy(control_ + layout_.exposures(), exposures_.row().data(),
               exposures_.row().size() * sizeof(Exposure));
  }
  targets_.grow(size());
  while (first_with_memory_ + 1 < size() &&
         all[static_cast<std::size_t>(first_with_memory_)].bytes == 0)
    ++first_with_memory_;
  const auto every = [&](auto&& holds) { return std::ranges::all_of(all, holds); };
  atomics_by_processor_ = every([](const Exposure& e) { return e.shares; });
  data_by_processor_ = atomics_by_processor_ && memory != Memory::attached &&
                       (memory == Memory::together ||
                        every([](const Exposure& e) { return e.mapped || e.bytes == 0; }));
  if (!atomics_by_processor_ && !far_.limits().atomics) {
    base::fail(MPI_ERR_UNSUPPORTED_OPERATION,
               "the ranks of the window share no memory, and the adapter of {} has no atomic "
               "operations, by which they would synchronise",
               far_.limits().name);
  }
  // Neighbours may be unable to copy what is not mapped; nobody knows before he meets them.
  const bool near = engine_.networks().nearest().is_mapped(own_.control.near);
  const bool needed = prefers_messages_ || (near && !data_by_processor_);
  const bool shared = memory == Memory::apart || memory == Memory::together;
  if (size() > 1 && needed && !shared) {
    data_by_processor_ = data_by_processor_ && !prefers_messages_;
    begin_messages();
  }
  may_use_messages_ = size() > 1 && !shared && !data_by_processor_ && !prefers_messages_;
}

// At the beginning of an epoch that both its sides end: for the messages of it.
void Window::expect_messages() {
  if (may_use_messages_ && messages_ == nullptr) begin_messages();
}

void Window::begin_messages() {
  messages_ = std::make_unique<Messages>(engine_, waiting_, team_, types_, ops_,
                                         memory_is_ == Memory::attached ? nullptr : memory_,
                                         control_, prefers_messages_);
}

// What another keeps of it is read from there, once all have joined.
Exposure Window::exposure_of(int rank) {
  if (const Exposure* const known = exposures_.find(rank)) return *known;
  Target& keeper = target(exposures_.keeper(rank));
  const std::size_t offset = layout_.exposures() + Exposures::place(rank) * sizeof(Exposure);
  Exposure found;
  if (keeper.control_here != nullptr) {
    base::copy(&found, keeper.control_here + offset, sizeof found);
    return found;
  }
  run_once(keeper, [&](std::uint64_t cookie) {
    return keeper.peer->transport->read(*keeper.link, &found,
                                        {keeper.control.address + offset, keeper.control.key},
                                        sizeof found, cookie);
  });
  return found;
}

Target& Window::meet(int rank) {
  const Exposure exposure = exposure_of(rank);
  if (Target* const known = targets_.find(rank)) return *known; // another thread was faster
  auto made = std::make_unique<Target>();
  Target& target = *made;
  target.rank = rank;
  target.bytes = exposure.bytes;
  target.unit = exposure.unit;
  target.last_displacement = exposure.bytes / exposure.unit;
  target.peer = &engine_.peer((*team_.local)[rank]);
  target.link = target.peer->link;
  find_memory(target, exposure);
  return targets_.add(std::move(made));
}

void Window::find_memory(Target& target, const Exposure& exposure) {
  Transport& network = *target.peer->transport;
  target.is_near = &network != &far_;
  target.data = target.memory_of(exposure.data);
  target.control = target.memory_of(exposure.control);
  const bool own = target.rank == rank();
  target.control_here =
      own ? control_ : network.mapped(*target.link, target.control, layout_.bytes(exposure.shares));
  if (memory_is_ == Memory::attached) {
    // Found at each access.
  } else if (memory_is_ == Memory::together) {
    engine::Peer& owner = engine_.peer((*team_.local)[0]);
    target.base = team_.rank == 0 ? memory_ : owner.transport->mapped(*owner.link, whole_, 0);
    target.base += target.data.address - whole_.address;
  } else if (exposure.bytes > 0) {
    target.base = own ? memory_ : network.mapped(*target.link, target.data, exposure.bytes);
  } else {
    target.base = control_; // anywhere: nothing is accessed
  }
  if (messages_ != nullptr && !own) {
    target.by_messages = prefers_messages_ || (target.base == nullptr &&
                                               network.why_not_direct(*target.link) != nullptr);
    if (target.by_messages && exposure.bytes > 0) target.base = nullptr;
  }
  if (atomics_by_processor_) {
    target.at_atomics = &at_atomics(target, rank());
    return;
  }
  engine::PeerState ignored;
  target.atomics_network = &far_;
  target.atomics_link = target.is_near ? &far_.connect(target.peer->rank, ignored) : target.link;
  target.atomics_control = exposure.control.far;
  target.atomics_data = exposure.data.far;
}

void Window::leave() {
  if (access_ == Access::fence) {
    const End end(*this, AtEnd::copies);
    close_all();
    access_ = Access::none;
  }
  if (access_ != Access::none) {
    base::fail(MPI_ERR_RMA_SYNC, "the window is freed inside an access epoch ({}); end it first",
               access_ == Access::started ? "MPI_Win_start without MPI_Win_complete"
               : access_ == Access::locks
                   ? fmt::format("{} ranks are locked, MPI_Win_unlock is missing", locks_)
                   : "MPI_Win_lock_all without MPI_Win_unlock_all");
  }
  if (exposed_) {
    base::fail(MPI_ERR_RMA_SYNC,
               "the window is freed inside an exposure epoch; MPI_Win_wait is missing");
  }
  // A word still on its way would meet a revoked key.
  targets_.for_each([this](Target& target) { wait_landed(target); });
}

} // namespace macadam::rma
