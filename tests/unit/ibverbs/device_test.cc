// SPDX-License-Identifier: BSD-3-Clause
// The device of real adapters, where there is one: two queue pairs of this process on one port.
// What the simulated device promises holds here too. Skipped, with the reason, elsewhere.
#include "base/error.h"
#include "net/rdma/ibverbs/device.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace macadam::test {
namespace {

using namespace macadam::net::rdma;
using namespace std::chrono_literals;

constexpr std::uint32_t depth = 64;
constexpr auto patience = 20s; // of a test: the machine may be an emulated one

template <class Condition>
bool eventually(Condition&& so) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

struct Memory {
  explicit Memory(Device& device, std::size_t bytes, Access access = Access::remote)
      : data(bytes), region(device.register_memory(data.data(), bytes, access)) {}
  [[nodiscard]] Segment segment(std::size_t at, std::size_t bytes) {
    return {data.data() + at, static_cast<std::uint32_t>(bytes), region->local_key};
  }
  [[nodiscard]] std::uint64_t address(std::size_t at = 0) const {
    return reinterpret_cast<std::uintptr_t>(data.data() + at);
  }
  std::vector<unsigned char> data;
  std::unique_ptr<MemoryRegion> region;
};

class Verbs : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device = ibverbs::open_device("");
    } catch (const base::Error& error) {
      GTEST_SKIP() << error.text;
    }
    sends = device->make_completion_queue(depth, false);
    receives = device->make_completion_queue(depth, false);
  }
  QueuePairOptions options() {
    QueuePairOptions wanted;
    wanted.sends = sends.get();
    wanted.receives = receives.get();
    wanted.send_depth = wanted.receive_depth = depth / 2;
    wanted.inline_bytes = device->limits().inline_bytes;
    return wanted;
  }
  void connect(const QueuePairOptions& of_a, const QueuePairOptions& of_b,
               const Retries& retries = {}) {
    a = device->make_queue_pair(of_a);
    b = device->make_queue_pair(of_b);
    a->accept({device->address(), b->number()}, retries);
    b->accept({device->address(), a->number()}, retries);
    a->establish();
    b->establish();
  }
  void connect() { connect(options(), options()); }

  static Completion next(CompletionQueue& queue) {
    Completion completion;
    EXPECT_TRUE(eventually([&] { return queue.poll({&completion, 1}) == 1; })) << "nothing came";
    return completion;
  }
  static SendWork work(Operation operation, std::span<const Segment> segments) {
    SendWork result;
    result.operation = operation;
    result.segments = segments;
    result.signalled = true;
    return result;
  }
  void post(const SendWork& one) { ASSERT_EQ(a->post({&one, 1}), 1u); }
  void receive(std::uint64_t id, Segment segment) {
    const ReceiveWork one{.id = id, .segment = segment};
    ASSERT_TRUE(b->post_receive({&one, 1}));
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<CompletionQueue> sends, receives;
  std::unique_ptr<QueuePair> a, b;
};

TEST_F(Verbs, limits_are_those_of_an_adapter) {
  const DeviceLimits& limits = device->limits();
  EXPECT_GE(limits.queue_pairs, 2u);
  EXPECT_GE(limits.completion_depth, 1024u);
  EXPECT_GE(limits.segments, 1u);
  EXPECT_GE(limits.mtu, 256u);
  EXPECT_GE(limits.message, std::uint64_t{1} << 20);
  EXPECT_NE(device->name().find(':'), std::string::npos);
}

TEST_F(Verbs, a_message_arrives_with_its_immediate) {
  connect();
  Memory from(*device, 4096), to(*device, 4096);
  std::memset(from.data.data(), 0x5a, 1000);
  receive(7, to.segment(0, 4096));
  const Segment segment = from.segment(0, 1000);
  SendWork send = work(Operation::send_immediate, {&segment, 1});
  send.id = 3;
  send.immediate = 0x01020304;
  post(send);
  const Completion arrived = next(*receives);
  EXPECT_EQ(arrived.status, WorkStatus::ok);
  EXPECT_EQ(arrived.id, 7u);
  EXPECT_EQ(arrived.bytes, 1000u);
  EXPECT_EQ(arrived.immediate, 0x01020304u);
  EXPECT_EQ(arrived.queue_pair, b->number());
  EXPECT_EQ(to.data[999], 0x5a);
  EXPECT_EQ(to.data[1000], 0);
  const Completion sent = next(*sends);
  EXPECT_EQ(sent.id, 3u);
  EXPECT_EQ(sent.queue_pair, a->number());
}

