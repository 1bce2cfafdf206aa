// SPDX-License-Identifier: BSD-3-Clause
// The real engine over the real transport: random traffic of all sizes, in every receive mode, with
// few queue pairs, lost datagrams and ranks that compute.
#include "world.h"

#include "datatype/basic.h"
#include "engine/engine.h"

#include <random>

namespace macadam::test {
namespace {

using engine::Engine;
using engine::Envelope;

constexpr std::size_t sizes[] = {0, 1, 60, 1000, 1024, 1025, 4000, 5000, 60000, 300000};

struct Message {
  Rank from, to;
  int tag;
  std::vector<std::uint8_t> data;
  std::vector<std::uint8_t> landing;
  engine::SendRequest* send = nullptr;
  engine::ReceiveRequest* receive = nullptr;
  bool any_source = false;
};

class Traffic {
 public:
  Traffic(World& world, unsigned seed) : world_(world), random_(seed) {
    for (auto& process : world.processes)
      engines_.push_back(std::make_unique<Engine>(
          *process->transport, static_cast<Rank>(world.processes.size()), process->settings));
  }
  ~Traffic() {
    for (auto& message : messages_) {
      if (message->send != nullptr) engines_[message->from]->release(message->send);
      if (message->receive != nullptr) engines_[message->to]->release(message->receive);
    }
  }

  // Messages between random ranks, in random phases: sends first, receives first, computing.
  void run(unsigned count) {
    start(count);
    check();
  }

  // Connections break: every operation ends, with its data or with an error.
  void run_to_the_end(unsigned count) {
    wildcards_ = false; // a message from nobody may never come
    start(count);
    ASSERT_TRUE(complete()) << "stands still";
    for (const auto& m : messages_) {
      if (m->receive->status.error == MPI_SUCCESS)
        ASSERT_EQ(m->landing, m->data);
      else
        EXPECT_EQ(m->receive->status.error, MPI_ERR_PROC_ABORTED);
    }
  }

 private:
  void start(unsigned count) {
    std::vector<Message*> unsent, unreceived;
    for (unsigned i = 0; i < count; ++i) {
      auto message = std::make_unique<Message>();
      message->from = static_cast<Rank>(pick(engines_.size()));
      message->to = static_cast<Rank>(pick(engines_.size()));
      message->tag = static_cast<int>(i); // one message, one receive
      message->any_source = wildcards_ && pick(8) == 0;
      message->data.resize(sizes[pick(std::size(sizes))]);
      for (std::size_t b = 0; b < message->data.size(); ++b)
        message->data[b] = static_cast<std::uint8_t>(b * 13 + b / 255 + i);
      message->landing.assign(message->data.size(), 0xee);
      unsent.push_back(message.get());
      unreceived.push_back(message.get());
      messages_.push_back(std::move(message));
    }
    while (!unsent.empty() || !unreceived.empty()) {
      auto& list = unreceived.empty() || (!unsent.empty() && pick(2) == 0) ? unsent : unreceived;
      std::swap(list[pick(list.size())], list.back());
      Message& message = *list.back();
      list.pop_back();
      if (&list == &unsent)
        send(message);
      else
        receive(message);
      for (std::size_t polls = pick(4); polls > 0; --polls)
        step(static_cast<Rank>(pick(engines_.size())));
      if (pick(10) == 0) compute(static_cast<Rank>(pick(engines_.size())), 200);
    }
    for (int round = 0; round < 400000 && !complete(); ++round) {
      for (Rank rank = 0; rank < engines_.size(); ++rank)
        step(rank);
    }
  }

  std::size_t pick(std::size_t n) { return random_() % n; }

  void send(Message& m) {
    Engine& engine = *engines_[m.from];
    const auto mode = pick(6) == 0 ? engine::SendMode::synchronous : engine::SendMode::standard;
    try {
      m.send = engine.send(engine.peer(m.to), {4, static_cast<int>(m.from), m.tag},
                           {m.data.data(), static_cast<MPI_Count>(m.data.size()), &byte()}, mode);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.error_class, MPI_ERR_PROC_ABORTED) << error.text;
    }
  }
  void receive(Message& m) {
    Engine& engine = *engines_[m.to];
    engine::Peer* const peer = m.any_source ? nullptr : &engine.peer(m.from);
    const int source = m.any_source ? MPI_ANY_SOURCE : static_cast<int>(m.from);
    m.receive =
        engine.receive(peer, {4, source, m.tag},
                       {m.landing.data(), static_cast<MPI_Count>(m.landing.size()), &byte()});
  }
  void step(Rank rank) {
    engines_[rank]->progress();
    compute(rank, 1);
  }
  void compute(Rank rank, int microseconds) {
    world_[rank].device.compute(microseconds * sim::microsecond);
  }
  bool complete() const {
    for (const auto& m : messages_) {
      if ((m->send != nullptr && !m->send->complete) || !m->receive->complete) return false;
    }
    for (const auto& engine : engines_) {
      if (!engine->quiet()) return false;
    }
    for (const auto& process : world_.processes) {
      if (!process->transport->drain()) return false;
    }
    return true;
  }
  void check() const {
    ASSERT_TRUE(complete()) << "stands still";
    for (const auto& m : messages_) {
      EXPECT_EQ(m->receive->status.error, MPI_SUCCESS);
      EXPECT_EQ(m->receive->status.source, static_cast<int>(m->from));
      ASSERT_EQ(m->landing, m->data) << m->data.size() << " bytes";
    }
    for (const auto& process : world_.processes) {
      EXPECT_EQ(process->counter("broken"), 0u);
      EXPECT_EQ(process->transport->fallbacks(), std::vector<std::string>{});
    }
    std::uint64_t without_fin = 0;
    for (const auto& engine : engines_) {
      const engine::EngineCounters& counted = engine->counters();
      without_fin += world_[0].settings.last_byte ? counted.last_byte : counted.noticed;
    }
    EXPECT_GT(without_fin, 0u);
  }
  const datatype::Type& byte() { return types_[MPI_BYTE]; }

