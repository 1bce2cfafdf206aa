// SPDX-License-Identifier: BSD-3-Clause
// What proxies say, and what is passed on of it.
#include "tools/mpiexec/cluster.h"

#include "tools/mpiexec/head.h"
#include "tools/mpiexec/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace macadam::tools {

using boot::PacketReader;
using boot::PacketWriter;
using boot::RankState;

void Cluster::on_frame(Machine machine, Frame frame) {
  RemoteMachine& from = *machines_[machine];
  PacketReader& body = frame.body;
  switch (frame.kind) {
  case FrameKind::beat:
    from.silence.note_other(body.value<bool>());
    break;
  case FrameKind::hello:
    from.hello = read_hello(body);
    if (!ending_ &&
        std::ranges::all_of(machines_, [](const auto& each) { return each->hello.has_value(); }))
      start_ranks();
    break;
  case FrameKind::refused:
    let_go(machine);
    fail(fmt::format("host {}: {}", from.name, body.text()), 2);
    end_all();
    break;
  case FrameKind::row:
    on_row(body);
    break;
  case FrameKind::arrived:
    on_arrival(machine, body.value<std::uint32_t>());
    break;
  case FrameKind::want:
    on_want(machine, body.value<std::uint32_t>());
    break;
  case FrameKind::address:
    on_address(body);
    break;
  case FrameKind::failure:
    on_failure(body);
    break;
  case FrameKind::output:
    on_output(machine, body);
    break;
  case FrameKind::input_taken:
    input_room_ += body.value<std::uint64_t>();
    break;
  case FrameKind::statuses:
    on_statuses(machine, body);
    break;
  case FrameKind::stacks:
    on_stacks(machine, body);
    break;
  case FrameKind::report: {
    const auto rank = static_cast<int>(body.value<std::uint32_t>());
    reports_[rank] = body.text();
    break;
  }
  case FrameKind::others:
    accounts_[machine].others = body.value<std::uint32_t>();
    break;
  case FrameKind::request:
    on_request(machine, body);
    break;
  case FrameKind::answer:
  case FrameKind::confirmed:
  case FrameKind::called_off:
    pass_on(machine, frame.kind, body);
    break;
  case FrameKind::ended:
    on_ended(machine, body);
    break;
  case FrameKind::outside:
    on_outside(machine, body);
    break;
  case FrameKind::linked:
  case FrameKind::unlinked:
    on_linked(machine, body, frame.kind == FrameKind::linked);
    break;
  case FrameKind::done:
    let_go(machine);
    break;
  default:
    throw Misunderstood("says what is not its to say");
  }
}

// All that the proxy had to say has come.
void Cluster::let_go(Machine machine) {
  machines_[machine]->done = true;
  std::erase_if(links_, [machine](const auto& each) { return each.second == machine; });
  refuse_all(machine);
  machines_[machine]->send(FrameKind::bye);
}

void Cluster::on_row(PacketReader& body) {
  const auto rank = body.value<std::uint32_t>();
  const auto state = body.value<RankState>();
  const auto pid = body.value<std::int32_t>();
  const auto start_error = body.value<std::int32_t>();
  if (rank >= states_.size()) throw Misunderstood("names a rank that there is not");
  states_[rank] = state;
  joined_[rank] = pid != 0;
  absent_ = absent_ || (state == RankState::dead && pid == 0 && start_error == 0);
  if (absent_) look_for_absent_ranks();
}

// A rank that has ended without MPI_Init, which is its right, while others are in MPI: they would
// wait for it.
void Cluster::look_for_absent_ranks() {
  if (failed_) return;
  const auto in_mpi = std::ranges::find(states_, RankState::running);
  if (in_mpi == states_.end()) return;
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    if (states_[rank] != RankState::dead || joined_[rank]) continue;
    const std::string why = fmt::format(
        "rank {} on host {} ended without calling MPI_Init, which rank {} has called", rank,
        machines_[placement_.machines[rank]]->hello->host, in_mpi - states_.begin());
    fail(why + ending_others(alive()), 1);
    return end_all();
  }
}

int Cluster::alive(int but) const {
  int count = 0;
  for (std::size_t rank = 0; rank < states_.size(); ++rank)
    if (is_alive(rank) && static_cast<int>(rank) != but) ++count;
  for (const Account& account : accounts_)
    count += static_cast<int>(account.others);
  return count;
}

