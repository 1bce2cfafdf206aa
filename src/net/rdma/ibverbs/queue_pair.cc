// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ibverbs/queue_pair.h"

#include "net/rdma/ibverbs/queues.h"
#include "net/rdma/ibverbs/receives.h"
#include "net/rdma/model.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>

namespace macadam::net::rdma::ibverbs {
namespace {

// Reads and atomics under way in each direction. Both sides must allow the same: what common
// adapters have, or fewer.
constexpr std::uint32_t most_reads = 16;
constexpr std::uint32_t packet_number_bits = 0xffffff;

// Where the numbering of packets from one queue pair to another begins: not the same for two
// connections that follow each other, so that a late packet of the first is not taken for one of
// the second.
std::uint32_t first_packet(std::uint32_t from, std::uint32_t to) {
  return (from * 0x9e3779b1u + to) >> 4 & packet_number_bits;
}

constexpr std::array codes{IBV_WR_SEND,
                           IBV_WR_SEND_WITH_IMM,
                           IBV_WR_RDMA_WRITE,
                           IBV_WR_RDMA_WRITE_WITH_IMM,
                           IBV_WR_RDMA_READ,
                           IBV_WR_ATOMIC_CMP_AND_SWP,
                           IBV_WR_ATOMIC_FETCH_AND_ADD}; // by Operation
static_assert(codes[static_cast<std::size_t>(Operation::write)] == IBV_WR_RDMA_WRITE);
static_assert(codes.size() == static_cast<std::size_t>(Operation::fetch_and_add) + 1);

struct Address : AddressHandle {
  explicit Address(Owned<ibv_ah> made) : handle(std::move(made)) {}
  Owned<ibv_ah> handle;
};

// The driver's form of a request. It refers to the segments of `work`.
inline void fill(ibv_send_wr& request, const SendWork& work, ibv_send_wr* next) {
  request.wr_id = work.id;
  request.next = next;
  request.sg_list = entries_of(work.segments.data());
  request.num_sge = static_cast<int>(work.segments.size());
  request.opcode = codes[static_cast<std::size_t>(work.operation)];
  request.send_flags = (work.signalled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0) |
                       (work.inlined ? static_cast<unsigned>(IBV_SEND_INLINE) : 0);
  request.imm_data = htonl(work.immediate);
  if (work.to != nullptr) {
    request.wr.ud.ah = static_cast<const Address*>(work.to)->handle.get();
    request.wr.ud.remote_qpn = work.remote_number;
    request.wr.ud.remote_qkey = work.remote_qkey;
  } else if (work.operation >= Operation::compare_and_swap) {
    request.wr.atomic.remote_addr = work.remote_address;
    request.wr.atomic.compare_add = work.compare_or_add;
    request.wr.atomic.swap = work.swap;
    request.wr.atomic.rkey = work.remote_key;
  } else {
    request.wr.rdma.remote_addr = work.remote_address;
    request.wr.rdma.rkey = work.remote_key;
  }
}

std::string text_of_remote(const QueuePairAddress& remote) {
  return fmt::format("queue pair {} of GID {}, LID {}", remote.number, text_of(remote.port.gid),
                     remote.port.lid);
}

// What needs a peer's address on the Ethernet: the kernel asks for that and waits a second, which a
// busy machine can miss. An errno, or 0.
template <class Call>
int ask_for_address(Call&& call) {
  constexpr int most = 3; // times
  int error = call();
  for (int i = 1; i < most && error == ETIMEDOUT; ++i)
    error = call();
  return error;
}

} // namespace

std::unique_ptr<AddressHandle> make_address(Port& port, const PortAddress& to) {
  ibv_ah_attr route = port.route_to(to);
  Owned<ibv_ah> handle(nullptr, port.library.destroy_ah);
  const int error = ask_for_address([&] {
    handle.reset(port.library.create_ah(port.domain.get(), &route));
    return handle == nullptr ? errno : 0;
  });
  if (error != 0) {
    base::fail(MPI_ERR_OTHER,
               "RDMA: {} finds no way to GID {}, LID {}: {}; are both ports in one network, and is "
               "the peer's address reachable (ping)?",
               port.name, text_of(to.gid), to.lid, text_of_errno(error));
  }
  return std::make_unique<Address>(std::move(handle));
}

IbverbsQueuePair::IbverbsQueuePair(Port& port, const QueuePairOptions& options)
    : port_(port), pair_(nullptr, port.library.destroy_qp), datagrams_(options.datagrams) {
  ibv_qp_init_attr wanted{};
  wanted.qp_context = this;
  wanted.send_cq = static_cast<IbverbsCompletionQueue*>(options.sends)->get();
  wanted.recv_cq = static_cast<IbverbsCompletionQueue*>(options.receives)->get();
  if (options.shared != nullptr)
    wanted.srq = static_cast<IbverbsSharedReceiveQueue*>(options.shared)->get();
  wanted.cap.max_send_wr = options.send_depth;
  wanted.cap.max_recv_wr = options.receive_depth;
  wanted.cap.max_send_sge = model::send_segments(options.inline_bytes, port.limits.segments);
  wanted.cap.max_recv_sge = options.shared != nullptr ? 0 : 1;
  wanted.cap.max_inline_data = options.inline_bytes;
  wanted.qp_type = datagrams_ ? IBV_QPT_UD : IBV_QPT_RC;
  pair_.reset(port.library.create_qp(port.domain.get(), &wanted));
  if (pair_ == nullptr) {
    port.refuse_object(fmt::format("queue pair (send depth {}, receive depth {}, {} bytes inline)",
                                   options.send_depth, options.receive_depth, options.inline_bytes),
                       errno);
  }
  initialise(options.qkey);
  if (datagrams_) start_datagrams();
}

void IbverbsQueuePair::initialise(std::uint32_t qkey) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port_.facts.number;
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (datagrams_) {
    attributes.qkey = qkey;
    mask |= IBV_QP_QKEY;
  } else {
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    if (port_.limits.atomics) attributes.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
    mask |= IBV_QP_ACCESS_FLAGS;
  }
  modify(attributes, mask, "be initialised");
}

