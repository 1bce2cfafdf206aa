// SPDX-License-Identifier: BSD-3-Clause
#include "rma/messages.h"

#include "base/copy.h"
#include "rma/element.h"

#include <cstring>
#include <memory>
#include <utility>

namespace macadam::rma {

using engine::Envelope;
using engine::MemoryWaiter;
using engine::Request;
using engine::SendMode;

namespace {

// An origin's requests are served in the order of their numbers. So data of its puts are sent and
// received in one order, answers of either kind too, and a tag is enough for each. They are below
// 0, apart from the user's (engine/peer.h).
constexpr std::int32_t request_tag = -10;
constexpr std::int32_t data_tag = -11;
constexpr std::int32_t answer_tag = -12;
constexpr std::int32_t flushed_tag = -13;

std::span<const std::byte> bytes_at(const void* memory, std::size_t bytes) {
  return {static_cast<const std::byte*>(memory), bytes};
}

} // namespace

struct Messages::Waited {
  Messages* owner;
  MemoryWaiter* waiter = nullptr;   // null: nobody
  int from = -1;                    // of data of a put that arrive here: the origin
  std::vector<std::byte> copy = {}; // what is sent or received, if it is not the user's memory
  Header header = {};               // of data of a put that arrive here
  std::uint64_t copied = 0;         // counted in copied_

