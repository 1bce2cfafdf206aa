// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/profile.h"

#include "mpi/communicator.h"

#include <bit>
#include <new>

namespace macadam::mpi {
namespace {

using engine::Protocol;
using engine::Step;

bool is_collective(const Step& step) {
  return step.context % sub_contexts != static_cast<std::uint64_t>(SubContext::p2p);
}

} // namespace

void Profile::start(const engine::Transport& clock) {
  clock_ = &clock;
  if (!has_begun_) begun_ = clock.now();
  has_begun_ = true;
}

void Profile::forget() {
  has_begun_ = false;
  functions_.clear();
  peers_.clear();
  sent_ = {};
}

void Profile::enter(Call& call, const char* function) noexcept {
  call.outer = std::exchange(current_, &call);
  call.function = function;
  call.cause = Cause::none;
  call.begun = clock_ == nullptr ? -1 : clock_->now();
  if (function != last_function_) last_was_short_ = false;
  last_function_ = function;
}

void Profile::leave(Call& call) noexcept {
  current_ = call.outer;
  // A call made inside another one is a part of that; and MPI may have ended in this one.
  if (call.outer == nullptr && clock_ != nullptr && call.begun >= 0) count(call, clock_->now());
}

// A record for which there is no memory is left out.
void Profile::count(const Call& call, double now) try {
  Function& function = functions_[call.function];
  ++function.calls;
  function.seconds += now - call.begun;
  if (call.cause == Cause::none || call.ended - call.begun < shortest_wait) return;
  Waits& waits = peers_[call.peer].waits[static_cast<std::size_t>(call.cause)];
  ++waits.times;
  waits.seconds += call.ended - call.begun;
} catch (const std::bad_alloc&) {
}

void Profile::close() {
  if (current_ == nullptr || clock_ == nullptr) return;
  count(*current_, clock_->now());
  current_->begun = -1;
}

void Profile::on_step(const Step& step) noexcept {
  switch (step.kind) {
  case Step::Kind::sent:
    return on_sent(step);
  case Step::Kind::crossed: {
    auto& row = sent_[static_cast<std::size_t>(std::bit_width(step.bytes))];
    --row[static_cast<std::size_t>(Protocol::send_rndv)];
    ++row[static_cast<std::size_t>(step.protocol)];
    return;
  }
  case Step::Kind::matched:
  case Step::Kind::released:
    last_was_short_ = false;
    return on_end(step.peer, is_collective(step)                 ? Cause::collective
                             : step.kind == Step::Kind::released ? Cause::late_receiver
                                                                 : Cause::late_sender);
  default: // says nothing of waits
    return;
  }
}

void Profile::on_end(engine::Rank peer, Cause cause) noexcept {
  if (current_ == nullptr || clock_ == nullptr) return;
  const double before = current_->cause == Cause::none ? current_->begun : current_->ended;
  current_->ended = clock_->now();
  const double waited = current_->ended - before;
  if (current_->cause != Cause::none && waited < current_->longest) return;
  current_->longest = waited;
  current_->peer = peer;
  current_->cause = cause;
}

void Profile::on_sent(const Step& step) try {
  ++sent_[static_cast<std::size_t>(std::bit_width(step.bytes))]
         [static_cast<std::size_t>(step.protocol)];
  Peer& peer = peers_[step.peer];
  ++peer.messages;
  peer.bytes += step.bytes;
  const bool is_short = step.bytes <= short_message && !is_collective(step);
  if (is_short && last_was_short_ && last_peer_ == step.peer) {
    ++peer.successive;
    peer.successive_bytes += step.bytes;
  }
  last_peer_ = step.peer;
  last_was_short_ = is_short;
} catch (const std::bad_alloc&) {
}

} // namespace macadam::mpi
