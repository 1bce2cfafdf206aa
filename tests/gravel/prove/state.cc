// SPDX-License-Identifier: BSD-3-Clause
// The key of a state. That it loses nothing is tested: without keys a program must take exactly as
// many runs as there were interleavings said to be.
#include "gravel/prove/execution.h"

namespace macadam::gravel {

// Sees what is private in a core.
class StateHash {
 public:
  explicit StateHash(const prove::Execution& execution) : execution_(execution) {}

  prove::Key key() {
    for (const auto& process : execution_.processes_)
      mix_process(*process);
    execution_.network_.mix_into(
        [this](std::uint64_t what) { mix(what); },
        [this](int from, int to, const Entry& entry) { mix_entry(from, to, entry); },
        [this](int to, std::uint32_t notification) { mix_notification(to, notification); });
    return key_;
  }

 private:
  using Process = prove::Execution::Process;

  void mix(std::uint64_t what) {
    key_.first = (key_.first ^ what) * 0x9E3779B97F4A7C15u;
    key_.first ^= key_.first >> 29;
    key_.second = (key_.second + ~what) * 0xC2B2AE3D27D4EB4Fu;
    key_.second ^= key_.second >> 31;
  }

  // What the program calls a request or a buffer; 99: nobody waits for it.
  static std::uint64_t name_of(const Process& process, std::uint64_t request) {
    for (std::size_t i = 0; i < process.awaited.size(); ++i) {
      if (request != 0 && process.awaited[i].request == request) return i;
    }
    return 99;
  }
  static std::uint64_t name_of(const Process& process, const Buffer& buffer) {
    for (std::size_t i = 0; i < process.taken.size(); ++i) {
      if (process.taken[i].buffer == buffer.id) return i;
    }
    return 99;
  }

  void mix_entry(int from, int to, const Entry& entry) {
    const bool fin = entry.kind == EntryKind::fin;
    const int owner = fin ? to : from; // of the memory and the request
    mix(static_cast<std::uint64_t>(entry.kind) << 32 | static_cast<std::uint32_t>(entry.tag));
    mix(entry.bytes);
    mix(entry.failed);
    mix(entry.uses != 0 ? entry.request : name_of(process(owner), entry.request));
    mix(std::uint64_t{entry.uses} << 40 | std::uint64_t{entry.place} << 20 | entry.places);
    mix(execution_.network_.place(owner, entry.memory));
    for (const std::uint32_t count : entry.consumed)
      mix(count);
  }

  void mix_notification(int to, std::uint32_t notification) {
    if ((notification & filled_bit) == 0) return mix(notification);
    const Request* const filled =
        process(to).core->request_ids_.find_short(notification & ~filled_bit);
    mix(200 + (filled != nullptr ? name_of(process(to), filled->id) : 98));
  }

  [[nodiscard]] const Process& process(int rank) const {
    return *execution_.processes_[static_cast<std::size_t>(rank)];
  }

  void mix_process(const Process& process) {
    mix(process.dead ? 1 : 0);
    mix(process.next);
    for (std::size_t at = 0; at < prove::memory_bytes; ++at)
      mix(static_cast<std::uint64_t>(process.memory[at]) |
          (process.known[at] ? 256 | static_cast<std::uint64_t>(process.expected[at]) << 9 : 0));
    for (const auto& announced : process.announced) {
      mix(static_cast<std::uint64_t>(announced.source) << 8 | announced.notification);
      mix(announced.uses);
      mix(static_cast<std::uint64_t>(announced.tag) << 32 | announced.bytes);
      if (announced.kept) continue;
      mix_entry(announced.source, process.number,
                *reinterpret_cast<const Entry*>(announced.address));
    }
    for (const auto& awaited : process.awaited)
      mix_request(process, awaited);
    for (const auto& taken : process.taken)
      mix_taken(process, taken);
    for (const int found : process.found)
      mix(static_cast<std::uint64_t>(found));
    mix_core(process);
  }

  void mix_request(const Process& process, const prove::Execution::Awaited& awaited) {
    const Request* const request = process.core->request_ids_.find(awaited.request);
    mix(static_cast<std::uint64_t>(awaited.peer));
    if (request == nullptr) return mix(awaited.over ? 1 : 0);
    mix(2 + (request->complete ? 2u : 0u) + static_cast<std::uint64_t>(request->code) * 4);
    mix(request->position);
    if (request->buffer != nullptr) mix_buffer(*request->buffer);
  }

