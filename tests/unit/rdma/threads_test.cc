// SPDX-License-Identifier: BSD-3-Clause
// The transport with real threads: each process has its own and a progress thread, as with verbs,
// over the simulated network, which one more thread keeps going. For the thread sanitizer: what two
// threads touch must be under a lock. Contents are checked too.
#include "world.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace macadam::test {
namespace {

// A device that many threads may use: one lock around the simulation, and a thread that handles
// events.
class Threaded final : public Device, EventSink {
 public:
  Threaded(std::mutex& lock, sim::SimulatedDevice& inner)
      : lock_(lock), inner_(inner), name_(inner.name()), limits_(inner.limits()),
        address_(inner.address()) {}
  ~Threaded() override { set_event_sink(nullptr); }

  // An object of the simulated device behind the lock.
  template <class Base>
  struct Guarded : Base {
    Guarded(std::mutex& its_lock, std::unique_ptr<Base> object)
        : lock(its_lock), inner(std::move(object)) {}
    ~Guarded() override {
      const std::scoped_lock guard(lock);
      inner.reset();
    }
    std::mutex& lock;
    std::unique_ptr<Base> inner;
  };
  using Region = Guarded<MemoryRegion>;
  using Handle = Guarded<AddressHandle>;
  struct Completions final : Guarded<CompletionQueue> {
    using Guarded::Guarded;
    std::size_t poll(std::span<Completion> completions) noexcept override {
      const std::scoped_lock guard(lock);
      return inner->poll(completions);
    }
    void arm() override {
      const std::scoped_lock guard(lock);
      inner->arm();
    }
  };
  struct Shared final : Guarded<SharedReceiveQueue> {
    using Guarded::Guarded;
    std::size_t post(std::span<const ReceiveWork> work) override {
      const std::scoped_lock guard(lock);
      return inner->post(work);
    }
    void arm_limit(std::uint32_t watermark) override {
      const std::scoped_lock guard(lock);
      inner->arm_limit(watermark);
    }
  };
  struct Queues final : Guarded<QueuePair> {
    using Guarded::Guarded;
    std::uint32_t number() const override { return inner->number(); } // constant
    void accept(const QueuePairAddress& remote, const Retries& retries) override {
      const std::scoped_lock guard(lock);
      inner->accept(remote, retries);
    }
    void establish() override {
      const std::scoped_lock guard(lock);
      inner->establish();
    }
    void fail() override {
      const std::scoped_lock guard(lock);
      inner->fail();
    }
    std::size_t post(std::span<const SendWork> work) override {
      const std::scoped_lock guard(lock);
      std::vector<SendWork> same(work.begin(), work.end());
      for (SendWork& each : same) {
        if (each.to != nullptr) each.to = static_cast<const Handle*>(each.to)->inner.get();
      }
      return inner->post(same);
    }
    bool post_receive(std::span<const ReceiveWork> work) override {
      const std::scoped_lock guard(lock);
      return inner->post_receive(work);
    }
  };

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] const DeviceLimits& limits() const noexcept override { return limits_; }
  [[nodiscard]] const PortAddress& address() const override { return address_; }
  std::unique_ptr<MemoryRegion> register_memory(void* memory, std::size_t bytes,
                                                Access access) override {
    const std::scoped_lock guard(lock_);
    auto region = std::make_unique<Region>(lock_, inner_.register_memory(memory, bytes, access));
    region->local_key = region->inner->local_key;
    region->remote_key = region->inner->remote_key;
    return region;
  }
  std::unique_ptr<CompletionQueue> make_completion_queue(std::uint32_t depth, bool async) override {
    const std::scoped_lock guard(lock_);
    return std::make_unique<Completions>(lock_, inner_.make_completion_queue(depth, async));
  }
  std::unique_ptr<SharedReceiveQueue> make_shared_receive_queue(std::uint32_t depth) override {
    const std::scoped_lock guard(lock_);
    return std::make_unique<Shared>(lock_, inner_.make_shared_receive_queue(depth));
  }
  std::unique_ptr<QueuePair> make_queue_pair(const QueuePairOptions& options) override {
    const std::scoped_lock guard(lock_);
    QueuePairOptions same = options;
    same.sends = static_cast<Completions*>(options.sends)->inner.get();
    same.receives = static_cast<Completions*>(options.receives)->inner.get();
    if (options.shared != nullptr) same.shared = static_cast<Shared*>(options.shared)->inner.get();
    return std::make_unique<Queues>(lock_, inner_.make_queue_pair(same));
  }
  std::unique_ptr<AddressHandle> make_address_handle(const PortAddress& to) override {
    const std::scoped_lock guard(lock_);
    return std::make_unique<Handle>(lock_, inner_.make_address_handle(to));
  }

