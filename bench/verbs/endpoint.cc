// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

namespace verbs {
namespace {

constexpr std::uint8_t port = 1;
constexpr std::uint32_t wanted_inline = 256; // bytes, as Macadam's

[[noreturn]] void fail(const char* what, int error) {
  std::fprintf(stderr, "plain: %s: %s\n", what, std::strerror(error));
  std::exit(1);
}

void must(bool done, const char* what) {
  if (!done) fail(what, errno);
}

// For calls that return the error.
void must_be_zero(int error, const char* what) {
  if (error != 0) fail(what, error);
}

template <class T>
T exchange(const Wire& wire, const T& mine) {
  T theirs{};
  must(send(wire.socket, &mine, sizeof mine, 0) == sizeof mine, "the other process is gone");
  must(recv(wire.socket, &theirs, sizeof theirs, MSG_WAITALL) == sizeof theirs,
       "the other process is gone");
  return theirs;
}

} // namespace

std::pair<Wire, Wire> wire() {
  int ends[2];
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  return {Wire{ends[0]}, Wire{ends[1]}};
}

struct Endpoint::Address {
  ibv_gid gid;
  std::uint64_t inbound;
  std::uint32_t queue_pair;
  std::uint32_t key;
};

Endpoint::Endpoint(const Wire& wire, std::size_t bytes, int depth)
    : wire_(wire), memory_(2 * std::max<std::size_t>(bytes, 1)) {
  open_device();
  make_queues(depth);
  const Address mine{gid_, reinterpret_cast<std::uint64_t>(inbound()), queue_pair_->qp_num,
                     region_->rkey};
  connect(exchange(wire_, mine));
  barrier();
}

Endpoint::~Endpoint() {
  ibv_destroy_qp(queue_pair_);
  ibv_destroy_cq(sent_);
  ibv_destroy_cq(received_);
  ibv_dereg_mr(region_);
  ibv_dealloc_pd(domain_);
  ibv_close_device(context_);
}

// The first device, its first port, and the RoCE v2 address of an IPv4 one where there is one.
void Endpoint::open_device() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  must(list != nullptr && count > 0, "no verbs device");
  context_ = ibv_open_device(list[0]);
  must(context_ != nullptr, "ibv_open_device");
  ibv_free_device_list(list);
  ibv_port_attr about{};
  must_be_zero(ibv_query_port(context_, port, &about), "ibv_query_port");
  mtu_ = about.active_mtu;
  constexpr unsigned char ipv4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  for (int i = about.gid_tbl_len - 1; i >= 0; --i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context_, port, static_cast<std::uint32_t>(i), &entry, 0) != 0) continue;
    gid_ = entry.gid;
    gid_index_ = static_cast<std::uint8_t>(i);
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 && std::memcmp(entry.gid.raw, ipv4, 12) == 0) break;
  }
}

