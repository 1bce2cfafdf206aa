// SPDX-License-Identifier: BSD-3-Clause
// One end of a reliable connection over libibverbs, with registered memory; what plain.cc measures.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace verbs {

// A byte stream between the two processes, for addresses and barriers.
struct Wire {
  int socket;
};

// The two ends of one.
std::pair<Wire, Wire> wire();

// The connection of this process with the one at the other end of a wire. Each has two pieces of
// memory of `bytes`: data() is sent, inbound() is where the peer's writes and sends go. Whatever
// fails ends the program with a line that says what.
class Endpoint {
 public:
  // Connects. `depth`: operations and receives under way at most.
  Endpoint(const Wire& wire, std::size_t bytes, int depth);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  char* data() { return memory_.data(); }
  char* inbound() { return memory_.data() + memory_.size() / 2; }

  // `count` receives; the i-th lands at i * `stride` of inbound().
  void post_receives(std::size_t stride, std::size_t bytes, int count);
  // One send, or write to the start of the peer's inbound(), of the first `bytes` of data().
  void send(std::size_t bytes) { post_one(IBV_WR_SEND, bytes); }
  void write(std::size_t bytes) { post_one(IBV_WR_RDMA_WRITE, bytes); }
  // One read from there.
  void read(std::size_t bytes) { post_one(IBV_WR_RDMA_READ, bytes); }
  // `count` of them, each from and to its own piece of the memory, posted as one list. The last
  // write takes a receive.
  void send_window(std::size_t bytes, int count) {
    post_window(IBV_WR_SEND, IBV_WR_SEND, bytes, count);
  }
  void write_window(std::size_t bytes, int count) {
    post_window(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, bytes, count);
  }
  // Waits until so many receives have completed.
  void wait_received(int count);
  // Waits until the other process has come here too.
  void barrier();

 private:
  struct Address;
  void open_device();
  void make_queues(int depth);
  void connect(const Address& peer);
  void post_one(ibv_wr_opcode opcode, std::size_t bytes);
  void post_window(ibv_wr_opcode opcode, ibv_wr_opcode last, std::size_t bytes, int count);
  void post(ibv_send_wr& first, int count);
  void reap(bool wait);
  ibv_send_wr request(ibv_wr_opcode opcode, ibv_sge& segment, std::size_t offset) const;

  Wire wire_;
  std::vector<char> memory_; // data, inbound
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_cq* sent_ = nullptr;
  ibv_cq* received_ = nullptr;
  ibv_qp* queue_pair_ = nullptr;
  ibv_gid gid_{};
  std::uint8_t gid_index_ = 0;
  ibv_mtu mtu_ = IBV_MTU_1024;
  std::uint32_t inline_ = 0; // bytes
  std::uint64_t peer_inbound_ = 0;
  std::uint32_t peer_key_ = 0;
  int room_ = 0;        // requests that the send queue takes
  int unsignalled_ = 0; // posted since the last that asked for a completion
  int quarter_ = 0;     // of the send queue
};

} // namespace verbs
