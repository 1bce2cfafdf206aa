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
  MemoryWaiter* waiter;        // null: nobody
  int from = -1;               // of data of a put that arrive here: the origin
  std::vector<std::byte> copy; // what is sent, if it is not the user's memory

  static void on_done(Request& request, void* argument) noexcept {
    const std::unique_ptr<Waited> self(static_cast<Waited*>(argument));
    Messages& owner = *self->owner;
    const bool ok = request.status.error == MPI_SUCCESS;
    owner.engine_.release(&request);
    --owner.waited_;
    if (self->waiter != nullptr) self->waiter->on_done(ok);
    if (self->from >= 0) owner.arrived(self->from);
  }
  // Takes a request over; null: it is complete.
  static Posted follow(std::unique_ptr<Waited> what, Request* request) {
    if (request == nullptr) return Posted::done;
    ++what->owner->waited_;
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
      control_(control), longest_inline_(as_in_paper ? 0 : room_inline) {
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

engine::Data Messages::bytes_of(const void* memory, std::size_t bytes) const {
  return {const_cast<void*>(memory), static_cast<MPI_Count>(bytes), &byte_};
}

std::byte* Messages::at(std::uint64_t place) const {
  return memory_ != nullptr ? memory_ + place : reinterpret_cast<std::byte*>(place);
}

// --- The origin.

void Messages::request(int to, Header header, const void* data) {
  header.number = requested_[to]++;
  const std::size_t with = header.kind == Kind::put ? header.bytes : 0;
  auto out = std::make_unique<Waited>(Waited{this, nullptr, -1, {}});
  out->copy.resize(sizeof header + with);
  std::memcpy(out->copy.data(), &header, sizeof header);
  base::copy(out->copy.data() + sizeof header, data, with);
  const engine::Data message = bytes_of(out->copy.data(), out->copy.size());
  Request* const sent = engine_.send(peer(to), Envelope{team_.context, team_.rank, request_tag},
                                     message, engine::SendMode::standard);
  Waited::follow(std::move(out), sent);
}

Messages::Posted Messages::put(int to, const void* from, std::uint64_t place, std::size_t bytes,
                               MemoryWaiter& waiter) {
  if (waited_ >= most_under_way) return Posted::busy;
  if (bytes <= longest_inline_) {
    request(to, {Kind::put, 0, place, bytes}, from);
    return Posted::done;
  }
  request(to, {Kind::put_long, 0, place, bytes}, nullptr);
  auto waited = std::make_unique<Waited>(Waited{this, &waiter, -1, {}});
  Request* const sent = engine_.send(peer(to), Envelope{team_.context, team_.rank, data_tag},
                                     bytes_of(from, bytes), engine::SendMode::standard);
  return Waited::follow(std::move(waited), sent);
}

Messages::Posted Messages::get(int from, void* to, std::uint64_t place, std::size_t bytes,
                               MemoryWaiter& waiter) {
  if (waited_ >= most_under_way) return Posted::busy;
  auto waited = std::make_unique<Waited>(Waited{this, &waiter, -1, {}});
  Request* const received =
      engine_.receive(&peer(from), Envelope{team_.context, from, answer_tag}, bytes_of(to, bytes));
  const Posted posted = Waited::follow(std::move(waited), received);
  request(from, {Kind::get, 0, place, bytes}, nullptr);
  return posted;
}

Messages::Posted Messages::flush(int to, MemoryWaiter& waiter) {
  auto waited = std::make_unique<Waited>(Waited{this, &waiter, -1, {}});
  Request* const received =
      engine_.receive(&peer(to), Envelope{team_.context, to, flushed_tag}, bytes_of(nullptr, 0));
  const Posted posted = Waited::follow(std::move(waited), received);
  request(to, {Kind::flush, 0, 0, 0}, nullptr);
  return posted;
}

void Messages::tell(int to, std::size_t offset, Counter value) {
  request(to, {Kind::tell, 0, offset, value}, nullptr);
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
  case Kind::put_long: {
    ++arriving_[from].puts;
    auto waited = std::make_unique<Waited>(Waited{this, nullptr, from, {}});
    Request* const received = engine_.receive(&peer(from), Envelope{team_.context, from, data_tag},
                                              bytes_of(at(header.place), header.bytes));
    Waited::follow(std::move(waited), received);
    return;
  }
  case Kind::get: {
    auto waited = std::make_unique<Waited>(Waited{this, nullptr, -1, {}});
    Request* const sent =
        engine_.send(peer(from), Envelope{team_.context, team_.rank, answer_tag},
                     bytes_of(at(header.place), header.bytes), engine::SendMode::standard);
    Waited::follow(std::move(waited), sent);
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

// All that came before from this origin has landed.
void Messages::answer(int from, const Header& header) {
  if (header.kind == Kind::tell) {
    control_[header.place] = static_cast<std::byte>(header.bytes);
    return;
  }
  auto waited = std::make_unique<Waited>(Waited{this, nullptr, -1, {}});
  Request* const sent = engine_.send(peer(from), Envelope{team_.context, team_.rank, flushed_tag},
                                     bytes_of(nullptr, 0), engine::SendMode::standard);
  Waited::follow(std::move(waited), sent);
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