  static void on_done(Request& request, void* argument) noexcept {
    const std::unique_ptr<Waited> self(static_cast<Waited*>(argument));
    Messages& owner = *self->owner;
    const bool ok = request.status.error == MPI_SUCCESS;
    owner.engine_.release(&request);
    --owner.waited_;
    owner.copied_ -= self->copied;
    if (self->waiter != nullptr) self->waiter->on_done(ok);
    if (self->from < 0) return;
    try {
      owner.land(*self, ok);
    } catch (...) { // an access is lost, and what comes after it must not be served
      owner.engine_.break_down();
    }
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

// What combines, behind the header: the handles of predefined ones, which are small. Then come the
// data, unless they are a message of their own, and the runs.
struct Messages::Combining {
  std::uint32_t op_code;
  std::uint16_t element_code;
  std::uint16_t wants_old;

  Combining(const datatype::Op& op, const datatype::Type& element, bool old)
      : op_code(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(op.handle()))),
        element_code(
            static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(element.handle()))),
        wants_old(old) {}
  explicit Combining(const std::byte* request) { base::copy(this, request, sizeof *this); }
  [[nodiscard]] MPI_Op op() const {
    return reinterpret_cast<MPI_Op>(static_cast<std::uintptr_t>(op_code));
  }
  [[nodiscard]] MPI_Datatype element() const {
    return reinterpret_cast<MPI_Datatype>(static_cast<std::uintptr_t>(element_code));
  }
  [[nodiscard]] bool has_data() const { return op() != MPI_NO_OP; }
};

// Where data of their own message are kept behind the head and runs of their request.
std::size_t Messages::long_data_offset(std::size_t runs) {
  static_assert(sizeof(Combining) == combining_bytes);
  static_assert((sizeof(Header) + sizeof(Combining)) % data_alignment == 0);
  const std::size_t before = combining_bytes + runs * sizeof(Run);
  return (before + data_alignment - 1) / data_alignment * data_alignment;
}

Messages::Messages(engine::Engine& engine, Waiting& waiting, const engine::Team& team,
                   const datatype::PredefinedTypes& types, const datatype::PredefinedOps& ops,
                   std::byte* memory, std::byte* control, bool as_in_paper)
    : engine_(engine), waiting_(waiting), team_(team), types_(types), ops_(ops), memory_(memory),
      control_(control), longest_inline_(as_in_paper ? 0 : room_inline),
      mode_(as_in_paper ? SendMode::standard : SendMode::exchange) {
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
  return send(to, tag, std::move(waited), data, bytes, mode_);
}

Messages::Posted Messages::send(int to, std::int32_t tag, std::unique_ptr<Waited> waited,
                                const void* data, std::size_t bytes, engine::SendMode mode) {
  Request* const sent =
      engine_.send(peer(to), Envelope{team_.context, team_.rank, tag}, bytes_of(data, bytes), mode);
  return Waited::follow(std::move(waited), sent);
}

Messages::Posted Messages::receive(int from, std::int32_t tag, std::unique_ptr<Waited> waited,
                                   void* to, std::size_t bytes) {
  Request* const received =
      engine_.receive(&peer(from), Envelope{team_.context, from, tag}, bytes_of(to, bytes));
  return Waited::follow(std::move(waited), received);
}

engine::Data Messages::bytes_of(const void* memory, std::size_t bytes) const {
  return {const_cast<void*>(memory), static_cast<MPI_Count>(bytes), &types_[MPI_BYTE]};
}

std::byte* Messages::at(std::uint64_t place) const {
  return memory_ != nullptr ? memory_ + place : reinterpret_cast<std::byte*>(place);
}

// What put_runs() has packed, to where it belongs.
void Messages::spread(const std::byte* packed, const Header& header) const {
  runs_here(packed + header.bytes - header.place * sizeof(Run), header).unpack(packed);
}

// --- The origin.

bool Messages::is_busy() const {
  return waited_ >= most_under_way || copied_ >= most_copied;
}

// Short ones of a burst travel together; what somebody waits for leaves at once.
void Messages::request(int to, Header header, std::initializer_list<Bytes> data) {
  const bool waited_for = header.kind == Kind::flush || header.kind == Kind::tell;
  header.number = requested_[to]++;
  auto out = std::make_unique<Waited>(Waited{.owner = this});
  std::size_t bytes = sizeof header;
  for (const Bytes& part : data)
    bytes += part.size();
  out->copy.resize(bytes);
  std::byte* next = out->copy.data();
  std::memcpy(next, &header, sizeof header);
  next += sizeof header;
  for (const Bytes& part : data) {
    base::copy(next, part.data(), part.size());
    next += part.size();
  }
  const std::byte* const message = out->copy.data();
  send(to, request_tag, std::move(out), message, bytes,
       waited_for || mode_ == SendMode::standard ? mode_ : SendMode::nonblocking);
}

// Answers come in the order of the requests.
Messages::Posted Messages::receive_answer(int from, void* to, std::size_t bytes,
                                          MemoryWaiter& waiter, std::uint64_t copied) {
  return receive(
      from, answer_tag,
      std::make_unique<Waited>(Waited{.owner = this, .waiter = &waiter, .copied = copied}), to,
      bytes);
}

Messages::Posted Messages::put(int to, const void* from, std::uint64_t place, std::size_t bytes,
                               MemoryWaiter& waiter) {
  if (is_busy()) return Posted::busy;
  if (bytes <= longest_inline_) {
    request(to, {Kind::put, 0, place, bytes}, {bytes_at(from, bytes)});
    return Posted::done;
  }
  request(to, {Kind::put_long, 0, place, bytes});
  return send(to, data_tag, std::make_unique<Waited>(Waited{.owner = this, .waiter = &waiter}),
              from, bytes);
}

Messages::Posted Messages::get(int from, void* to, std::uint64_t place, std::size_t bytes,
                               MemoryWaiter& waiter) {
  if (is_busy()) return Posted::busy;
  const Posted posted = receive_answer(from, to, bytes, waiter);
  request(from, {Kind::get, 0, place, bytes});
  return posted;
}

Messages::Posted Messages::put_runs(int to, std::vector<std::byte>& packed, std::size_t runs) {
  if (is_busy()) return Posted::busy;
  const std::size_t bytes = packed.size();
  if (bytes <= longest_inline_) {
    request(to, {Kind::put_runs, 0, runs, bytes}, {packed});
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
  const Posted posted = receive_answer(from, to, bytes, waiter, bytes);
  request(from, {Kind::get_runs, 0, runs.size(), bytes}, {std::as_bytes(runs)});
  return posted;
}

Messages::Posted Messages::combine(int to, const datatype::Op& op, const datatype::Type& element,
                                   std::span<const Run> runs, Bytes data, void* old,
                                   MemoryWaiter& waiter) {
  std::size_t bytes = 0;
  for (const Run& run : runs)
    bytes += std::size_t{run.bytes} * run.count;
  const Posted received = old != nullptr ? receive_answer(to, old, bytes, waiter) : Posted::done;
  const Combining how(op, element, old != nullptr);
  const Bytes head = bytes_at(&how, sizeof how);
  if (data.size() <= most_combined(runs.size())) {
    request(to, {Kind::combine, 0, runs.size(), bytes}, {head, data, std::as_bytes(runs)});
    return received;
  }
  request(to, {Kind::combine_long, 0, runs.size(), bytes}, {head, std::as_bytes(runs)});
  // Where an answer is awaited, that tells that the data have been read.
  auto waited =
      std::make_unique<Waited>(Waited{.owner = this, .waiter = old == nullptr ? &waiter : nullptr});
  const Posted sent = send(to, data_tag, std::move(waited), data.data(), data.size());
  return old == nullptr ? sent : received;
}

Messages::Posted Messages::compare_and_swap(int to, std::uint64_t place, const void* ours,
                                            const void* compare, void* old, std::size_t bytes,
                                            MemoryWaiter& waiter) {
  const Posted received = receive_answer(to, old, bytes, waiter);
  request(to, {Kind::compare_and_swap, 0, place, bytes},
          {bytes_at(ours, bytes), bytes_at(compare, bytes)});
  return received;
}

Messages::Posted Messages::flush(int to, MemoryWaiter& waiter) {
  const Posted posted =
      receive(to, flushed_tag, std::make_unique<Waited>(Waited{.owner = this, .waiter = &waiter}),
              nullptr, 0);
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
  if (header.number != of.next || of.combines) { // overtook one that came by another protocol
    of.early.emplace(header.number,
                     std::vector(slot.room.begin(), slot.room.begin() + status.bytes));
    return true;
  }
  serve(status.source, slot.room.data());
  serve_early(status.source);
  return true;
}

void Messages::serve_early(int from) {
  Arriving& of = arriving_[from];
  if (std::exchange(of.in_turn, true)) return; // below another such call, which goes on
  for (auto next = of.early.find(of.next); !of.combines && next != of.early.end();
       next = of.early.find(of.next)) {
    auto request = of.early.extract(next);
    serve(from, request.mapped().data());
  }
  of.in_turn = false;
}

void Messages::serve(int from, std::byte* request) {
  Header header;
  std::memcpy(&header, request, sizeof header);
  ++arriving_[from].next;
  serve(from, header, request + sizeof header);
}

void Messages::serve(int from, const Header& header, std::byte* data) {
  switch (header.kind) {
  case Kind::put:
    base::copy(at(header.place), data, header.bytes);
    return;
  case Kind::put_runs:
    return spread(data, header);
  case Kind::put_long:
  case Kind::put_runs_long:
    receive_put(from, header);
    return;
  case Kind::get:
    send(from, answer_tag, std::make_unique<Waited>(Waited{.owner = this}), at(header.place),
         header.bytes);
    return;
  case Kind::get_runs: {
    std::vector<std::byte> packed(header.bytes);
    runs_here(data, header).pack(packed.data());
    return answer(from, std::move(packed));
  }
  case Kind::combine:
    return combine_here(from, header, data);
  case Kind::combine_long:
    return receive_to_combine(from, header, data);
  case Kind::compare_and_swap:
    return swap_here(from, header, data);
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
void Messages::receive_put(int from, const Header& header) {
  ++arriving_[from].puts;
  auto waited = std::make_unique<Waited>(Waited{.owner = this, .from = from, .header = header});
  const bool in_place = header.kind == Kind::put_long;
  if (!in_place) waited->copy.resize(header.bytes);
  std::byte* const to = in_place ? at(header.place) : waited->copy.data();
  receive(from, data_tag, std::move(waited), to, header.bytes);
}

// The same of what is combined: all that comes behind it waits, as each element is combined in the
// order of the requests.
void Messages::receive_to_combine(int from, const Header& header, const std::byte* request) {
  arriving_[from].combines = true;
  const std::size_t head = long_data_offset(header.place);
  auto waited = std::make_unique<Waited>(Waited{.owner = this, .from = from, .header = header});
  waited->copy.resize(head + header.bytes);
  base::copy(waited->copy.data(), request, sizeof(Combining) + header.place * sizeof(Run));
  std::byte* const to = waited->copy.data() + head;
  receive(from, data_tag, std::move(waited), to, header.bytes);
}

// Data that were not in the request are here, if `ok`.
void Messages::land(Waited& what, bool ok) {
  const Header& header = what.header;
  std::byte* const copy = what.copy.data();
  Arriving& of = arriving_.find(what.from)->second; // made when the request was served
  if (header.kind == Kind::combine_long) {
    if (ok)
      combine_here(what.from, header, Combining(copy), copy + long_data_offset(header.place),
                   copy + sizeof(Combining));
    of.combines = false;
    return serve_early(what.from);
  }
  if (ok && header.kind == Kind::put_runs_long) spread(copy, header);
  if (--of.puts > 0) return;
  for (const Header& each : std::exchange(of.behind, {}))
    answer(what.from, each);
}

// A request that has its data, behind its header.
void Messages::combine_here(int from, const Header& header, std::byte* request) {
  const Combining how(request);
  std::byte* const data = request + sizeof how;
  combine_here(from, header, how, data, data + (how.has_data() ? header.bytes : 0));
}

void Messages::combine_here(int from, const Header& header, const Combining& how, std::byte* data,
                            const std::byte* runs) {
  std::vector<std::byte> old(how.wants_old != 0 ? header.bytes : 0);
  rma::combine_here(*ops_.find(how.op()), *types_.find(how.element()), runs_here(runs, header),
                    header.bytes, data, how.wants_old != 0 ? old.data() : nullptr);
  if (how.wants_old != 0) answer(from, std::move(old));
}

void Messages::swap_here(int from, const Header& header, const std::byte* request) {
  std::byte* const there = at(header.place);
  std::vector<std::byte> old(there, there + header.bytes);
  if (std::memcmp(old.data(), request + header.bytes, header.bytes) == 0)
    base::copy(there, request, header.bytes);
  answer(from, std::move(old));
}

void Messages::answer(int from, std::vector<std::byte> packed) {
  auto waited = std::make_unique<Waited>(Waited{.owner = this, .copy = std::move(packed)});
  const std::byte* const copy = waited->copy.data();
  const std::size_t bytes = waited->copy.size();
  send(from, answer_tag, std::move(waited), copy, bytes);
}

// All that came before from this origin has landed.
void Messages::answer(int from, const Header& header) {
  if (header.kind == Kind::tell) {
    control_[header.place] = static_cast<std::byte>(header.bytes);
    return;
  }
  send(from, flushed_tag, std::make_unique<Waited>(Waited{.owner = this}), nullptr, 0);
}

} // namespace macadam::rma
