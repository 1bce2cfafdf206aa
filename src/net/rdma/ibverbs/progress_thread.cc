// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ibverbs/progress_thread.h"

#include "base/thread.h"
#include "net/rdma/ibverbs/clock.h"

#include <algorithm>
#include <array>
#include <poll.h>

namespace macadam::net::rdma::ibverbs {
namespace {

// A link that is down for less may come back and be as good as before: adapters resend meanwhile.
constexpr double longest_outage = 5; // seconds

} // namespace

ProgressThread::ProgressThread(Port& port, CompletionChannel& async, EventSink& sink)
    : port_(port), async_(async), sink_(sink) {
  thread_ = base::start_thread("macadam-rdma", [this] { run(); });
}

ProgressThread::~ProgressThread() {
  stop_.ring();
  thread_.join();
}

void ProgressThread::run() {
  enum { stop, adapter, completions, loss };
  std::array<pollfd, 4> watched = {pollfd{stop_.descriptor(), POLLIN, 0},
                                   {port_.context->async_fd, POLLIN, 0},
                                   {async_.descriptor(), POLLIN, 0},
                                   {port_.loss.event.descriptor(), POLLIN, 0}};
  for (;;) {
    ::poll(watched.data(), watched.size(), patience_ms());
    if (watched[stop].revents != 0) return;
    if (watched[completions].revents != 0) {
      while (IbverbsCompletionQueue* const queue = async_.take())
        sink_.on_completions(*queue);
    }
    if (watched[adapter].revents != 0) read_adapter_events();
    look_at_port();
    if (watched[loss].revents != 0) {
      port_.loss.event.clear();
      sink_.on_failure(all_queue_pairs, port_.loss.reason());
    }
  }
}

void ProgressThread::read_adapter_events() {
  ibv_async_event event{};
  while (port_.library.get_async_event(port_.context.get(), &event) == 0) {
    int number = 0;
    std::uint32_t queue_pair = 0;
    SharedReceiveQueue* shared = nullptr;
    switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      queue_pair = event.element.qp->qp_num;
      break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      shared = static_cast<IbverbsSharedReceiveQueue*>(event.element.srq->srq_context);
      break;
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
      number = event.element.port_num;
      break;
    default:
      break;
    }
    // Before the sink is called: what it waits for may be that this object is destroyed, which
    // waits for us.
    port_.library.ack_async_event(&event);
    on_adapter_event(event.event_type, number, queue_pair, shared);
  }
}

void ProgressThread::on_adapter_event(ibv_event_type type, int port, std::uint32_t queue_pair,
                                      SharedReceiveQueue* shared) {
  const char* const text = port_.library.event_type_str(type);
  switch (type) {
  case IBV_EVENT_SRQ_LIMIT_REACHED:
    return sink_.on_limit(*shared);
  case IBV_EVENT_QP_FATAL:
  case IBV_EVENT_QP_REQ_ERR:
  case IBV_EVENT_QP_ACCESS_ERR:
    return sink_.on_failure(
        queue_pair, base::make_error(MPI_ERR_OTHER, "{} reports: {}", port_.name, text).text);
  case IBV_EVENT_PORT_ERR:
    if (port == port_.facts.number && !down_since_) down_since_ = seconds();
    return;
  case IBV_EVENT_PORT_ACTIVE:
    if (port == port_.facts.number) down_since_.reset();
    return;
  case IBV_EVENT_DEVICE_FATAL:
  case IBV_EVENT_CQ_ERR:
  case IBV_EVENT_SRQ_ERR:
    return port_.loss.tell(
        base::make_error(MPI_ERR_OTHER, "{} reports: {}", port_.name, text).text);
  default:
    return; // of path migration, managers and tables: connections notice what concerns them
  }
}

// How long nothing need be looked at, -1: for ever.
int ProgressThread::patience_ms() const {
  if (!down_since_) return -1;
  const double left = *down_since_ + longest_outage - seconds();
  return static_cast<int>(std::max(left, 0.0) * 1e3) + 1;
}

void ProgressThread::look_at_port() {
  if (!down_since_ || seconds() - *down_since_ < longest_outage) return;
  down_since_.reset();
  port_.loss.tell(base::make_error(MPI_ERR_OTHER,
                                   "the port {} has been down for {} s; look at its cable, or its "
                                   "network interface",
                                   port_.name, longest_outage)
                      .text);
}

} // namespace macadam::net::rdma::ibverbs
