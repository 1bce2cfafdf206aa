// SPDX-License-Identifier: BSD-3-Clause
#include "base/error.h"
#include "sim/queue_pair.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace macadam::sim {

using net::rdma::Completion;
using net::rdma::datagram_header;
using net::rdma::Operation;
using net::rdma::SendWork;
using net::rdma::WorkStatus;

void DatagramQueuePair::accept(const net::rdma::QueuePairAddress&, const net::rdma::Retries&) {
  base::fail(MPI_ERR_INTERN, "{}: queue pair {} is for datagrams, which are not connected",
             device_.name(), number_);
}

void DatagramQueuePair::establish() {
  accept({}, {});
}

void DatagramQueuePair::fail() {
  base::fail(MPI_ERR_INTERN, "{}: queue pair {} is for datagrams, which do not break",
             device_.name(), number_);
}

std::size_t DatagramQueuePair::post(std::span<const SendWork> work) {
  std::size_t taken = 0;
  for (; taken < work.size() && places_ > 0; ++taken) {
    const SendWork& each = work[taken];
    check(each, device_.limits().mtu);
    if (each.to == nullptr ||
        (each.operation != Operation::send && each.operation != Operation::send_immediate))
      base::fail(MPI_ERR_INTERN, "{}: queue pair {} sends datagrams only, to an address",
                 device_.name(), number_);
    --places_;
    send(each);
  }
  return taken;
}

void DatagramQueuePair::send(const SendWork& from) {
  Work work;
  take_data(work, from);
  device_.spend(from_ns(device_.fabric().model().post_ns));
  ++unsignalled_;
  const std::uint32_t released = from.signalled ? std::exchange(unsignalled_, 0) : 0;
  // Copied now: the sender may use the memory again once it has seen the completion.
  Datagram* datagram = device_.fabric().make_datagram();
  datagram->id = from.id;
  datagram->port = static_cast<const SimulatedAddressHandle*>(from.to)->lid;
  datagram->number = from.remote_number;
  datagram->qkey = from.remote_qkey;
  datagram->immediate = from.immediate;
  datagram->released = released;
  datagram->operation = from.operation;
  datagram->data.resize(work.bytes);
  gather(work, reinterpret_cast<std::byte*>(datagram->data.data()));
  scheduler().at(device_.time(), [&fabric = device_.fabric(), lid = device_.lid(), number = number_,
                                  datagram] {
    SimulatedDevice* device = fabric.find(lid);
    SimulatedQueuePair* self = device == nullptr ? nullptr : device->find_queue_pair(number);
    if (self == nullptr)
      fabric.drop(datagram);
    else
      static_cast<DatagramQueuePair*>(self)->depart(datagram);
  });
}

void DatagramQueuePair::depart(Datagram* datagram) {
  Fabric& fabric = device_.fabric();
  const Fabric::Trip trip =
      fabric.transmit(device_.lid(), datagram->port, datagram->data.size() + datagram_header);
  if (datagram->released > 0) {
    scheduler().at(trip.sent, [&fabric, lid = device_.lid(), number = number_, id = datagram->id,
                               released = datagram->released] {
      SimulatedDevice* device = fabric.find(lid);
      SimulatedQueuePair* self = device == nullptr ? nullptr : device->find_queue_pair(number);
      if (self == nullptr) return;
      Work done;
      done.id = id;
      static_cast<DatagramQueuePair*>(self)->push_send(done, WorkStatus::ok, released);
    });
  }
  ++fabric.counters.datagrams;
  const Faults& faults = fabric.faults();
  Random& random = fabric.random();
  if (random.chance(faults.datagram_loss)) {
    ++fabric.counters.datagrams_lost;
    fabric.drop(datagram);
    return;
  }
  if (random.chance(faults.datagram_duplication)) {
    ++fabric.counters.datagrams_duplicated;
    fly(fabric.copy(*datagram), trip.arrived);
  }
  fly(datagram, trip.arrived);
}

void DatagramQueuePair::fly(Datagram* datagram, Time arrived) {
  Fabric& fabric = device_.fabric();
  if (fabric.random().chance(fabric.faults().datagram_reordering)) {
    ++fabric.counters.datagrams_reordered;
    arrived += from_ns(fabric.faults().reordering_ns * fabric.random().fraction());
  }
  scheduler().at(arrived, [&fabric, datagram] {
    SimulatedDevice* device = fabric.find(datagram->port);
    auto* target =
        device == nullptr
            ? nullptr
            : dynamic_cast<DatagramQueuePair*>(device->find_queue_pair(datagram->number));
    if (target == nullptr)
      ++fabric.counters.datagrams_dropped;
    else
      target->arrive(*datagram);
    fabric.drop(datagram);
  });
}

void DatagramQueuePair::arrive(const Datagram& datagram) {
  FabricCounters& counters = device_.fabric().counters;
  if (datagram.qkey != qkey_) {
    ++counters.datagrams_dropped;
    return;
  }
  const auto receive = pop_receive();
  if (!receive) {
    ++counters.datagrams_dropped;
    return;
  }
  const std::size_t bytes = datagram_header + datagram.data.size();
  if (receive->segment.bytes < bytes || !device_.allows(receive->segment))
    base::fail(MPI_ERR_INTERN,
               "{}: a datagram of {} bytes with its header came to a receive of {} bytes whose key "
               "{} them",
               device_.name(), bytes, receive->segment.bytes,
               device_.allows(receive->segment) ? "opens" : "no longer opens");
  auto* memory = static_cast<std::byte*>(receive->segment.memory);
  std::memset(memory, 0xdd, datagram_header); // nobody may rely on what is there
  if (!datagram.data.empty())
    std::memcpy(memory + datagram_header, datagram.data.data(), datagram.data.size());
  Completion completion;
  completion.id = receive->id;
  completion.queue_pair = number_;
  completion.bytes = static_cast<std::uint32_t>(bytes);
  completion.immediate = datagram.immediate;
  scheduler().trace(std::uint64_t{device_.lid()} << 32 | bytes);
  push_receive(completion);
}

} // namespace macadam::sim
