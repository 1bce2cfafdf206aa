// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/datagrams.h"

#include "net/rdma/model.h"

#include <array>
#include <cstring>

namespace macadam::net::rdma {
namespace {

constexpr std::uint32_t receives = model::datagram_receives;
constexpr std::uint32_t sends = model::datagram_sends;
static_assert(datagram_header + sizeof(wire::ConnectPacket) <= model::datagram_room);

} // namespace

Datagrams::Datagrams(Device& device, std::uint32_t qkey) : device_(device) {
  constexpr std::size_t room = (receives + sends) * model::datagram_room;
  memory_ = mem::allocate_pages(room, "connection requests");
  region_ = device.register_memory(memory_.get(), room, Access::local);
  arrivals_ = device.make_completion_queue(receives, true);
  departures_ = device.make_completion_queue(sends, true);
  QueuePairOptions options;
  options.sends = departures_.get();
  options.receives = arrivals_.get();
  options.send_depth = sends;
  options.receive_depth = receives;
  options.qkey = qkey;
  options.datagrams = true;
  queue_pair_ = device.make_queue_pair(options);
  std::vector<ReceiveWork> work;
  for (std::uint32_t slot = 0; slot < receives; ++slot)
    work.push_back(receive_work(slot));
  queue_pair_->post_receive(work);
  for (std::uint32_t slot = receives; slot < receives + sends; ++slot)
    free_sends_.push_back(slot);
  arrivals_->arm();
}

wire::Endpoint Datagrams::endpoint() const {
  return wire::endpoint_of({device_.address(), queue_pair_->number()});
}

bool Datagrams::send(const AddressHandle& to, std::uint32_t number, std::uint32_t qkey,
                     const wire::ConnectPacket& packet) {
  reap_sends();
  if (free_sends_.empty()) return false;
  const std::uint32_t slot = free_sends_.back();
  std::byte* const memory = memory_.get() + slot * model::datagram_room;
  const auto bytes = static_cast<std::uint32_t>(wire::bytes_of(packet));
  std::memcpy(memory, &packet, sizeof packet);
  const Segment segment{memory, bytes, region_->local_key};
  SendWork work;
  work.id = slot;
  work.segments = {&segment, 1};
  work.to = &to;
  work.remote_number = number;
  work.remote_qkey = qkey;
  work.signalled = true;
  if (queue_pair_->post({&work, 1}) == 0) return false;
  free_sends_.pop_back();
  return true;
}

std::optional<wire::ConnectPacket> Datagrams::receive() {
  for (bool armed = false;;) {
    Completion completion;
    if (arrivals_->poll({&completion, 1}) == 0) {
      // One that came between poll and arm is no event: so look once more.
      if (armed) return std::nullopt;
      arrivals_->arm();
      armed = true;
      continue;
    }
    const auto slot = static_cast<std::uint32_t>(completion.id);
    wire::ConnectPacket packet;
    bool right = completion.status == WorkStatus::ok && completion.bytes >= datagram_header &&
                 completion.bytes <= datagram_header + sizeof packet;
    if (right) {
      const std::size_t bytes = completion.bytes - datagram_header;
      std::memcpy(&packet, memory_.get() + slot * model::datagram_room + datagram_header,
                  sizeof packet);
      if (bytes != sizeof packet) packet.first_number = 0;
      right = bytes == wire::bytes_of(packet);
    }
    const ReceiveWork again = receive_work(slot);
    queue_pair_->post_receive({&again, 1});
    if (right) return packet;
  }
}

ReceiveWork Datagrams::receive_work(std::uint32_t slot) const {
  return {.id = slot,
          .segment = {memory_.get() + slot * model::datagram_room, model::datagram_room,
                      region_->local_key}};
}

void Datagrams::reap_sends() {
  std::array<Completion, 16> completions;
  for (;;) {
    const std::size_t count = departures_->poll(completions);
    for (std::size_t i = 0; i < count; ++i)
      free_sends_.push_back(static_cast<std::uint32_t>(completions[i].id));
    if (count < completions.size()) return;
  }
}

} // namespace macadam::net::rdma
