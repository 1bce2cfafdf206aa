// SPDX-License-Identifier: BSD-3-Clause
#include "rma/messages.h"

#include "base/copy.h"

#include <cstring>
#include <memory>
#include <utility>

namespace macadam::rma {

using engine::Envelope;
using engine::MemoryWaiter;
using engine::Request;

namespace {

// An origin's requests are served in the order of their numbers. So data of its puts are sent and
// received in one order, answers of either kind too, and a tag is enough for each. They are below
// 0, apart from the user's (engine/peer.h).
constexpr std::int32_t request_tag = -10;
constexpr std::int32_t data_tag = -11;
constexpr std::int32_t answer_tag = -12;
constexpr std::int32_t flushed_tag = -13;

} // namespace

struct Messages::Waited {
  Messages* owner;
  MemoryWaiter* waiter = nullptr;   // null: nobody
  int from = -1;                    // of data of a put that arrive here: the origin
  std::vector<std::byte> copy = {}; // what is sent or received, if it is not the user's memory
  Header header = {};               // of put_runs that arrive here
  std::uint64_t copied = 0;         // counted in copied_

  static void on_done(Request& request, void* argument) noexcept {
    const std::unique_ptr<Waited> self(static_cast<Waited*>(argument));
    Messages& owner = *self->owner;
    const bool ok = request.status.error == MPI_SUCCESS;
    owner.engine_.release(&request);
    --owner.waited_;
    owner.copied_ -= self->copied;
    if (ok && self->header.kind == Kind::put_runs_long)
      owner.spread(self->copy.data(), self->header);
    if (self->waiter != nullptr) self->waiter->on_done(ok);
    if (self->from >= 0) owner.arrived(self->from);
  }
  // Takes a request over; null: it is complete.
  static Posted follow(std::unique_ptr<Waited> what, Request* request) {
    if (request == nullptr) return Posted::done;
    ++what->owner->waited_;
    what->owner->copied_ += what->copied;
    if (request->complete) {
      what->waiter = nullptr; // told by what is returned
      on_done(*request, what.release());
      return Posted::done;
    }
    request->argument = what.release();
    request->continuation = &on_done;
    return Posted::pending;
  }
};

Messages::Messages(engine::Engine& engine, Waiting& waiting, const engine::Team& team,
                   const datatype::Type& byte, std::byte* memory, std::byte* control,
                   bool as_in_paper)
    : engine_(engine), waiting_(waiting), team_(team), byte_(byte), memory_(memory),
      control_(control), longest_inline_(as_in_paper ? 0 : room_inline),
      mode_(as_in_paper ? engine::SendMode::standard : engine::SendMode::exchange) {
  for (Slot& slot : slots_) {
    slot.owner = this;
    listen(slot);
  }
}

Messages::~Messages() {
  waiting_.until([this] { return waited_ == 0; });
  stopping_ = true;
  try {
    for (Slot& slot : slots_)
      if (slot.receive != nullptr) engine_.cancel(*slot.receive);
  } catch (...) { // without memory to take them back all ends, they among it
    engine_.break_down();
  }
  waiting_.until([this] {
    for (const Slot& slot : slots_) {
      if (slot.receive != nullptr) return false;
    }
    return true;
  });
}

Messages::Posted Messages::send(int to, std::int32_t tag, std::unique_ptr<Waited> waited,
                                const void* data, std::size_t bytes) {
  Request* const sent = engine_.send(peer(to), Envelope{team_.context, team_.rank, tag},
                                     bytes_of(data, bytes), mode_);
  return Waited::follow(std::move(waited), sent);
}

engine::Data Messages::bytes_of(const void* memory, std::size_t bytes) const {
  return {const_cast<void*>(memory), static_cast<MPI_Count>(bytes), &byte_};
}

std::byte* Messages::at(std::uint64_t place) const {
  return memory_ != nullptr ? memory_ + place : reinterpret_cast<std::byte*>(place);
}

// Calls visit(memory, where it is packed, bytes) for each piece of the runs.
template <class Visit>
void Messages::for_each_piece(const std::byte* runs, std::size_t count, Visit&& visit) const {
  std::size_t packed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Run run;
    std::memcpy(&run, runs + i * sizeof run, sizeof run);
    if (run.bytes <= base::few_bytes) base::touched(std::size_t{run.bytes} * run.count);
    std::byte* there = at(run.place);
    for (std::uint32_t piece = 0; piece < run.count; ++piece) {
      visit(there, packed, std::size_t{run.bytes});
      packed += run.bytes;
      there += run.stride;
    }
  }
}

