// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ibverbs/queues.h"

#include "net/rdma/ibverbs/receives.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <fcntl.h>

namespace macadam::net::rdma::ibverbs {
namespace {

constexpr std::size_t most_at_once = 16; // completions taken from the driver by one call

[[gnu::cold]] WorkStatus status_of(ibv_wc_status status) {
  switch (status) {
  case IBV_WC_WR_FLUSH_ERR:
    return WorkStatus::flushed;
  case IBV_WC_RNR_RETRY_EXC_ERR:
    return WorkStatus::no_receiver;
  case IBV_WC_RETRY_EXC_ERR:
  case IBV_WC_RESP_TIMEOUT_ERR:
    return WorkStatus::no_answer;
  case IBV_WC_REM_ACCESS_ERR:
  case IBV_WC_REM_INV_REQ_ERR:
  case IBV_WC_REM_OP_ERR:
    return WorkStatus::refused;
  default:
    return WorkStatus::failed;
  }
}

void fill(Completion& completion, const ibv_wc& done) {
  completion.id = done.wr_id;
  completion.queue_pair = done.qp_num;
  if (done.status != IBV_WC_SUCCESS) [[unlikely]] {
    completion.status = status_of(done.status);
    return; // the rest is not defined then
  }
  completion.status = WorkStatus::ok;
  completion.bytes = done.byte_len;
  completion.immediate = (done.wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(done.imm_data) : 0;
}

} // namespace

CompletionChannel::CompletionChannel(Port& port)
    : port_(port), channel_(port.library.create_comp_channel(port.context.get()),
                            port.library.destroy_comp_channel) {
  if (channel_ == nullptr) port.refuse_object("completion channel", errno);
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
}

IbverbsCompletionQueue* CompletionChannel::take() {
  const std::scoped_lock guard(lock_);
  ibv_cq* queue = nullptr;
  void* ours = nullptr;
  if (port_.library.get_cq_event(channel_.get(), &queue, &ours) != 0) return nullptr;
  // At once: a queue cannot be destroyed while an event of it is not acknowledged.
  port_.library.ack_cq_events(queue, 1);
  return static_cast<IbverbsCompletionQueue*>(ours);
}

IbverbsCompletionQueue::IbverbsCompletionQueue(Port& port, CompletionChannel& channel,
                                               std::uint32_t depth)
    : port_(port), channel_(channel),
      queue_(port.library.create_cq(port.context.get(), static_cast<int>(depth), this,
                                    channel.get(), 0),
             port.library.destroy_cq) {
  if (queue_ == nullptr)
    port.refuse_object(fmt::format("completion queue of {} entries", depth), errno);
}

std::size_t IbverbsCompletionQueue::poll(std::span<Completion> completions) {
  std::array<ibv_wc, most_at_once> done; // filled by the driver as far as it is read
  const std::size_t most = std::min(completions.size(), done.size());
  const int found = ibv_poll_cq(queue_.get(), static_cast<int>(most), done.data());
  if (found < 0) [[unlikely]] {
    port_.loss.tell(fmt::format("a completion queue of {} cannot be read", port_.name));
    return 0;
  }
  const auto count = static_cast<std::size_t>(found);
  for (std::size_t i = 0; i < count; ++i)
    fill(completions[i], done[i]);
  return count;
}

void IbverbsCompletionQueue::arm() {
  const std::scoped_lock guard(channel_.lock_);
  if (const int error = ibv_req_notify_cq(queue_.get(), 0))
    port_.loss.tell(fmt::format("a completion queue of {} cannot be armed: {}", port_.name,
                                text_of_errno(error)));
}

IbverbsSharedReceiveQueue::IbverbsSharedReceiveQueue(Port& port, std::uint32_t depth)
    : port_(port), queue_(nullptr, port.library.destroy_srq) {
  ibv_srq_init_attr options{};
  options.srq_context = this;
  options.attr.max_wr = depth;
  options.attr.max_sge = 1;
  queue_.reset(port.library.create_srq(port.domain.get(), &options));
  if (queue_ == nullptr)
    port.refuse_object(fmt::format("shared receive queue of {} receives", depth), errno);
}

std::size_t IbverbsSharedReceiveQueue::post(std::span<const ReceiveWork> work) {
  return post_receives(port_, work, [this](ibv_recv_wr* first, ibv_recv_wr** refused) {
    return ibv_post_srq_recv(queue_.get(), first, refused);
  });
}

void IbverbsSharedReceiveQueue::arm_limit(std::uint32_t watermark) {
  ibv_srq_attr attributes{};
  attributes.srq_limit = watermark;
  if (const int error = port_.library.modify_srq(queue_.get(), &attributes, IBV_SRQ_LIMIT))
    port_.loss.tell(fmt::format("the shared receive queue of {} takes no limit of {}: {}",
                                port_.name, watermark, text_of_errno(error)));
}

} // namespace macadam::net::rdma::ibverbs
