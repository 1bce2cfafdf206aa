// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mem/pages.h"
#include "net/rdma/device.h"
#include "net/rdma/wire.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace macadam::net::rdma {

// What packets to a process with this secret must carry.
inline std::uint32_t qkey_of(const boot::Secret& secret) {
  std::uint32_t key = 0;
  std::memcpy(&key, secret.data(), sizeof key);
  return key & 0x7fffffff; // the top bit is for privileged keys
}

// The datagram queue pair by which a process is reached before there is a connection. Packets may
// be lost, doubled and overtaken by others: a caller asks again. For one thread at a time.
class Datagrams {
 public:
  // Packets that arrive when none was waiting call EventSink::on_completions(). `qkey`: what those
  // must know that send to us.
  Datagrams(Device& device, std::uint32_t qkey);
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;

  [[nodiscard]] wire::Endpoint endpoint() const;
  // False if too many are under way: as good as lost.
  bool send(const AddressHandle& to, std::uint32_t number, std::uint32_t qkey,
            const wire::ConnectPacket& packet);
  // The next packet of the right length; when there is none, the next one will be an event.
  std::optional<wire::ConnectPacket> receive();

 private:
  [[nodiscard]] ReceiveWork receive_work(std::uint32_t slot) const;
  void reap_sends();

  Device& device_;
  mem::PageMemory memory_; // slots of `datagram_room` bytes: of receives, then of sends
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<CompletionQueue> arrivals_;
  std::unique_ptr<CompletionQueue> departures_; // never armed: read when there is more to send
  std::unique_ptr<QueuePair> queue_pair_;
  std::vector<std::uint32_t> free_sends_; // slots
};

} // namespace macadam::net::rdma