TEST_F(Verbs, inline_data_may_change_at_once_and_only_signalled_ones_complete) {
  connect();
  Memory to(*device, 4096);
  std::array<unsigned char, 16> head{}, tail{};
  std::vector<SendWork> batch;
  std::array<Segment, 2> segments = {Segment{head.data(), 16, 0}, Segment{tail.data(), 8, 0}};
  constexpr unsigned char count = 10; // more than go to the driver at once
  for (unsigned char i = 0; i < count; ++i) {
    receive(i, to.segment(i * 64u, 64));
    SendWork send = work(Operation::send, segments);
    send.id = i;
    send.inlined = true;
    send.signalled = i + 1 == count;
    batch.push_back(send);
  }
  head.fill(0x11);
  tail.fill(0x22);
  ASSERT_EQ(a->post(batch), count);
  head.fill(0xee);
  tail.fill(0xee);
  for (unsigned char i = 0; i < count; ++i) {
    const Completion arrived = next(*receives);
    EXPECT_EQ(arrived.id, i); // in order
    EXPECT_EQ(arrived.bytes, 24u);
    EXPECT_EQ(to.data[i * 64u + 15], 0x11);
    EXPECT_EQ(to.data[i * 64u + 16], 0x22);
  }
  EXPECT_EQ(next(*sends).id, count - 1u);
  Completion more;
  EXPECT_EQ(sends->poll({&more, 1}), 0u);
}

TEST_F(Verbs, writes_reads_and_their_notices) {
  connect();
  Memory here(*device, 8192), there(*device, 8192);
  for (std::size_t i = 0; i < here.data.size(); ++i)
    here.data[i] = static_cast<unsigned char>(i * 7);
  receive(1, {});
  const Segment whole = here.segment(0, 8192);
  SendWork write = work(Operation::write_immediate, {&whole, 1});
  write.remote_address = there.address();
  write.remote_key = static_cast<std::uint32_t>(there.region->remote_key);
  write.immediate = 99;
  post(write);
  const Completion told = next(*receives);
  EXPECT_EQ(told.immediate, 99u);
  EXPECT_EQ(told.bytes, 8192u);
  EXPECT_EQ(there.data, here.data);
  EXPECT_EQ(next(*sends).status, WorkStatus::ok);

  std::memset(here.data.data(), 0, 8192);
  SendWork read = work(Operation::read, {&whole, 1});
  read.remote_address = there.address();
  read.remote_key = static_cast<std::uint32_t>(there.region->remote_key);
  post(read);
  EXPECT_EQ(next(*sends).status, WorkStatus::ok);
  EXPECT_EQ(there.data, here.data);

  SendWork nothing = work(Operation::write, {}); // asks whether all before it is complete
  nothing.id = 5;
  post(nothing);
  EXPECT_EQ(next(*sends).id, 5u);
}

TEST_F(Verbs, atomics) {
  if (!device->limits().atomics) GTEST_SKIP() << device->name() << " has no atomics";
  connect();
  Memory here(*device, 64), there(*device, 64);
  const auto word = [](Memory& memory) {
    std::uint64_t value;
    std::memcpy(&value, memory.data.data(), 8);
    return value;
  };
  there.data[0] = 40;
  const Segment old = here.segment(0, 8);
  SendWork add = work(Operation::fetch_and_add, {&old, 1});
  add.remote_address = there.address();
  add.remote_key = static_cast<std::uint32_t>(there.region->remote_key);
  add.compare_or_add = 2;
  post(add);
  EXPECT_EQ(next(*sends).status, WorkStatus::ok);
  EXPECT_EQ(word(here), 40u);
  EXPECT_EQ(word(there), 42u);
  SendWork swap = add;
  swap.operation = Operation::compare_and_swap;
  swap.compare_or_add = 42;
  swap.swap = 7;
  post(swap);
  EXPECT_EQ(next(*sends).status, WorkStatus::ok);
  EXPECT_EQ(word(here), 42u);
  EXPECT_EQ(word(there), 7u);
}