void Cluster::on_arrival(Machine machine, std::uint32_t round) {
  accounts_[machine].arrived = round;
  const bool all = std::ranges::all_of(
      accounts_, [&](const Account& account) { return account.arrived > round_; });
  if (!all) return;
  ++round_;
  PacketWriter body;
  body.value(round_);
  send_all(FrameKind::open_barrier, body);
}

// Whoever asks first makes us ask the rank's machine, and it answers once there is an answer.
void Cluster::on_want(Machine machine, std::uint32_t rank) {
  if (rank >= states_.size()) throw Misunderstood("names a rank that there is not");
  if (const auto known = addresses_.find(rank); known != addresses_.end()) {
    machines_[machine]->send(FrameKind::address, known->second);
    return;
  }
  auto& askers = wanted_by_[rank];
  askers.push_back(machine);
  RemoteMachine& owner = *machines_[placement_.machines[rank]];
  PacketWriter body;
  body.value(rank);
  if (owner.done) {
    body.value(false);
    body.value(std::uint32_t{0});
    body.value(boot::PublishedAddress{});
    PacketReader answer(body.bytes());
    on_address(answer);
  } else if (askers.size() == 1) {
    owner.send(FrameKind::want, body);
  }
}

void Cluster::on_address(PacketReader& body) {
  const auto rank = body.value<std::uint32_t>();
  PacketWriter& known = addresses_[rank];
  known.value(rank);
  known.value(body.value<bool>());
  known.value(body.value<std::uint32_t>());
  known.value(body.value<boot::PublishedAddress>());
  for (const Machine machine : wanted_by_[rank]) {
    machines_[machine]->send(FrameKind::address, known);
  }
  wanted_by_.erase(rank);
}

void Cluster::on_output(Machine machine, PacketReader& body) {
  const bool is_out = body.value<std::uint8_t>() == 1;
  const std::string text = body.text();
  (is_out ? out_ : error_).append(text);
  accounts_[machine].unwritten[is_out ? 0 : 1] += text.size();
  confirm_output();
}

// While a reader of ours is slow, machines are told nothing, and stop reading their ranks' output.
void Cluster::confirm_output() {
  for (const std::uint8_t stream : {std::uint8_t{1}, std::uint8_t{2}}) {
    if ((stream == 1 ? out_ : error_).is_full()) continue;
    for (Machine machine = 0; machine < machines_.size(); ++machine) {
      std::size_t& bytes = accounts_[machine].unwritten[stream - 1];
      if (bytes == 0) continue;
      PacketWriter body;
      body.value(stream);
      body.value(std::uint64_t{bytes});
      machines_[machine]->send(FrameKind::output_taken, body);
      bytes = 0;
    }
  }
  if (out_.error() == 0 || lost_output_told_) return;
  lost_output_told_ = true;
  say(std::string("the ranks' standard output cannot be written: ") + std::strerror(out_.error()) +
      "; what does not go is lost");
}

void Cluster::on_failure(PacketReader& body) {
  const auto rank = static_cast<int>(body.value<std::uint32_t>());
  const int status = body.value<std::int32_t>();
  const bool ends_jobs = body.value<bool>();
  const bool quiet = body.value<bool>();
  const bool counts = body.value<bool>(); // among the spawned ones, still
  const std::string why = body.text();
  const std::string sentence =
      why + (ends_jobs ? ending_others(alive(rank) - (counts ? 1 : 0)) : "");
  if (!failed_ && !quiet) {
    fail(sentence, status);
  } else if (failed_ && ends_jobs && !ending_ && !quiet) { // the first one has ended nobody
    say(sentence);
  } else if (!failed_) {
    failed_ = true;
    status_ = status;
  }
  if (ends_jobs) end_all();
}

void Cluster::on_statuses(Machine machine, PacketReader& body) {
  machines_[machine]->answered = true;
  for (auto left = body.value<std::uint32_t>(); left > 0; --left) {
    const auto rank = body.value<std::uint32_t>();
    RankStatus status;
    status.kind = static_cast<RankStatus::Kind>(body.value<std::uint8_t>());
    status.process = body.value<std::int32_t>();
    status.json = body.text();
    status.host = machines_[machine]->hello->host;
    if (rank < statuses_.size()) statuses_[rank] = std::move(status);
  }
}

void Cluster::on_stacks(Machine machine, PacketReader& body) {
  machines_[machine]->locates = false;
  for (auto left = body.value<std::uint32_t>(); left > 0; --left) {
    const auto rank = body.value<std::uint32_t>();
    std::string stack = body.text();
    if (rank < statuses_.size()) stacks_[static_cast<int>(rank)] = std::move(stack);
  }
}

} // namespace macadam::tools
