// SPDX-License-Identifier: BSD-3-Clause
// One-sided access, by this process alone: loads, stores and the processor's atomics where memory
// is mapped, else copies by the kernel. Never through a ring, which takes the other process too.
#include "base/copy.h"
#include "base/try_push.h"
#include "net/shm/transport.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace macadam::net::shm {
namespace {

// What System::kernel_copy_cost() may be, for one copy by the kernel to be worth two by processes.
// On an AMD EPYC it is 9, and single copies lose (docs/benchmarks.md).
constexpr double most_kernel_cost = 6;

} // namespace

bool Transport::is_direct_fast() noexcept {
  return settings_.shm_copy == base::CopyPath::cma ||
         system_.kernel_copy_cost() <= most_kernel_cost;
}

bool Transport::is_mapped(RemoteMemory memory) const noexcept {
  return memory.key != private_key;
}

std::byte* Transport::mapped(engine::Link& link, RemoteMemory memory, std::size_t bytes) {
  return mapped_address(static_cast<Peer&>(link), memory, bytes);
}

const char* Transport::why_not_direct(engine::Link& link) noexcept {
  const auto& peer = static_cast<Peer&>(link);
  if (peer.rank == rank_) return nullptr;
  if (settings_.shm_copy == base::CopyPath::pipeline) return "MACADAM_SHM_COPY is pipeline";
  return peer.cross_copy ? nullptr : "cross-memory attach is not possible";
}

void Transport::wake_peer(engine::Link& link) noexcept {
  wake(static_cast<Peer&>(link));
}

bool Transport::peer_sleeps(engine::Link& link) noexcept {
  return Waiter::sleeps(*static_cast<Peer&>(link).header);
}

Posted Transport::write(engine::Link& link, const void* local, RemoteMemory target,
                        std::size_t bytes, std::uint64_t cookie) noexcept {
  return access(static_cast<Peer&>(link), Direction::write, const_cast<void*>(local), target, bytes,
                cookie);
}

Posted Transport::read(engine::Link& link, void* local, RemoteMemory target, std::size_t bytes,
                       std::uint64_t cookie) noexcept {
  return access(static_cast<Peer&>(link), Direction::read, local, target, bytes, cookie);
}

Posted Transport::access(Peer& peer, Direction direction, void* local, RemoteMemory target,
                         std::size_t bytes, std::uint64_t cookie) {
  std::byte* there = nullptr;
  if (!reach_memory(peer, target, bytes, there)) return Posted::refused;
  if (there != nullptr) return posted(copy_mapped(peer, direction, local, there, bytes), cookie);
  if (bytes == 0) return Posted::done;
  const Copied copied =
      peer.ended ? Copied::failed : cross_copy_with(peer, direction, local, target.address, bytes);
  return posted(copied, cookie);
}

Posted Transport::write_blocks(engine::Link& link, std::span<const engine::Block> local,
                               std::span<const engine::Block> target, std::uint64_t key,
                               std::uint64_t cookie, engine::Block /*around*/) noexcept {
  return access_blocks(static_cast<Peer&>(link), Direction::write, local, target, key, cookie);
}

Posted Transport::read_blocks(engine::Link& link, std::span<const engine::Block> local,
                              std::span<const engine::Block> target, std::uint64_t key,
                              std::uint64_t cookie, engine::Block /*around*/) noexcept {
  return access_blocks(static_cast<Peer&>(link), Direction::read, local, target, key, cookie);
}

Posted Transport::access_blocks(Peer& peer, Direction direction,
                                std::span<const engine::Block> local,
                                std::span<const engine::Block> target, std::uint64_t key,
                                std::uint64_t cookie) {
  if (key != private_key || std::max(local.size(), target.size()) > most_blocks)
    return Posted::refused;
  std::array<iovec, most_blocks> here, there;
  std::size_t bytes = 0;
  const auto list = [](std::span<const engine::Block> blocks, std::span<iovec> into) {
    for (std::size_t i = 0; i < blocks.size(); ++i)
      into[i] = {reinterpret_cast<void*>(blocks[i].address), blocks[i].bytes};
    return into.first(blocks.size());
  };
  for (const engine::Block& block : target)
    bytes += block.bytes;
  const auto copy = [&] {
    const int error =
        cross_copy(system_, direction, peer.pid, list(local, here), list(target, there));
    return cross_copied(peer, error, bytes);
  };
  return posted(peer.ended ? Copied::failed : accessed(peer, copy), cookie);
}

Posted Transport::posted(Copied copied, std::uint64_t cookie) {
  if (copied == Copied::yes) return Posted::done;
  if (copied == Copied::refused) return Posted::refused;
  unfinished_.store(true, std::memory_order_relaxed);
  if (base::try_push(lost_, cookie)) return Posted::pending;
  return Posted::refused; // as nobody can be told later
}

Posted Transport::atomic(engine::Link& link, const engine::Atomic& what, RemoteMemory target,
                         std::uint64_t* result, std::uint64_t) noexcept {
  std::byte* there = nullptr;
  if (!reach_memory(static_cast<Peer&>(link), target, sizeof *result, there) || there == nullptr)
    return Posted::refused;
  std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(there));
  if (what.kind == engine::Atomic::Kind::fetch_and_add) {
    *result = word.fetch_add(what.operand);
  } else {
    *result = what.compare;
    word.compare_exchange_strong(*result, what.operand);
  }
  return Posted::done;
}

// Operations on memory of processes that have ended.
bool Transport::report_lost(Sink& sink) {
  const bool any = !lost_.empty();
  while (!lost_.empty()) {
    const std::uint64_t cookie = lost_.back();
    lost_.pop_back();
    sink.on_complete(cookie, false);
  }
  return any;
}

} // namespace macadam::net::shm