  void mix_taken(const Process& process, const prove::Execution::Taken& taken) {
    mix(static_cast<std::uint64_t>(taken.peer));
    mix(taken.buffer != 0 ? 1 : 0);
    mix(taken.fragments.size());
    if (const Buffer* const buffer = process.core->buffer_ids_.find(taken.buffer))
      mix_buffer(*buffer);
  }

  void mix_buffer(const Buffer& buffer) {
    mix(buffer.unposted | std::uint64_t{buffer.unfinished} << 8 | (buffer.failed ? 1u << 16 : 0u) |
        (buffer.fin_queued ? 1u << 17 : 0u) | (buffer.fin_left ? 1u << 18 : 0u));
    mix(buffer.position);
    mix(buffer.promised ? 1 + buffer.request : 0);
    mix(buffer.put.bytes());
    mix(buffer.put.gap());
  }

  void mix_core(const Process& process) {
    const Core& core = *process.core;
    for (const Peer* const busy : core.busy_)
      mix(1000 + busy->rank);
    for (const auto& list : core.arrived_) {
      for (const Arrived& arrived : list) {
        if (arrived.kept)
          mix_entry(static_cast<int>(arrived.peer->rank), process.number, arrived.entry);
        mix(std::uint64_t{arrived.peer->rank} << 32 | arrived.position << 8 | arrived.taken);
      }
    }
    for (const auto& [name, promise] : core.promises_)
      mix_promise(process, *promise);
    for (Rank rank = 0; rank < core.size_; ++rank) {
      const auto found = core.peers_.find(rank);
      if (found == core.peers_.end())
        mix(7);
      else
        mix_peer(process, *found->second);
    }
  }

  void mix_promise(const Process& process, const Promise& promise) {
    mix(std::uint64_t{promise.name} << 32 | static_cast<std::uint32_t>(promise.tag));
    mix(promise.unposted << 32 | promise.unannounced);
    mix(promise.announced << 40 | promise.bound << 20 | promise.freed);
    for (const Promise::Place& place : promise.places)
      mix(static_cast<std::uint64_t>(place.state) << 8 |
          (place.posted != nullptr ? name_of(process, place.posted->id) : 77));
    for (std::size_t i = 0; i < promise.places.size() * promise.bytes; ++i)
      mix(static_cast<std::uint64_t>(promise.memory[i]));
  }

  void mix_peer(const Process& process, const Peer& peer) {
    mix((peer.link != nullptr ? 1u : 0u) | (peer.connected ? 2u : 0u) | (peer.failed ? 4u : 0u) |
        (peer.queued ? 8u : 0u) | (peer.noting ? 16u : 0u));
    for (const Peer::Out& out : peer.out) {
      mix(std::uint64_t{out.written} << 32 | out.consumed);
      for (const Outgoing& outgoing : out.waiting) {
        mix_entry(process.number, static_cast<int>(peer.rank), outgoing.entry);
        mix(outgoing.finishes != nullptr ? name_of(process, *outgoing.finishes) : 77);
      }
    }
    mix(peer.coming.left);
    if (peer.coming.left != 0) {
      mix(peer.coming.place);
      const auto at = static_cast<std::uint64_t>(peer.coming.to - process.memory.data());
      mix(at < prove::memory_bytes ? at : 99); // else in its place
    }
    for (const Peer::In& in : peer.in)
      mix(std::uint64_t{in.arrived} << 32 | in.credited);
    for (const Transfer& transfer : peer.unposted) {
      for (const Request* each = transfer.request; each != nullptr; each = each->joined)
        mix(name_of(process, each->id));
      mix(transfer.bytes << 1 | (process.core->held_ == &transfer ? 1u : 0u));
      mix(execution_.network_.place(static_cast<int>(peer.rank), transfer.remote));
    }
  }

  const prove::Execution& execution_;
  prove::Key key_{1, 2};
};

namespace prove {

Key Execution::key() const {
  return StateHash(*this).key();
}

} // namespace prove
} // namespace macadam::gravel