TEST_F(Verbs, constants_can_be_registered_to_be_read) {
  connect();
  void* const page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  Memory to(*device, 4096);
  std::memset(to.data.data(), 1, 4096);
  {
    const auto region = device->register_memory(page, 4096, Access::remote);
    const Segment segment = to.segment(0, 4096);
    SendWork read = work(Operation::read, {&segment, 1});
    read.remote_address = reinterpret_cast<std::uintptr_t>(page);
    read.remote_key = static_cast<std::uint32_t>(region->remote_key);
    post(read);
    EXPECT_EQ(next(*sends).status, WorkStatus::ok);
    EXPECT_EQ(to.data[4095], 0);
  }
  munmap(page, 4096);
}

TEST_F(Verbs, what_cannot_be_registered_says_so) {
  void* const page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  munmap(page, 4096);
  try {
    device->register_memory(page, 4096, Access::local);
    ADD_FAILURE() << "memory that is not there was registered";
  } catch (const base::Error& error) {
    EXPECT_NE(error.text.find(device->name() + " gives no registration of 4096 bytes at 0x"),
              std::string::npos)
        << error.text;
  }
}

TEST_F(Verbs, datagrams_arrive_behind_their_header) {
  QueuePairOptions wanted = options();
  wanted.datagrams = true;
  wanted.qkey = 0x1234;
  wanted.inline_bytes = 0;
  a = device->make_queue_pair(wanted);
  b = device->make_queue_pair(wanted);
  Memory from(*device, 256), to(*device, 256);
  std::memset(from.data.data(), 0x77, 80);
  receive(1, to.segment(0, 256));
  const auto address = device->make_address_handle(device->address());
  const Segment segment = from.segment(0, 80);
  SendWork send = work(Operation::send, {&segment, 1});
  send.to = address.get();
  send.remote_number = b->number();
  send.remote_qkey = 0x1234;
  post(send);
  const Completion arrived = next(*receives);
  EXPECT_EQ(arrived.status, WorkStatus::ok);
  EXPECT_EQ(arrived.bytes, 80 + datagram_header);
  EXPECT_EQ(to.data[datagram_header], 0x77);
  EXPECT_EQ(to.data[datagram_header + 79], 0x77);
}

TEST_F(Verbs, a_key_that_opens_nothing_is_refused) {
  connect();
  Memory here(*device, 64);
  const Segment segment = here.segment(0, 64);
  SendWork write = work(Operation::write, {&segment, 1});
  write.remote_address = here.address();
  write.remote_key = static_cast<std::uint32_t>(here.region->remote_key) ^ 0xff00;
  post(write);
  EXPECT_EQ(next(*sends).status, WorkStatus::refused);
  post(work(Operation::write, {}));
  EXPECT_EQ(next(*sends).status, WorkStatus::flushed);
}

TEST_F(Verbs, a_queue_pair_that_nobody_answers_for_says_so) {
  a = device->make_queue_pair(options());
  b = device->make_queue_pair(options());
  const QueuePairAddress nobody{device->address(), b->number()};
  b.reset();
  Retries retries;
  retries.timeout = 10;
  retries.count = 2;
  a->accept(nobody, retries);
  a->establish();
  post(work(Operation::write, {}));
  EXPECT_EQ(next(*sends).status, WorkStatus::no_answer);
}

TEST_F(Verbs, a_failed_queue_pair_flushes_what_was_posted) {
  connect();
  Memory to(*device, 64);
  receive(1, to.segment(0, 64));
  receive(2, to.segment(0, 64));
  b->fail();
  EXPECT_EQ(next(*receives).status, WorkStatus::flushed);
  EXPECT_EQ(next(*receives).status, WorkStatus::flushed);
}