void Endpoint::make_queues(int depth) {
  domain_ = ibv_alloc_pd(context_);
  must(domain_ != nullptr, "ibv_alloc_pd");
  region_ = ibv_reg_mr(domain_, memory_.data(), memory_.size(),
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  must(region_ != nullptr, "ibv_reg_mr");
  sent_ = ibv_create_cq(context_, 2 * depth, nullptr, nullptr, 0);
  received_ = ibv_create_cq(context_, 2 * depth, nullptr, nullptr, 0);
  must(sent_ != nullptr && received_ != nullptr, "ibv_create_cq");
  ibv_qp_init_attr attributes{};
  attributes.qp_type = IBV_QPT_RC;
  attributes.send_cq = sent_;
  attributes.recv_cq = received_;
  attributes.cap = {.max_send_wr = static_cast<std::uint32_t>(std::max(2 * depth, 64)),
                    .max_recv_wr = static_cast<std::uint32_t>(depth + 1),
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = wanted_inline};
  room_ = static_cast<int>(attributes.cap.max_send_wr);
  quarter_ = room_ / 4;
  queue_pair_ = ibv_create_qp(domain_, &attributes);
  must(queue_pair_ != nullptr, "ibv_create_qp");
  inline_ = std::min(attributes.cap.max_inline_data, wanted_inline);
}

void Endpoint::connect(const Address& peer) {
  peer_inbound_ = peer.inbound;
  peer_key_ = peer.key;
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = port;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  must_be_zero(ibv_modify_qp(queue_pair_, &a,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
               "queue pair to INIT");
  a = {};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = mtu_;
  a.dest_qp_num = peer.queue_pair;
  a.max_dest_rd_atomic = 1;
  a.min_rnr_timer = 12; // 0.64 ms
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = port;
  a.ah_attr.grh = {.dgid = peer.gid,
                   .flow_label = 0,
                   .sgid_index = gid_index_,
                   .hop_limit = 1,
                   .traffic_class = 0};
  must_be_zero(ibv_modify_qp(queue_pair_, &a,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
               "queue pair to RTR");
  a = {};
  a.qp_state = IBV_QPS_RTS;
  a.max_rd_atomic = 1;
  a.timeout = 14; // 67 ms
  a.retry_cnt = 7;
  a.rnr_retry = 7;
  must_be_zero(ibv_modify_qp(queue_pair_, &a,
                             IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
               "queue pair to RTS");
}

ibv_send_wr Endpoint::request(ibv_wr_opcode opcode, ibv_sge& segment, std::size_t offset) const {
  ibv_send_wr request{};
  request.opcode = opcode;
  request.sg_list = &segment;
  request.num_sge = segment.length > 0 ? 1 : 0;
  if (segment.length <= inline_ && opcode != IBV_WR_RDMA_READ) request.send_flags = IBV_SEND_INLINE;
  request.wr.rdma.remote_addr = peer_inbound_ + offset;
  request.wr.rdma.rkey = peer_key_;
  return request;
}

void Endpoint::post_one(ibv_wr_opcode opcode, std::size_t bytes) {
  ibv_sge segment{reinterpret_cast<std::uint64_t>(data()), static_cast<std::uint32_t>(bytes),
                  region_->lkey};
  ibv_send_wr one = request(opcode, segment, 0);
  // A quarter of the send queue per completion: the same rule as Macadam's for inline messages.
  if (++unsignalled_ == quarter_) {
    one.send_flags |= IBV_SEND_SIGNALED;
    one.wr_id = static_cast<std::uint64_t>(unsignalled_);
    unsignalled_ = 0;
    reap(false);
  }
  post(one, 1);
}

void Endpoint::post_window(ibv_wr_opcode opcode, ibv_wr_opcode last, std::size_t bytes, int count) {
  std::vector<ibv_sge> segments(static_cast<std::size_t>(count));
  std::vector<ibv_send_wr> list(segments.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    segments[i] = {reinterpret_cast<std::uint64_t>(data() + i * bytes),
                   static_cast<std::uint32_t>(bytes), region_->lkey};
    list[i] = request(opcode, segments[i], i * bytes);
    list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  list.back().opcode = last;
  list.back().send_flags |= IBV_SEND_SIGNALED;
  list.back().wr_id = static_cast<std::uint64_t>(count + unsignalled_);
  unsignalled_ = 0;
  post(list[0], count);
}

// Takes completions of sends; their ids say for how many requests each stands.
void Endpoint::reap(bool wait) {
  ibv_wc done[4];
  for (;;) {
    const int n = ibv_poll_cq(sent_, 4, done);
    must(n >= 0, "ibv_poll_cq");
    for (int i = 0; i < n; ++i) {
      if (done[i].status != IBV_WC_SUCCESS) {
        std::fprintf(stderr, "plain: a send failed: %s\n", ibv_wc_status_str(done[i].status));
        std::exit(1);
      }
      room_ += static_cast<int>(done[i].wr_id);
    }
    if (n > 0 || !wait) return;
    sched_yield();
  }
}

void Endpoint::post(ibv_send_wr& first, int count) {
  while (room_ < count)
    reap(true);
  room_ -= count;
  ibv_send_wr* bad = nullptr;
  must_be_zero(ibv_post_send(queue_pair_, &first, &bad), "ibv_post_send");
}

void Endpoint::post_receives(std::size_t stride, std::size_t bytes, int count) {
  std::vector<ibv_sge> segments(static_cast<std::size_t>(count));
  std::vector<ibv_recv_wr> list(segments.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    segments[i] = {reinterpret_cast<std::uint64_t>(inbound() + i * stride),
                   static_cast<std::uint32_t>(bytes), region_->lkey};
    list[i].sg_list = &segments[i];
    list[i].num_sge = 1;
    list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  ibv_recv_wr* bad = nullptr;
  must_be_zero(ibv_post_recv(queue_pair_, list.data(), &bad), "ibv_post_recv");
}

void Endpoint::wait_received(int count) {
  ibv_wc done[16];
  while (count > 0) {
    const int n = ibv_poll_cq(received_, std::min(count, 16), done);
    must(n >= 0, "ibv_poll_cq");
    for (int i = 0; i < n; ++i)
      if (done[i].status != IBV_WC_SUCCESS) {
        std::fprintf(stderr, "plain: a receive failed: %s\n", ibv_wc_status_str(done[i].status));
        std::exit(1);
      }
    count -= n;
    if (n == 0) sched_yield();
  }
}

void Endpoint::barrier() {
  exchange(wire_, 'b');
}

} // namespace verbs
