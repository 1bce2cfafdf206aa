// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/head.h"

#include "base/error.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace macadam::tools {

using boot::PacketReader;
using boot::PacketWriter;
using boot::RankRow;
using boot::RankState;

void Head::expect(double silence_seconds) {
  silence_ = Silence(silence_seconds);
  beat_ = Clock::now() + Silence::interval;
}

void Head::list(std::vector<pollfd>& polled) const {
  stream_.list(polled);
  polled.push_back(input_.polled());
}

void Head::take(const pollfd* polled, boot::JobMemory& memory) {
  if (polled[0].revents != 0 && !stream_.read_some()) is_gone_ = true;
  try {
    while (std::optional<Frame> frame = stream_.next()) {
      silence_.end();
      on_frame(std::move(*frame), memory);
    }
  } catch (const std::exception&) {
    is_gone_ = true;
  }
  if (const std::size_t bytes = input_.write_some(); bytes > 0) {
    PacketWriter body;
    body.value(std::uint64_t{bytes});
    stream_.send(FrameKind::input_taken, body);
  }
  if (const auto now = Clock::now(); now >= beat_) {
    beat_ = now + Silence::interval;
    const bool busy = is_machine_busy();
    PacketWriter body;
    body.value(busy);
    stream_.send(FrameKind::beat, body);
    is_gone_ = is_gone_ || (!stopped_ && silence_.count(busy));
  }
  stream_.write_some();
}

void Head::on_frame(Frame frame, boot::JobMemory& memory) {
  PacketReader& body = frame.body;
  switch (frame.kind) {
  case FrameKind::open_barrier:
    if (memory.header().barrier_round.load() < body.value<std::uint32_t>()) memory.open_barrier();
    break;
  case FrameKind::end:
    orders_.push_back({Order::Kind::end});
    break;
  case FrameKind::signal: {
    const int number = body.value<std::int32_t>();
    if (number == SIGTSTP) stopped_ = true;
    if (number == SIGCONT) stopped_ = false;
    orders_.push_back({Order::Kind::signal, number});
    break;
  }
  case FrameKind::ask:
    orders_.push_back({.kind = Order::Kind::ask, .with_stacks = body.value<bool>()});
    break;
  case FrameKind::locate: {
    Order order{Order::Kind::locate};
    for (auto left = body.value<std::uint32_t>(); left > 0; --left)
      if (const auto rank = body.value<std::uint32_t>(); rank < memory.header().size)
        order.ranks.push_back(static_cast<int>(rank));
    orders_.push_back(std::move(order));
    break;
  }
  case FrameKind::output_taken: {
    std::size_t& room = room_of(body.value<std::uint8_t>());
    room += body.value<std::uint64_t>();
    break;
  }
  case FrameKind::input:
    input_.append(body.text());
    break;
  case FrameKind::input_end:
    input_.end();
    break;
  case FrameKind::want:
    wanted_here_.push_back(body.value<std::uint32_t>());
    answer_wants(memory);
    break;
  case FrameKind::address: {
    RankRow& row = memory.row(static_cast<int>(body.value<std::uint32_t>()));
    const bool published = body.value<bool>();
    row.endpoint_used = body.value<std::uint32_t>();
    row.address = body.value<decltype(row.address)>();
    if (published)
      row.published.store(1, std::memory_order_release);
    else
      row.state.store(RankState::gone, std::memory_order_release);
    break;
  }
  case FrameKind::request:
  case FrameKind::answer:
  case FrameKind::confirmed:
  case FrameKind::called_off:
  case FrameKind::ended:
    relayed_.push_back(std::move(frame));
    break;
  case FrameKind::beat:
    silence_.note_other(body.value<bool>());
    break;
  default:
    break;
  }
}

std::optional<Head::Order> Head::next_order() {
  if (orders_.empty()) return std::nullopt;
  Order order = std::move(orders_.front());
  orders_.pop_front();
  return order;
}

std::optional<Frame> Head::next_relayed() {
  if (relayed_.empty()) return std::nullopt;
  Frame frame = std::move(relayed_.front());
  relayed_.pop_front();
  return frame;
}

void Head::send(FrameKind kind, const PacketWriter& body) {
  stream_.send(kind, body);
  stream_.write_some();
}

void Head::tell_others(std::uint32_t ranks) {
  if (ranks == others_) return;
  others_ = ranks;
  PacketWriter body;
  body.value(ranks);
  send(FrameKind::others, body);
}

