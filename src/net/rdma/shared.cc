// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/shared.h"

#include "base/error.h"
#include "net/rdma/model.h"

#include <algorithm>
#include <array>
#include <utility>

namespace macadam::net::rdma {
namespace {

// Receives posted with one doorbell: as many as are kept by default.
constexpr std::size_t most_at_once = 512;

void tally(std::uint64_t& counter, std::uint64_t by) {
  std::atomic_ref(counter).fetch_add(by, std::memory_order_relaxed);
}

} // namespace

SharedReceiver::SharedReceiver(Device& device, BufferPool& pool, const model::Shape& shape,
                               bool async)
    : pool_(pool), kept_(shape.shared), watermark_(shape.watermark), most_(shape.most_receives),
      depth_(shape.shared_depth),
      batch_(std::min(model::shared_batch, (kept_ - watermark_ + 1) / 2)), driver_(shape.driver) {
  if (device.limits().shared_depth == 0) {
    base::fail(MPI_ERR_OTHER,
               "RDMA: {} has no shared receive queues; set MACADAM_RDMA_RECEIVE=credit",
               device.name());
  }
  completions_ = device.make_completion_queue(most_, async);
  // A receive may keep its place until its completion is read: room for all that may be so.
  queue_ = device.make_shared_receive_queue(depth_);
  post_new(kept_, 1);
  if (watermark_ != 0) queue_->arm_limit(watermark_);
}

SharedReceiver::~SharedReceiver() = default;

void SharedReceiver::open(Connection&) {
  if (std::exchange(reserved_, true)) return;
  pool_.reserve(model::reserved_receives(kept_, watermark_, most_));
}

void SharedReceiver::configure(QueuePairOptions& options) const {
  options.shared = queue_.get();
  options.receives = completions_.get();
  options.receive_depth = 0;
}

// Posts receives with buffers that were not in use, as far as there are any.
std::size_t SharedReceiver::post_new(std::uint32_t count, std::size_t registering) {
  std::size_t posted = 0;
  while (posted < count) {
    std::array<Buffer*, most_at_once> buffers;
    const std::size_t left = count - posted;
    const std::size_t most = std::min(buffers.size(), left);
    // If any are registered, then as many as are wanted in all.
    const std::size_t taken = pool_.take(std::span(buffers).first(most),
                                         registering == 0 ? 0 : std::max(registering, left));
    if (taken == 0) break;
    std::array<ReceiveWork, most_at_once> work;
    for (std::size_t i = 0; i < taken; ++i)
      work[i] = receive_into(*buffers[i]);
    held_.fetch_add(static_cast<std::uint32_t>(taken), std::memory_order_relaxed);
    const std::size_t done = post(std::span(work).first(taken));
    posted += done;
    if (done != most) break;
  }
  return posted;
}

// What the queue has no room for goes back to the pool; how many it took.
std::size_t SharedReceiver::post(std::span<const ReceiveWork> work) {
  const std::size_t taken = queue_->post(work);
  for (std::size_t i = taken; i < work.size(); ++i)
    pool_.give(buffer_of(work[i].id));
  if (taken != work.size())
    held_.fetch_sub(static_cast<std::uint32_t>(work.size() - taken), std::memory_order_relaxed);
  return taken;
}

// The progress thread: the application has not read for so long that the queue runs low
// (section 4.1.3). How many are left is not told: fewer than the watermark at the event, and by
// equation 5 none when the progress thread has woken up. So it posts what is kept, in batches so
// that the first soon serve. Registering more is the computation's time: no more than it takes
// until the next event, and some batches together. Nor more than may be held: completions that
// nobody reads stay fewer than their queue has room for, and the rest of the pool is left to sends.
// Buffers that were read and wait to be posted count, or nobody would free one for a send when no
// further message comes.
std::size_t SharedReceiver::on_limit() noexcept {
  tally(limit_events_, 1);
  std::size_t posted = 0;
  while (posted < kept_) {
    const std::uint32_t room = most_ - held_.load(std::memory_order_relaxed);
    const auto left = static_cast<std::uint32_t>(kept_ - posted);
    const std::size_t count = post_new(std::min({room, left, batch_}),
                                       posted < watermark_ ? BufferPool::largest_arena : 0);
    if (count == 0) break;
    posted += count;
  }
  tally(refilled_, posted);
  // With nothing posted the event would come again at once: then the application arms it, when it
  // has given buffers back.
  if (posted != 0)
    queue_->arm_limit(watermark_);
  else
    limit_due_.store(true, std::memory_order_release);
  return posted;
}

Connection* SharedReceiver::consumed(Connection*, const Completion& completion, const wire::Note&) {
  Buffer* const buffer = buffer_of(completion.id);
  // Above `kept_`, the progress thread has posted in between what the burst needed: back to the
  // pool.
  if (held_.load(std::memory_order_relaxed) > kept_) [[unlikely]] {
    give_back(*buffer);
  } else {
    unposted_[unposted_count_++] = receive_into(*buffer);
    if (unposted_count_ >= batch_) [[unlikely]]
      repost();
  }
  return nullptr;
}

void SharedReceiver::give_back(Buffer& buffer) {
  held_.fetch_sub(1, std::memory_order_relaxed);
  ++returned_;
  pool_.give(&buffer);
  rearm();
}

void SharedReceiver::repost() {
  if (pool_.retiring()) [[unlikely]] {
    for (ReceiveWork& work : std::span(unposted_).first(unposted_count_))
      work = receive_into(*pool_.exchange(buffer_of(work.id)));
  }
  post(std::span(unposted_).first(std::exchange(unposted_count_, 0)));
  rearm();
}

// Buffers have been given back: the progress thread may find some now.
void SharedReceiver::rearm() {
  if (limit_due_.load(std::memory_order_relaxed) &&
      limit_due_.exchange(false, std::memory_order_acquire))
    queue_->arm_limit(watermark_);
}

void SharedReceiver::list_counters(base::CounterList& list) const {
  list.add("rdma", "limit_events", "times the shared receives ran low while nobody read them",
           limit_events_);
  list.add("rdma", "refilled", "shared receives posted by the progress thread", refilled_);
  list.add("rdma", "returned", "message buffers given back after a burst", returned_);
}

std::size_t SharedReceiver::bytes() const {
  return driver_.completion_bytes(most_) + driver_.shared_bytes(depth_);
}

} // namespace macadam::net::rdma