TEST_F(Verbs, a_sleep_ends_with_an_event_or_when_woken) {
  connect();
  Memory to(*device, 64);
  receives->arm();
  const auto before = std::chrono::steady_clock::now();
  device->wait(10'000);
  EXPECT_GE(std::chrono::steady_clock::now() - before, 9ms);
  receive(1, to.segment(0, 64));
  post(work(Operation::send, {}));
  device->wait(20'000'000); // not that long
  EXPECT_LT(std::chrono::steady_clock::now() - before, patience);
  next(*receives);
  device->wake(); // nobody sleeps: it counts for the next
  device->wait(20'000'000);
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    device->wake();
  });
  device->wait(20'000'000);
  other.join();
  EXPECT_LT(std::chrono::steady_clock::now() - before, patience);
}

struct Listener final : EventSink {
  void on_limit(SharedReceiveQueue&) noexcept override { ++limits; }
  void on_completions(CompletionQueue&) noexcept override { ++completions; }
  void on_failure(std::uint32_t, const std::string&) noexcept override { ++failures; }
  std::atomic<int> limits = 0, completions = 0, failures = 0;
};

TEST_F(Verbs, the_progress_thread_hears_of_the_limit_while_nobody_polls) {
  if (device->limits().shared_depth == 0) GTEST_SKIP() << device->name() << " shares no receives";
  const auto shared = device->make_shared_receive_queue(depth);
  QueuePairOptions of_b = options();
  of_b.shared = shared.get();
  of_b.receive_depth = 0;
  connect(options(), of_b);
  Memory to(*device, 4096);
  std::vector<ReceiveWork> many;
  for (unsigned i = 0; i < 20; ++i)
    many.push_back({.id = i, .segment = to.segment(i * 64u, 64)});
  ASSERT_EQ(shared->post(many), 20u);
  Listener listener;
  device->set_event_sink(&listener);
  shared->arm_limit(16);
  for (int i = 0; i < 4; ++i)
    post(work(Operation::send, {}));
  for (int i = 0; i < 4; ++i)
    next(*receives);
  EXPECT_EQ(listener.limits, 0); // 16 are left, not fewer
  post(work(Operation::send, {}));
  EXPECT_TRUE(eventually([&] { return listener.limits == 1; }));
  for (int i = 0; i < 5; ++i)
    post(work(Operation::send, {}));
  for (int i = 0; i < 6; ++i)
    next(*receives);
  EXPECT_EQ(listener.limits, 1); // once per arming
  device->set_event_sink(nullptr);
  b.reset(); // it uses the queue
}

TEST_F(Verbs, the_progress_thread_hears_of_an_attended_queue) {
  const auto async = device->make_completion_queue(depth, true);
  QueuePairOptions of_b = options();
  of_b.receives = async.get();
  connect(options(), of_b);
  Memory to(*device, 64);
  Listener listener;
  device->set_event_sink(&listener);
  async->arm();
  receive(1, to.segment(0, 64));
  receive(2, to.segment(0, 64));
  post(work(Operation::send, {}));
  EXPECT_TRUE(eventually([&] { return listener.completions == 1; }));
  post(work(Operation::send, {}));
  next(*async);
  next(*async);
  EXPECT_EQ(listener.completions, 1);
  EXPECT_EQ(listener.failures, 0);
  device->set_event_sink(nullptr);
  b.reset();
}

std::atomic<bool> handled_elsewhere = false;
std::thread::id test_thread;

TEST_F(Verbs, signals_stay_with_the_application) {
  Listener listener;
  device->set_event_sink(&listener);
  test_thread = std::this_thread::get_id();
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {
    if (std::this_thread::get_id() != test_thread) handled_elsewhere = true;
  };
  sigaction(SIGUSR2, &action, &before);
  // While this thread does not take it, the only other one is the progress thread.
  sigset_t one, mask;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &one, &mask);
  kill(getpid(), SIGUSR2);
  std::this_thread::sleep_for(50ms);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGUSR2), 1);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  EXPECT_FALSE(handled_elsewhere);
  sigaction(SIGUSR2, &before, nullptr);
  device->set_event_sink(nullptr);
}

TEST(NoAdapter, is_an_error_that_says_so) {
  try {
    ibverbs::open_device("no_such_adapter:1");
    ADD_FAILURE() << "no_such_adapter was opened";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.error_class, MPI_ERR_OTHER);
    EXPECT_NE(error.text.find("RDMA: "), std::string::npos) << error.text;
  }
}

} // namespace
} // namespace macadam::test