// What put_runs() has packed, to where it belongs.
void Messages::spread(const std::byte* packed, const Header& header) const {
  const std::byte* const runs = packed + header.bytes - header.place * sizeof(Run);
  for_each_piece(runs, header.place, [&](std::byte* there, std::size_t at, std::size_t bytes) {
    base::copy(there, packed + at, bytes);
  });
}

// What get_runs() has asked for, packed.
std::vector<std::byte> Messages::collect(const std::byte* runs, const Header& header) const {
  std::vector<std::byte> packed(header.bytes);
  for_each_piece(runs, header.place,
                 [&](const std::byte* there, std::size_t at, std::size_t bytes) {
                   base::copy(packed.data() + at, there, bytes);
                 });
  return packed;
}

// --- The origin.

bool Messages::is_busy() const {
  return waited_ >= most_under_way || copied_ >= most_copied;
}

void Messages::request(int to, Header header, const void* data, std::size_t bytes) {
  header.number = requested_[to]++;
  auto out = std::make_unique<Waited>(Waited{.owner = this});
  out->copy.resize(sizeof header + bytes);
  std::memcpy(out->copy.data(), &header, sizeof header);
  base::copy(out->copy.data() + sizeof header, data, bytes);
  const std::byte* const message = out->copy.data();
  send(to, request_tag, std::move(out), message, sizeof header + bytes);
}

Messages::Posted Messages::put(int to, const void* from, std::uint64_t place, std::size_t bytes,
                               MemoryWaiter& waiter) {
  if (is_busy()) return Posted::busy;
  if (bytes <= longest_inline_) {
    request(to, {Kind::put, 0, place, bytes}, from, bytes);
    return Posted::done;
  }
  request(to, {Kind::put_long, 0, place, bytes});
  return send(to, data_tag, std::make_unique<Waited>(Waited{.owner = this, .waiter = &waiter}),
              from, bytes);
}

Messages::Posted Messages::get(int from, void* to, std::uint64_t place, std::size_t bytes,
                               MemoryWaiter& waiter) {
  if (is_busy()) return Posted::busy;
  auto waited = std::make_unique<Waited>(Waited{.owner = this, .waiter = &waiter});
  Request* const received =
      engine_.receive(&peer(from), Envelope{team_.context, from, answer_tag}, bytes_of(to, bytes));
  const Posted posted = Waited::follow(std::move(waited), received);
  request(from, {Kind::get, 0, place, bytes});
  return posted;
}

Messages::Posted Messages::put_runs(int to, std::vector<std::byte>& packed, std::size_t runs) {
  if (is_busy()) return Posted::busy;
  const std::size_t bytes = packed.size();
  if (bytes <= longest_inline_) {
    request(to, {Kind::put_runs, 0, runs, bytes}, packed.data(), bytes);
    packed.clear();
    return Posted::done;
  }
  request(to, {Kind::put_runs_long, 0, runs, bytes});
  auto waited = std::make_unique<Waited>(
      Waited{.owner = this, .copy = std::exchange(packed, {}), .copied = bytes});
  const std::byte* const message = waited->copy.data();
  send(to, data_tag, std::move(waited), message, bytes);
  return Posted::done; // of the user's memory nothing is in use
}

Messages::Posted Messages::get_runs(int from, std::span<const Run> runs, void* to,
                                    std::size_t bytes, MemoryWaiter& waiter) {
  if (is_busy()) return Posted::busy;
  auto waited = std::make_unique<Waited>(Waited{.owner = this, .waiter = &waiter, .copied = bytes});
  Request* const received =
      engine_.receive(&peer(from), Envelope{team_.context, from, answer_tag}, bytes_of(to, bytes));
  const Posted posted = Waited::follow(std::move(waited), received);
  request(from, {Kind::get_runs, 0, runs.size(), bytes}, runs.data(), runs.size_bytes());
  return posted;
}

Messages::Posted Messages::flush(int to, MemoryWaiter& waiter) {
  auto waited = std::make_unique<Waited>(Waited{.owner = this, .waiter = &waiter});
  Request* const received =
      engine_.receive(&peer(to), Envelope{team_.context, to, flushed_tag}, bytes_of(nullptr, 0));
  const Posted posted = Waited::follow(std::move(waited), received);
  request(to, {Kind::flush, 0, 0, 0});
  return posted;
}