  World& world_;
  std::mt19937 random_;
  bool wildcards_ = true;
  datatype::PredefinedTypes types_;
  std::vector<std::unique_ptr<Message>> messages_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

class EngineOver : public testing::TestWithParam<unsigned> {};

TEST_P(EngineOver, rdma_delivers_everything) {
  const unsigned seed = GetParam();
  const auto mode = static_cast<ReceiveMode>(seed % 3);
  Settings settings = small_settings(mode);
  settings.rdma_hybrid = 8000;
  settings.rendezvous = seed % 2 != 0 ? base::Rendezvous::read : base::Rendezvous::write;
  if (seed % 4 == 0) settings.rdma_queue_pairs = 2 + seed / 4 % 2;
  if (seed % 5 == 0) settings.rdma_watermark = 0;
  if (seed % 7 == 0) settings.rdma_buffers = 40;
  settings.last_byte = seed % 6 == 0;
  Faults faults;
  faults.datagram_loss = seed % 3 == 1 ? 0.2 : 0;
  faults.datagram_duplication = faults.datagram_reordering = seed % 3 == 2 ? 0.3 : 0;
  faults.jitter = 0.5;
  faults.split_writes = true;
  faults.attendant_jitter_ns = 20000;
  World world(2 + seed % 5, settings, {}, faults, seed);
  world.start();
  Traffic(world, seed).run(60 + seed % 100);
}

TEST_P(EngineOver, connections_that_break_ends_every_operation) {
  const unsigned seed = GetParam();
  Settings settings = small_settings(static_cast<ReceiveMode>(seed % 3));
  settings.rendezvous = seed % 2 != 0 ? base::Rendezvous::read : base::Rendezvous::write;
  settings.last_byte = seed % 6 == 0;
  if (seed % 4 == 0) settings.rdma_queue_pairs = 3;
  Faults faults;
  faults.queue_pair_break = 0.004;
  faults.jitter = 0.5;
  World world(2 + seed % 4, settings, {}, faults, seed);
  world.start();
  Traffic(world, seed).run_to_the_end(60 + seed % 100);
}

TEST(AnySource, opens_nothing_and_serves_all_senders) {
  constexpr Rank size = 6;
  constexpr int count = 100;
  World world(size);
  world.start();
  datatype::PredefinedTypes types;
  std::vector<std::unique_ptr<Engine>> engines;
  for (auto& process : world.processes)
    engines.push_back(std::make_unique<Engine>(*process->transport, size, process->settings));
  std::vector<int> got((size - 1) * count);
  std::vector<engine::ReceiveRequest*> receives;
  for (int& value : got)
    receives.push_back(engines[0]->receive(nullptr, {4, MPI_ANY_SOURCE, MPI_ANY_TAG},
                                           {&value, 1, &types[MPI_INT]}));
  EXPECT_EQ(world[0].transport->connections(), 0u);
  std::vector<int> sent(size);
  const auto received = [&] {
    return std::count_if(receives.begin(), receives.end(), [](auto* r) { return r->complete; });
  };
  for (int round = 0; round < 100000 && received() < (size - 1) * count; ++round) {
    for (Rank rank = 0; rank < size; ++rank) {
      if (rank != 0 && sent[rank] < count) {
        int value = sent[rank]++;
        engine::SendRequest* const request =
            engines[rank]->send(engines[rank]->peer(0), {4, static_cast<int>(rank), 1},
                                {&value, 1, &types[MPI_INT]}, engine::SendMode::standard);
        while (request != nullptr && !request->complete) { // while it connects
          for (auto& engine : engines)
            engine->progress();
          for (auto& process : world.processes)
            process->device.compute(sim::microsecond);
        }
        if (request != nullptr) engines[rank]->release(request);
      }
      engines[rank]->progress();
      world[rank].device.compute(sim::microsecond);
    }
  }
  ASSERT_EQ(received(), (size - 1) * count);
  EXPECT_EQ(world[0].transport->connections(), size - 1);
  // Each sender's messages in its order, and none of them kept waiting: of the first half, each
  // has at least a third of its share.
  std::vector<int> next(size);
  for (std::size_t i = 0; i < receives.size(); ++i) {
    const auto source = static_cast<std::size_t>(receives[i]->status.source);
    EXPECT_EQ(got[i], next[source]++);
    if (i != receives.size() / 2) continue;
    for (Rank rank = 1; rank < size; ++rank)
      EXPECT_GT(next[rank], count / 6) << rank;
  }
  for (auto* receive : receives)
    engines[0]->release(receive);
}

TEST(LastByte, is_refused_where_bytes_come_in_any_order) {
  Settings settings = small_settings();
  settings.last_byte = true;
  Model model;
  model.orders_bytes = false;
  World world(1, settings, model);
  world.start();
  try {
    const Engine engine(*world[0].transport, 1, settings);
    FAIL() << "no error";
  } catch (const base::Error& error) {
    EXPECT_NE(error.text.find("MACADAM_LAST_BYTE"), std::string::npos) << error.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineOver, testing::Range(1u, 101u));

} // namespace
} // namespace macadam::test
