// SPDX-License-Identifier: BSD-3-Clause
// The engine over the RDMA transport: what random programs (tests/torture) do not look at.
#include "world.h"

#include "datatype/basic.h"
#include "engine/engine.h"

namespace macadam::test {
namespace {

using engine::Engine;

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

} // namespace
} // namespace macadam::test
