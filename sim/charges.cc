// SPDX-License-Identifier: BSD-3-Clause
#include "sim/charges.h"

#include "base/copy.h"
#include "sim/rank.h"

#include <cstring>

namespace macadam::base {

// In place of those of src/base/copy.cc.
void copy_many(void* to, const void* from, std::size_t bytes) {
  std::memmove(to, from, bytes);
  touched(bytes);
}

void touched(std::size_t bytes) {
  if (sim::Rank* const rank = sim::Rank::current())
    rank->charge(sim::transfer_time(bytes, rank->model().copy_mb_per_s));
}

} // namespace macadam::base

namespace macadam::sim {
namespace {

// What the transport delivers, on its way to the engine.
class ChargedSink final : public engine::Sink {
 public:
  explicit ChargedSink(engine::Sink& engine) : engine_(engine) {}

  void on_message(engine::Rank source, const std::byte* message,
                  std::size_t bytes) noexcept override {
    if (Rank* const rank = Rank::current()) rank->charge(from_ns(rank->model().matching_ns));
    engine_.on_message(source, message, bytes);
  }
  // Nothing to match: the notification says which request it is of.
  void on_put(engine::Rank source, std::uint32_t notification,
              std::size_t bytes) noexcept override {
    engine_.on_put(source, notification, bytes);
  }
  void on_complete(std::uint64_t cookie, bool ok) noexcept override {
    engine_.on_complete(cookie, ok);
  }
  void on_peer(engine::Rank peer, engine::PeerState state) noexcept override {
    engine_.on_peer(peer, state);
  }
  void on_failure(base::Error&& why) noexcept override { engine_.on_failure(std::move(why)); }

 private:
  engine::Sink& engine_;
};

} // namespace

bool ChargedTransport::poll(engine::Sink& sink) noexcept {
  ChargedSink charged(sink);
  return RdmaTransport::poll(charged);
}

bool ChargedTransport::idle(unsigned fruitless, unsigned longest_us) {
  Rank::current()->end_if_killed();
  return RdmaTransport::idle(fruitless, longest_us);
}

Away::Away(const void* place) : rank_(Rank::current()) {
  if (rank_ != nullptr) rank_->leave_program(place);
}

Away::~Away() {
  if (rank_ != nullptr) rank_->enter_program();
}

Call::Call(const void* place) : Away(place) {
  if (rank_ != nullptr) rank_->charge(from_ns(rank_->model().call_ns));
}

} // namespace macadam::sim
