// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/measure.h"

#include "base/error.h"
#include "mem/resident.h"
#include "net/rdma/datagrams.h"
#include "net/rdma/model.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <vector>

namespace macadam::net::rdma {
namespace {

constexpr std::uint32_t depth = 64;       // receives, and requests of the sender
constexpr std::uint32_t burst = 16;       // messages posted together
constexpr std::uint32_t message = 8;      // bytes
constexpr unsigned wake_ups = 200;        // that are measured
constexpr std::uint32_t messages = 20000; // ... for the rate
constexpr unsigned bursts = 16;           // ... of which the best counts
constexpr double patience = 1.0;          // seconds until something counts as lost

class Loop final : EventSink {
 public:
  Loop(Device& device, bool hears_events)
      : device_(device), hears_events_(hears_events),
        sends_(device.make_completion_queue(2 * depth, false)),
        receives_(device.make_completion_queue(2 * depth, false)),
        queue_(device.make_shared_receive_queue(depth)),
        region_(device.register_memory(memory_.get(), room, Access::local)) {
    QueuePairOptions options;
    options.sends = sends_.get();
    options.receives = receives_.get();
    options.shared = queue_.get();
    options.send_depth = depth;
    from_ = device.make_queue_pair(options);
    to_ = device.make_queue_pair(options);
    from_->accept({device.address(), to_->number()}, {});
    to_->accept({device.address(), from_->number()}, {});
    from_->establish();
    to_->establish();
    if (hears_events) device.set_event_sink(this);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() {
    if (hears_events_) device_.set_event_sink(nullptr);
  }

  double wake_up() {
    post_receives(2 - posted_);
    std::vector<double> times;
    for (unsigned i = 0; i < wake_ups; ++i) {
      notified_.store(0, std::memory_order_relaxed);
      queue_->arm_limit(2);
      send(1);
      wait_for("a message did not arrive", [&] { return take_messages() != 0; });
      const double arrived = device_.now();
      wait_for("the event of a shared receive queue that runs low did not come",
               [&] { return notified_.load(std::memory_order_acquire) != 0; });
      times.push_back(std::max(notified_.load(std::memory_order_relaxed) - arrived, 0.0));
      post_receives(1);
    }
    const auto most = times.begin() + static_cast<std::ptrdiff_t>(times.size() * 9 / 10);
    std::nth_element(times.begin(), most, times.end());
    return *most;
  }

  double rate() {
    post_receives(depth - posted_);
    const double begin = device_.now();
    std::uint32_t sent = 0, arrived = 0;
    while (arrived < messages) {
      while (sent < messages && sent - arrived + burst <= depth && in_flight_ + burst <= depth) {
        send(burst);
        sent += burst;
      }
      wait_for("messages did not arrive", [&] {
        const std::uint32_t taken = take_messages();
        arrived += taken;
        post_receives(taken);
        return taken != 0;
      });
    }
    return messages / (device_.now() - begin);
  }

  double message_cost() {
    double best = patience;
    for (unsigned i = 0; i < bursts; ++i) {
      const double begin = device_.now();
      post_receives(burst - posted_);
      send(burst);
      std::uint32_t arrived = 0;
      wait_for("messages did not arrive",
               [&] { return (arrived += take_messages()) == burst && in_flight_ == 0; });
      best = std::min(best, device_.now() - begin);
    }
    return best / burst;
  }

 private:
  static constexpr std::size_t room = std::size_t{2} * model::page;
  static_assert(messages % burst == 0);

  void on_limit(SharedReceiveQueue&) noexcept override {
    notified_.store(device_.now(), std::memory_order_release);
  }
  void on_completions(CompletionQueue&) noexcept override {}
  void on_failure(std::uint32_t, const std::string&) noexcept override {} // patience tells

  Segment segment(std::size_t offset) {
    return {memory_.get() + offset, message, region_->local_key};
  }

  void post_receives(std::uint32_t count) {
    for (; count != 0; --count) {
      const ReceiveWork work = {.id = 0, .segment = segment(model::page)};
      if (queue_->post({&work, 1}) != 1) fail("a receive was not taken");
      ++posted_;
    }
  }

  void send(std::uint32_t count) {
    const Segment from = segment(0);
    std::array<SendWork, burst> work;
    for (std::uint32_t i = 0; i < count; ++i)
      work[i].segments = {&from, 1};
    work[count - 1].signalled = true;
    work[count - 1].id = count;
    if (from_->post({work.data(), count}) != count) fail("the send queue took too few requests");
    in_flight_ += count;
  }

  // Looks at both queues; how many messages have arrived.
  std::uint32_t take_messages() {
    std::array<Completion, depth> found;
    for (std::size_t i = 0, count = sends_->poll(found); i < count; ++i) {
      if (found[i].status != WorkStatus::ok) fail("a message was not sent");
      in_flight_ -= static_cast<std::uint32_t>(found[i].id);
    }
    const std::size_t count = receives_->poll(found);
    for (std::size_t i = 0; i < count; ++i)
      if (found[i].status != WorkStatus::ok) fail("a message was not received");
    posted_ -= static_cast<std::uint32_t>(count);
    return static_cast<std::uint32_t>(count);
  }

  template <class Condition>
  void wait_for(const char* otherwise, Condition condition) {
    const double begin = device_.now();
    while (!condition()) {
      if (device_.now() - begin > patience) fail(otherwise);
      device_.yield();
    }
  }

  [[noreturn]] void fail(const char* what) const {
    base::fail(MPI_ERR_OTHER, "RDMA: {} cannot be measured: {}; is the port still up?",
               device_.name(), what);
  }

  Device& device_;
  const bool hears_events_;
  // Registered as whole pages.
  std::unique_ptr<std::byte[]> memory_ = std::make_unique<std::byte[]>(room);
  std::unique_ptr<CompletionQueue> sends_;
  std::unique_ptr<CompletionQueue> receives_;
  std::unique_ptr<SharedReceiveQueue> queue_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<QueuePair> from_;
  std::unique_ptr<QueuePair> to_;
  std::uint32_t posted_ = 0;         // receives
  std::uint32_t in_flight_ = 0;      // requests
  std::atomic<double> notified_ = 0; // when the progress thread was woken
};

void require_shared_queue(const Device& device, const char* consequence) {
  if (device.limits().shared_depth >= depth) return;
  base::fail(MPI_ERR_OTHER, "RDMA: {} has no shared receive queues of {} receives, {}",
             device.name(), depth, consequence);
}

} // namespace

ProgressThreadFigures measure_progress_thread(Device& device) {
  require_shared_queue(device, "so nothing wakes the progress thread");
  Loop loop(device, true);
  ProgressThreadFigures figures;
  figures.wake_up = loop.wake_up();
  figures.rate = loop.rate();
  return figures;
}

double measure_message(Device& device) {
  require_shared_queue(device, "with which messages are measured");
  return Loop(device, false).message_cost();
}

namespace {

// Bytes of one of `count` objects that `make` gives.
template <class Make>
double cost_of(unsigned count, Make make) {
  std::vector<decltype(make())> made;
  made.reserve(count);
  mem::resident_bytes(); // what reading takes is there before
  const std::size_t before = mem::resident_bytes();
  for (unsigned i = 0; i < count; ++i)
    made.push_back(make());
  const std::size_t after = mem::resident_bytes();
  return static_cast<double>(after - std::min(before, after)) / count;
}

} // namespace

model::Driver measure_driver(Device& device, const model::Shape& shared,
                             const model::Shape& windowed) {
  constexpr unsigned few = 4;
  constexpr unsigned many = 32;
  model::Driver driver = {.queue_pair = 0, .send = 0, .receive = 0, .rounds_up = true};
  const std::uint32_t depth = model::queue_depth(0, shared.completions(), shared.completion_depth);
  driver.completion = cost_of(few, [&] { return device.make_completion_queue(depth, false); }) /
                      driver.entries(depth);
  driver.shared =
      cost_of(few, [&] { return device.make_shared_receive_queue(shared.shared_depth); }) /
      driver.entries(shared.shared_depth);
  const auto completions = device.make_completion_queue(depth, false);
  const auto receives = device.make_shared_receive_queue(shared.shared_depth);
  QueuePairOptions options;
  options.sends = options.receives = completions.get();
  options.shared = receives.get();
  options.send_depth = shared.send_depth;
  options.inline_bytes = shared.inline_bytes;
  const double sends = cost_of(many, [&] { return device.make_queue_pair(options); });
  driver.send = sends / shared.send_depth;
  options.shared = nullptr;
  options.receive_depth = windowed.receive_depth();
  const double both = cost_of(many, [&] { return device.make_queue_pair(options); });
  driver.receive = std::max(both - sends, 0.0) / windowed.receive_depth();
  driver.datagrams = cost_of(few, [&] { return std::make_unique<Datagrams>(device, 0); }) -
                     static_cast<double>(model::datagram_packets());
  return driver;
}

std::uint32_t measured_watermark(const ProgressThreadFigures& figures) {
  return std::max(model::watermark(figures.rate, 1, figures.wake_up), 1u); // 0 would turn it off
}

} // namespace macadam::net::rdma
