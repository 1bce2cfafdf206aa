// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "net/rdma/device.h"
#include "sim/model.h"
#include "sim/scheduler.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace macadam::sim {

// A work request in a send queue.
struct Work {
  enum class State : std::uint8_t { queued, under_way, done };

  Work* next = nullptr; // posted after this one
  Time ready = 0;       // when the doorbell rang
  std::uint64_t id = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t compare_or_add = 0;
  std::uint64_t swap = 0;
  std::uint64_t old_value = 0; // that an atomic found
  std::uint32_t remote_key = 0;
  std::uint32_t immediate = 0;
  std::uint32_t bytes = 0;
  std::uint32_t seen_from = 0; // of a write: bytes that are in place before it arrives as a whole
  std::uint32_t seen_to = 0;
  std::uint32_t segment_count = 0;
  std::array<net::rdma::Segment, most_segments> segments;
  std::unique_ptr<std::byte[]> data; // if it was inlined: instead of the segments
  net::rdma::Operation operation = net::rdma::Operation::send;
  State state = State::queued;
  net::rdma::WorkStatus status = net::rdma::WorkStatus::ok;
  bool signalled = false;
  bool unplaced = false; // a write that has arrived, and that the memory does not show yet

  [[nodiscard]] bool carries_immediate() const {
    return operation == net::rdma::Operation::send_immediate ||
           operation == net::rdma::Operation::write_immediate;
  }
  [[nodiscard]] bool is_send() const {
    return operation == net::rdma::Operation::send ||
           operation == net::rdma::Operation::send_immediate;
  }
  [[nodiscard]] bool is_atomic() const {
    return operation == net::rdma::Operation::compare_and_swap ||
           operation == net::rdma::Operation::fetch_and_add;
  }
  // The other side answers with data.
  [[nodiscard]] bool is_read() const {
    return operation == net::rdma::Operation::read || is_atomic();
  }
};

// A datagram on its way.
struct Datagram : base::ListNode<> {
  std::uint64_t id = 0;
  std::uint32_t port = 0; // where it goes
  std::uint32_t number = 0;
  std::uint32_t qkey = 0;
  std::uint32_t immediate = 0;
  std::uint32_t released = 0; // places of the send queue, once it has left; 0: nobody is told
  net::rdma::Operation operation = net::rdma::Operation::send;
  std::vector<unsigned char> data; // vectors of std::byte are the library's (torture/starvation.h)
};

} // namespace macadam::sim