  void set_event_sink(EventSink* sink) override {
    {
      const std::scoped_lock guard(lock_);
      inner_.set_event_sink(sink == nullptr ? nullptr : this);
    }
    if (thread_.joinable()) {
      {
        const std::scoped_lock guard(events_lock_);
        ending_ = true;
      }
      wake_up_.notify_all();
      thread_.join();
    }
    if (sink != nullptr) thread_ = std::thread([this, sink] { run(*sink); });
  }
  // The sleeper must not hold up the world: it looks again soon.
  void wait(unsigned) override { std::this_thread::sleep_for(std::chrono::microseconds(50)); }
  void wake() override {}
  void yield() override { std::this_thread::yield(); }
  [[nodiscard]] double now() const override {
    const std::scoped_lock guard(lock_);
    return inner_.now();
  }

 private:
  // Called by the simulation, under the lock: left to the thread.
  void on_limit(SharedReceiveQueue&) noexcept override { push(true); }
  void on_completions(CompletionQueue&) noexcept override { push(false); }
  void on_failure(std::uint32_t, const std::string&) noexcept override {}
  void push(bool limit) {
    const std::scoped_lock guard(events_lock_);
    limits_due_ += limit ? 1 : 0;
    completions_due_ += limit ? 0 : 1;
    wake_up_.notify_all();
  }
  void run(EventSink& sink) {
    std::unique_lock guard(events_lock_);
    while (!ending_) {
      const bool limit = limits_due_ != 0;
      if (!limit && completions_due_ == 0) {
        wake_up_.wait(guard);
        continue;
      }
      --(limit ? limits_due_ : completions_due_);
      guard.unlock();
      // The transport does not look at which queue it was: there is one of each.
      if (limit)
        sink.on_limit(no_shared_);
      else
        sink.on_completions(no_completions_);
      guard.lock();
    }
  }

  struct NoShared final : SharedReceiveQueue {
    std::size_t post(std::span<const ReceiveWork>) override { return 0; }
    void arm_limit(std::uint32_t) override {}
  } no_shared_;
  struct NoCompletions final : CompletionQueue {
    std::size_t poll(std::span<Completion>) noexcept override { return 0; }
    void arm() override {}
  } no_completions_;

  std::mutex& lock_;
  sim::SimulatedDevice& inner_;
  const std::string name_;
  const DeviceLimits limits_;
  const PortAddress address_;
  std::mutex events_lock_;
  std::condition_variable wake_up_;
  int limits_due_ = 0;
  int completions_due_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

struct Case {
  ReceiveMode mode;
  std::int64_t queue_pairs;
};

class Threads : public testing::TestWithParam<Case> {};

TEST_P(Threads, touch_nothing_without_a_lock) {
  constexpr Rank size = 4;
  constexpr unsigned count = 60;
  Settings settings = small_settings(GetParam().mode);
  settings.rdma_queue_pairs = GetParam().queue_pairs;
  settings.spin = 0;
  Faults faults;
  faults.datagram_loss = 0.1;
  World world(size, settings, {}, faults);
  std::mutex lock;
  std::vector<std::unique_ptr<Threaded>> devices;
  for (auto& process : world.processes) {
    devices.push_back(std::make_unique<Threaded>(lock, process->device));
    process->start(*devices.back(), nullptr);
  }
  std::atomic<unsigned> done = 0;
  std::atomic<bool> end = false;
  std::thread driver([&] {
    while (!end) {
      for (auto& process : world.processes) {
        const std::scoped_lock guard(lock);
        process->device.compute(5 * sim::microsecond);
      }
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      World::Process& own = *world.processes[rank];
      std::vector<unsigned> sent(size);
      unsigned fruitless = 0;
      bool notified = false;
      while (done < size) {
        for (Rank to = 0; to < size; ++to) {
          while (to != rank && sent[to] < count &&
                 own.try_send(to, message(sent[to])) == Posted::done)
            ++sent[to];
        }
        // Computes in between, so that the progress thread has something to do.
        if (sent[(rank + 1) % size] % 16 == 7)
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        fruitless = own.transport->poll(own) ? 0 : fruitless + 1;
        if (fruitless != 0) own.transport->idle(fruitless, 100);
        bool all = true;
        for (Rank peer = 0; peer < size; ++peer)
          all =
              all && (peer == rank || (sent[peer] == count && own.received[peer].size() == count));
        if (all && !notified) {
          notified = true;
          ++done;
        }
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (auto& process : world.processes) {
    for (Rank from = 0; from < size; ++from) {
      for (unsigned n = 0; n < (from == process->self ? 0 : count); ++n)
        ASSERT_EQ(process->received[from][n], message(n));
    }
    process->transport.reset();
  }
  end = true;
  driver.join();
}

INSTANTIATE_TEST_SUITE_P(All, Threads,
                         testing::Values(Case{ReceiveMode::shared, -1},
                                         Case{ReceiveMode::shared, 3},
                                         Case{ReceiveMode::credit, -1}, Case{ReceiveMode::ring, 3},
                                         Case{ReceiveMode::mixed, -1}));

} // namespace
} // namespace macadam::test