void Messages::tell(int to, std::size_t offset, Counter value) {
  request(to, {Kind::tell, 0, offset, value});
}

// --- The target.

// Takes all requests that are there, then waits for the next.
void Messages::listen(Slot& slot) {
  const Envelope any{team_.context, MPI_ANY_SOURCE, request_tag};
  for (;;) {
    slot.receive = engine_.receive(nullptr, any, bytes_of(slot.room.data(), slot.room.size()));
    if (!slot.receive->complete) break;
    if (!take(slot)) return;
  }
  slot.receive->argument = &slot;
  slot.receive->continuation = [](Request&, void* argument) noexcept {
    Slot& filled = *static_cast<Slot*>(argument);
    try {
      if (filled.owner->take(filled)) filled.owner->listen(filled);
    } catch (...) { // an access is lost, and what comes after it must not be served
      filled.owner->engine_.break_down();
    }
  };
}

// Serves what has come; false if that was the end.
bool Messages::take(Slot& slot) {
  engine::ReceiveRequest* const receive = std::exchange(slot.receive, nullptr);
  const engine::Status status = receive->status;
  engine_.release(receive);
  if (status.cancelled || stopping_) return false;
  if (status.error != MPI_SUCCESS || status.bytes < sizeof(Header)) return true;
  Header header;
  std::memcpy(&header, slot.room.data(), sizeof header);
  Arriving& of = arriving_[status.source];
  if (header.number != of.next) { // overtook one that came by another protocol
    of.early.emplace(header.number,
                     std::vector(slot.room.begin(), slot.room.begin() + status.bytes));
    return true;
  }
  serve(status.source, slot.room.data());
  for (auto next = of.early.find(of.next); next != of.early.end(); next = of.early.find(of.next)) {
    const auto request = of.early.extract(next);
    serve(status.source, request.mapped().data());
  }
  return true;
}

void Messages::serve(int from, const std::byte* request) {
  Header header;
  std::memcpy(&header, request, sizeof header);
  ++arriving_[from].next;
  serve(from, header, request + sizeof header);
}

void Messages::serve(int from, const Header& header, const std::byte* data) {
  switch (header.kind) {
  case Kind::put:
    base::copy(at(header.place), data, header.bytes);
    return;
  case Kind::put_runs:
    spread(data, header);
    return;
  case Kind::put_long:
  case Kind::put_runs_long:
    receive(from, header);
    return;
  case Kind::get:
    send(from, answer_tag, std::make_unique<Waited>(Waited{.owner = this}), at(header.place),
         header.bytes);
    return;
  case Kind::get_runs: {
    auto waited = std::make_unique<Waited>(Waited{.owner = this, .copy = collect(data, header)});
    const std::byte* const copy = waited->copy.data();
    send(from, answer_tag, std::move(waited), copy, header.bytes);
    return;
  }
  case Kind::flush:
  case Kind::tell:
    break;
  }
  const auto waiting = arriving_.find(from);
  if (waiting == arriving_.end() || waiting->second.puts == 0)
    answer(from, header);
  else
    waiting->second.behind.push_back(header);
}

// The data of a put, behind the request.
void Messages::receive(int from, const Header& header) {
  ++arriving_[from].puts;
  auto waited = std::make_unique<Waited>(Waited{.owner = this, .from = from, .header = header});
  const bool in_place = header.kind == Kind::put_long;
  if (!in_place) waited->copy.resize(header.bytes);
  std::byte* const to = in_place ? at(header.place) : waited->copy.data();
  Request* const received = engine_.receive(&peer(from), Envelope{team_.context, from, data_tag},
                                            bytes_of(to, header.bytes));
  Waited::follow(std::move(waited), received);
}

// All that came before from this origin has landed.
void Messages::answer(int from, const Header& header) {
  if (header.kind == Kind::tell) {
    control_[header.place] = static_cast<std::byte>(header.bytes);
    return;
  }
  send(from, flushed_tag, std::make_unique<Waited>(Waited{.owner = this}), nullptr, 0);
}

void Messages::arrived(int from) noexcept {
  Arriving& of = arriving_.find(from)->second; // made when the put was served
  if (--of.puts > 0) return;
  try {
    for (const Header& header : std::exchange(of.behind, {}))
      answer(from, header);
  } catch (...) {
    engine_.break_down();
  }
}

} // namespace macadam::rma