void Head::exchange(boot::JobMemory& memory) {
  tell_rows(memory);
  tell_wants(memory);
  answer_wants(memory);
  const std::uint32_t round = memory.header().barrier_round.load(std::memory_order_acquire) + 1;
  if (round > arrived_ && memory.have_arrived()) {
    arrived_ = round;
    PacketWriter body;
    body.value(round);
    stream_.send(FrameKind::arrived, body);
  }
  stream_.write_some();
}

void Head::tell_rows(const boot::JobMemory& memory) {
  const auto members = memory.members();
  told_.resize(members.size());
  for (std::size_t place = 0; place < members.size(); ++place) {
    const RankRow& row = memory.row(static_cast<int>(members[place]));
    const Told now{row.state.load(std::memory_order_acquire), row.pid};
    if (now == told_[place]) continue;
    told_[place] = now;
    PacketWriter body;
    body.value(members[place]);
    body.value(now.state);
    body.value(now.pid);
    body.value(row.start_error);
    stream_.send(FrameKind::row, body);
  }
}

void Head::tell_wants(const boot::JobMemory& memory) {
  const auto wanted = memory.wanted();
  asked_for_.resize(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::uint64_t now = wanted[i].load(std::memory_order_acquire);
    for (std::uint64_t more = now & ~asked_for_[i]; more != 0; more &= more - 1) {
      PacketWriter body;
      body.value(static_cast<std::uint32_t>(64 * i + static_cast<unsigned>(__builtin_ctzll(more))));
      stream_.send(FrameKind::want, body);
    }
    asked_for_[i] = now;
  }
}

void Head::answer_wants(const boot::JobMemory& memory) {
  std::erase_if(wanted_here_, [&](std::uint32_t rank) {
    const RankRow& row = memory.row(static_cast<int>(rank));
    const bool published = row.published.load(std::memory_order_acquire) != 0;
    const RankState state = row.state.load(std::memory_order_acquire);
    if (!published && state != RankState::gone && state != RankState::dead) return false;
    PacketWriter body;
    body.value(rank);
    body.value(published);
    body.value(row.endpoint_used.load());
    body.value(row.address);
    stream_.send(FrameKind::address, body);
    return true;
  });
}

void Head::tell(const Failure& failure) {
  PacketWriter body;
  body.value(static_cast<std::uint32_t>(failure.rank));
  body.value(std::int32_t{failure.status});
  body.value(failure.ends_jobs);
  body.value(failure.quiet);
  body.value(failure.counts);
  body.text(failure.sentence);
  stream_.send(FrameKind::failure, body);
  stream_.write_some();
}

void Head::tell(const boot::JobMemory& memory, const std::vector<RankStatus>& statuses) {
  PacketWriter body;
  body.value(memory.own_node().ranks);
  for (const std::uint32_t rank : memory.members()) {
    body.value(rank);
    body.value(static_cast<std::uint8_t>(statuses[rank].kind));
    body.value(static_cast<std::int32_t>(statuses[rank].process));
    body.text(statuses[rank].json);
  }
  stream_.send(FrameKind::statuses, body);
}

void Head::tell(const std::map<int, std::string>& stacks) {
  PacketWriter body;
  body.value(static_cast<std::uint32_t>(stacks.size()));
  for (const auto& [rank, stack] : stacks) {
    body.value(static_cast<std::uint32_t>(rank));
    body.text(stack);
  }
  stream_.send(FrameKind::stacks, body);
  stream_.write_some();
}

void Head::tell_report(int rank, std::string_view text) {
  PacketWriter body;
  body.value(static_cast<std::uint32_t>(rank));
  body.text(text);
  stream_.send(FrameKind::report, body);
}

void Head::write(int stream, std::string_view text) {
  room_of(stream) -= text.size();
  PacketWriter body;
  body.value(static_cast<std::uint8_t>(stream));
  body.text(text);
  stream_.send(FrameKind::output, body);
  stream_.write_some();
}

void Head::finish() {
  stream_.send(FrameKind::done);
  write_rest();
}

void Head::refuse(const std::string& why) {
  PacketWriter body;
  body.text(why);
  stream_.send(FrameKind::refused, body);
  write_rest();
}

void Head::write_rest() {
  const auto until = Clock::now() + silence_.allowed();
  stream_.write_some();
  while (!is_gone_ && Clock::now() < until) {
    std::vector<pollfd> polled;
    stream_.list(polled);
    poll(polled.data(), polled.size(), static_cast<int>(Silence::interval.count()));
    stream_.write_some();
    if (polled[0].revents != 0 && !stream_.read_some()) return;
    try {
      while (const std::optional<Frame> frame = stream_.next())
        if (frame->kind == FrameKind::bye) return;
    } catch (const Misunderstood&) {
      return;
    }
  }
}

} // namespace macadam::tools
