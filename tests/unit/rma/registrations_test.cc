// SPDX-License-Identifier: BSD-3-Clause
// What a window has of its networks, and of its process's memory, when one of them has no more: it
// keeps nothing of what it did not get, and others never wait for it.
#include "datatype/type.h"
#include "engine/engine.h"
#include "rma/window.h"
#include "support/null_transport.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <new>
#include <vector>

namespace {

constexpr int unlimited = std::numeric_limits<int>::max();
int allocations_left = unlimited; // of operator new

} // namespace

void* operator new(std::size_t bytes) {
  if (allocations_left != unlimited && allocations_left-- == 0) throw std::bad_alloc();
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace macadam::rma {
namespace {

constexpr std::size_t regions = 40; // of which a list grows more than once

class Network final : public test::NullTransport {
 public:
  // Both networks of a process have so many registrations left.
  explicit Network(int& left) : left_(left) {}

  const engine::Limits& limits() const noexcept override { return limits_; }
  RemoteMemory register_region(void* memory, std::size_t) override {
    if (left_ != unlimited && left_-- == 0) base::fail(MPI_ERR_NO_MEM, "no more is registered");
    ++keys;
    return {reinterpret_cast<std::uint64_t>(memory), 1};
  }
  void deregister_region(RemoteMemory memory) noexcept override {
    if (memory.key != 0) --keys;
  }
  void* allocate(std::size_t bytes) override {
    ++blocks;
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void free(void* memory) noexcept override {
    if (memory != nullptr) --blocks;
    std::free(memory);
  }

  int keys = 0;
  int blocks = 0;

 private:
  int& left_;
  engine::Limits limits_{.name = "counted", .atomics = true};
};

struct NeverWaits final : Waiting {
  void look() override {}
  void wait(bool (*)(void*), void*, For) override { std::abort(); }
};

// A process that has a dynamic window alone, and two networks.
struct Owner {
  [[nodiscard]] std::array<int, 4> held() const {
    return {near.keys, far.keys, near.blocks, far.blocks};
  }
  // Makes a window and attaches all regions. `ready` is called when it is made, `note` where it
  // ends, with how many are attached.
  template <class Ready, class Note>
  void attach_all(Ready&& ready, Note&& note) {
    Window window(engine, waiting, team, types, ops, false, counters);
    const Exposure own = window.register_window(nullptr, 0, 1);
    window.join({own}, Window::Memory::attached);
    const auto& list = reinterpret_cast<const Control*>(own.control.near.address)->attachments;
    std::size_t attached = 0;
    std::array<int, 4> before = held();
    ready();
    try {
      for (; attached < regions; ++attached) {
        before = held();
        window.attach(&memory[2 * attached], sizeof memory[0]);
      }
    } catch (...) {
      note(list, attached);
      EXPECT_EQ(held()[0], held()[1]);
      // A list that has grown stays, as others may read the one before.
      EXPECT_LE(held()[0] - before[0], held()[2] - before[2]);
      throw;
    }
    note(list, attached);
  }

  int registrations_left = unlimited;
  Network near{registrations_left}, far{registrations_left};
  const datatype::PredefinedTypes types;
  const datatype::PredefinedOps ops;
  const base::Settings settings;
  engine::Engine engine{engine::Networks(std::vector<engine::Transport*>{&near, &far}), 1,
                        settings};
  const engine::RankMap map{0, 1, 1};
  const engine::Team team{0, 0, &map, &map};
  NeverWaits waiting;
  Counters counters;
  std::array<std::uint64_t, 2 * regions> memory{};
};

TEST(Registrations, nothing_is_kept_of_those_that_are_refused) {
  Owner owner;
  const std::array<int, 4> nothing = owner.held();
  for (int left = 0;; ++left) {
    owner.registrations_left = left;
    try {
      owner.attach_all([] {}, [](const Attachments&, std::size_t) {});
      EXPECT_EQ(owner.held(), nothing);
      break;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.error_class, MPI_ERR_NO_MEM);
      EXPECT_EQ(owner.held(), nothing) << "after " << left << " registrations";
    }
    ASSERT_LT(left, 1000);
  }
}

// Its version is odd while it changes, and others look until it is even.
TEST(Registrations, a_list_stays_readable_without_memory) {
  Owner owner;
  const std::array<int, 4> nothing = owner.held();
  const auto note = [&](const Attachments& list, std::size_t attached) {
    allocations_left = unlimited;
    EXPECT_EQ(list.version % 2, 0u);
    EXPECT_EQ(list.count, attached);
  };
  for (int left = 0;; ++left) {
    try {
      owner.attach_all([&] { allocations_left = left; }, note);
      break;
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(owner.held(), nothing) << "after " << left << " allocations";
    }
    ASSERT_LT(left, 1000);
  }
}

} // namespace
} // namespace macadam::rma
