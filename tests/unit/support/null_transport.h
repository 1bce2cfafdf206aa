// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"

#include <string>
#include <vector>

namespace macadam::test {

// A network on which nothing happens, for tests that care for a few of its operations only.
class NullTransport : public engine::Transport {
 public:
  using Rank = engine::Rank;
  using Posted = engine::Posted;
  using RemoteMemory = engine::RemoteMemory;

  const engine::Limits& limits() const noexcept override { return limits_; }
  engine::Link& connect(Rank, engine::PeerState& state) override {
    state = engine::PeerState::connected;
    return link_;
  }
  Posted send(engine::Link&, const void*, std::size_t, const void*, std::size_t) noexcept override {
    return Posted::done;
  }
  Posted put(engine::Link&, const void*, RemoteMemory, std::size_t,
             std::uint64_t) noexcept override {
    return Posted::done;
  }
  Posted get(engine::Link&, void*, RemoteMemory, std::size_t, std::uint64_t) noexcept override {
    return Posted::done;
  }
  RemoteMemory register_cached(void*, std::size_t) override { return {}; }
  void release_cached(RemoteMemory) noexcept override {}
  void* allocate(std::size_t) override { return nullptr; }
  void free(void*) noexcept override {}
  bool poll(engine::Sink&) noexcept override { return false; }
  bool idle(unsigned, unsigned) override { return false; }
  void resume() override {}
  double now() const override { return 0; }
  void list_counters(base::CounterList&) const override {}
  std::vector<std::string> fallbacks() const override { return {}; }
  std::size_t memory_bytes() const override { return 0; }

 private:
  engine::Limits limits_{.name = "still"};
  engine::Link link_;
};

} // namespace macadam::test
