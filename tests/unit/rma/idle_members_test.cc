// SPDX-License-Identifier: BSD-3-Clause
// What a process keeps of a window for members that it has never accessed: counted by the C
// library's allocator.
#include "datatype/type.h"
#include "engine/engine.h"
#include "rma/window.h"
#include "support/null_transport.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace macadam::rma {
namespace {

constexpr double budget = 256; // bytes (design: memory follows use)

class Network final : public macadam::test::NullTransport {
 public:
  explicit Network(bool maps) { limits_.maps = maps; }
  const engine::Limits& limits() const noexcept override { return limits_; }
  RemoteMemory register_region(void* memory, std::size_t) override {
    return {reinterpret_cast<std::uint64_t>(memory), 0};
  }
  void deregister_region(RemoteMemory) noexcept override {}
  void* allocate(std::size_t bytes) override {
    void* const memory = std::malloc(bytes);
    allocated_ += malloc_usable_size(memory);
    return memory;
  }
  void free(void* memory) noexcept override { std::free(memory); }

  // What allocate() has given, as the allocator rounds it.
  [[nodiscard]] std::size_t all_allocated() const { return allocated_; }

 private:
  std::size_t allocated_ = 0;
  engine::Limits limits_{.name = "counted", .atomics = true};
};

struct NeverWaits final : Waiting {
  void look() override {}
  void wait(bool (*)(void*), void*, For) override { std::abort(); }
};

std::size_t allocated() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

struct Kept {
  double all;     // bytes
  double control; // ... of these in the control block, which the others write
};

// Of a window of so many members, of which this process is one.
Kept kept_of(int ranks, bool maps) {
  const datatype::PredefinedTypes types;
  const datatype::PredefinedOps ops;
  const base::Settings settings;
  Network network(maps);
  engine::Engine engine(engine::Networks(network), static_cast<engine::Rank>(ranks), settings);
  const engine::RankMap map(0, 1, ranks);
  const engine::Team team{0, ranks / 2, &map, &map};
  NeverWaits waiting;
  Counters counters;
  std::uint64_t memory = 0;
  const std::size_t before = allocated();
  std::size_t after = 0;
  {
    Window window(engine, waiting, team, types, ops, false, counters);
    {
      const Exposure own = window.register_window(&memory, sizeof memory, 1);
      EXPECT_EQ(own.shares, maps);
      window.join(std::vector<Exposure>(static_cast<std::size_t>(ranks), own), Window::Memory::own);
    }
    after = allocated();
    window.leave();
  }
  return {static_cast<double>(after - before), static_cast<double>(network.all_allocated())};
}

struct IdleMembers : testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Memory, IdleMembers, testing::Bool(),
                         [](const auto& maps) { return maps.param ? "mapped" : "apart"; });

TEST_P(IdleMembers, cost_a_process_little) {
  if (allocated() == 0) GTEST_SKIP() << "a sanitizer's allocator counts nothing";
  kept_of(1, GetParam()); // what is made once in a program
  const Kept one = kept_of(1, GetParam());
  const Kept some = kept_of(64, GetParam());
  const Kept many = kept_of(4096, GetParam());
  const auto each = [&](const Kept& kept, int ranks) { return (kept.all - one.all) / (ranks - 1); };
  EXPECT_LE(each(some, 64), budget);
  EXPECT_LE(each(many, 4096), budget);
  // A row of exposures, and then one for every row.
  const double more = (many.all - many.control) - (some.all - some.control);
  EXPECT_LE(more / (4096 - 64), 2) << more << " bytes more";
  // What they may write: two counters, and a byte in a line that few others write, or three flags.
  // The row of exposures is not there in a window of one row.
  const double written = many.control - static_cast<double>(Exposures::row_bytes(4096));
  EXPECT_LE(written / 4096, 6.5) << written << " bytes";
  RecordProperty("64_members_bytes_each", std::to_string(each(some, 64)));
  RecordProperty("4096_members_bytes_each", std::to_string(each(many, 4096)));
}

} // namespace
} // namespace macadam::rma