void IbverbsQueuePair::start_datagrams() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  modify(attributes, IBV_QP_STATE, "receive");
  attributes.qp_state = IBV_QPS_RTS;
  modify(attributes, IBV_QP_STATE | IBV_QP_SQ_PSN, "send");
}

void IbverbsQueuePair::accept(const QueuePairAddress& remote, const Retries& retries) {
  remote_ = remote;
  retries_ = retries;
  const std::uint8_t theirs = remote.port.mtu != 0 ? remote.port.mtu : port_.facts.mtu;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr = port_.route_to(remote.port);
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(port_.facts.mtu, theirs));
  attributes.dest_qp_num = remote.number;
  attributes.rq_psn = first_packet(remote.number, number());
  attributes.max_dest_rd_atomic =
      static_cast<std::uint8_t>(std::min(port_.limits.outstanding_reads, most_reads));
  attributes.min_rnr_timer = retries.receiver_not_ready_timer;
  modify(attributes,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "receive");
}

void IbverbsQueuePair::establish() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = retries_.timeout;
  attributes.retry_cnt = retries_.count;
  attributes.rnr_retry = retries_.receiver_not_ready;
  attributes.sq_psn = first_packet(number(), remote_.number);
  attributes.max_rd_atomic =
      static_cast<std::uint8_t>(std::min(port_.limits.outstanding_reads, most_reads));
  modify(attributes,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "send");
}

void IbverbsQueuePair::fail() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  // It fails only when the adapter is gone, and so is then the queue pair.
  port_.library.modify_qp(pair_.get(), &attributes, IBV_QP_STATE);
}

void IbverbsQueuePair::modify(ibv_qp_attr& attributes, int mask, const char* to) {
  const int error =
      ask_for_address([&] { return port_.library.modify_qp(pair_.get(), &attributes, mask); });
  if (error == 0) return;
  if (datagrams_ || remote_.number == 0) {
    base::fail(MPI_ERR_OTHER, "RDMA: queue pair {} of {} cannot {}: {}", number(), port_.name, to,
               text_of_errno(error));
  }
  base::fail(MPI_ERR_OTHER,
             "RDMA: queue pair {} of {} (GID {}, MTU {}) cannot {} with {}: {}; are both ports in "
             "one network, and is the peer's address reachable (ping)?",
             number(), port_.name, text_of(port_.gid.bytes), port_.limits.mtu, to,
             text_of_remote(remote_), text_of_errno(error));
}

// A chain of `count` requests, with one doorbell; how many were taken.
inline std::size_t IbverbsQueuePair::post_chain(ibv_send_wr& first, std::size_t count) {
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(pair_.get(), &first, &refused);
  if (error == 0) [[likely]]
    return count;
  if (error == ENOMEM) return static_cast<std::size_t>(refused - &first);
  port_.tell_refused("requests", error); // as good as posted: they fail with everything else
  return count;
}

std::size_t IbverbsQueuePair::post(std::span<const SendWork> work) {
  if (work.size() != 1) [[unlikely]]
    return post_many(work);
  ibv_send_wr request;
  fill(request, work.front(), nullptr);
  return post_chain(request, 1);
}

std::size_t IbverbsQueuePair::post_many(std::span<const SendWork> work) {
  constexpr std::size_t most_at_once = 8;
  std::array<ibv_send_wr, most_at_once> requests;
  std::size_t taken = 0;
  while (taken < work.size()) {
    const std::size_t count = std::min(work.size() - taken, most_at_once);
    for (std::size_t i = 0; i < count; ++i)
      fill(requests[i], work[taken + i], i + 1 < count ? &requests[i + 1] : nullptr);
    const std::size_t posted = post_chain(requests[0], count);
    taken += posted;
    if (posted != count) break;
  }
  return taken;
}

bool IbverbsQueuePair::post_receive(std::span<const ReceiveWork> work) {
  return work.size() ==
         post_receives(port_, work, [this](ibv_recv_wr* first, ibv_recv_wr** refused) {
           return ibv_post_recv(pair_.get(), first, refused);
         });
}

} // namespace macadam::net::rdma::ibverbs
