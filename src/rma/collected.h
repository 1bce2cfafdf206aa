// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rma/runs.h"
#include "rma/target.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace macadam::rma {

// Data that come packed, on their way to where they belong here. Ends itself.
struct Collected final : Waiter {
  Collected(Waiter& waiter, Runs pieces)
      : whole(waiter), ours(std::move(pieces)), packed(ours.bytes()) {
    whole.on_posted();
  }
  void on_posted() override { ++pending; }
  void on_done(bool ok) noexcept override {
    succeeded = succeeded && ok;
    if (--pending != 0) return;
    if (succeeded) RunsHere(ours).unpack(packed.data());
    whole.on_done(succeeded);
    delete this;
  }

  Waiter& whole;
  Runs ours;
  std::vector<std::byte> packed;
  std::uint32_t pending = 1; // who posts it
  bool succeeded = true;
};

// Pieces of our memory: ask(where their data come to, packed, who is told) posts the request.
template <class Ask>
void collect(Runs ours, Waiter& waiter, Ask&& ask) {
  if (ours.is_one_piece())
    return ask(reinterpret_cast<std::byte*>(ours.all().front().place), waiter);
  auto* const collected = new Collected(waiter, std::move(ours));
  try {
    ask(collected->packed.data(), *collected);
  } catch (...) { // the target has ended
    collected->on_done(false);
    throw;
  }
  collected->on_done(true);
}

} // namespace macadam::rma
