// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/ibverbs/port.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace macadam::net::rdma::ibverbs {

// A segment is laid out as the driver's entry of a list, which is not written to.
static_assert(sizeof(Segment) == sizeof(ibv_sge));
static_assert(offsetof(Segment, memory) == offsetof(ibv_sge, addr));
static_assert(offsetof(Segment, bytes) == offsetof(ibv_sge, length));
static_assert(offsetof(Segment, local_key) == offsetof(ibv_sge, lkey));
inline ibv_sge* entries_of(const Segment* segments) {
  return reinterpret_cast<ibv_sge*>(const_cast<Segment*>(segments));
}

// Posts receives by `post(first, refused)`, chained, a batch at a time; how many were taken. All
// are, if not because the queue is full, then because the adapter is gone and it does not matter.
template <class Post>
std::size_t post_receives(Port& port, std::span<const ReceiveWork> work, Post&& post) {
  constexpr std::size_t most_at_once = 16;
  std::size_t taken = 0;
  while (taken < work.size()) {
    std::array<ibv_recv_wr, most_at_once> requests;
    const std::size_t count = std::min(work.size() - taken, most_at_once);
    for (std::size_t i = 0; i < count; ++i) {
      const ReceiveWork& from = work[taken + i];
      requests[i] = {.wr_id = from.id,
                     .next = i + 1 < count ? &requests[i + 1] : nullptr,
                     .sg_list = entries_of(&from.segment),
                     .num_sge = from.segment.bytes != 0 ? 1 : 0};
    }
    ibv_recv_wr* refused = nullptr;
    const int error = post(requests.data(), &refused);
    if (error == ENOMEM) return taken + static_cast<std::size_t>(refused - requests.data());
    if (error != 0) [[unlikely]]
      port.tell_refused("receives", error);
    taken += count;
  }
  return taken;
}

} // namespace macadam::net::rdma::ibverbs
