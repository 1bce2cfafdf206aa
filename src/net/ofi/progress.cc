// SPDX-License-Identifier: BSD-3-Clause
// What completes, what arrives, and what follows from it.
#include "net/ofi/transport.h"

#include "base/error.h"
#include "net/ofi/token.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace macadam::net::ofi {
namespace {

// Completions that are taken at a time.
constexpr std::size_t batch = 16;
// Seconds after the end of a process in which what it had sent may still arrive.
constexpr double time_to_arrive = 0.1;
// Seconds of waiting between two questions whether a peer is there. If it does not answer, the time
// to the next one doubles.
constexpr double probe_interval = 0.5;
// Messages of processes that this one has not met yet: there is one of each at most.
constexpr std::size_t most_early = 256;
// Batches that the progress thread takes before it lets go of the lock: who floods this process
// does not keep its program from it.
constexpr unsigned most_batches = 64;
// Receives that are posted in place of those whose messages the progress thread keeps.
constexpr unsigned most_spare_receives = 128;

template <class Body>
bool read_body(Body& body, const std::byte* bytes, std::size_t size) {
  if (size != sizeof body) return false;
  std::memcpy(&body, bytes, sizeof body);
  return true;
}

} // namespace

bool OfiTransport::poll(Sink& sink) noexcept {
  const std::scoped_lock guard(lock_);
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  sleeps_ = false;
  return breakdown_.poll(sink, [&] { return look(sink); });
}

inline bool OfiTransport::look(Sink& sink) {
  bool moved = false;
  if (chores_ || refused_ || arm_wanted_.load(std::memory_order_relaxed)) [[unlikely]]
    moved = look_with_chores(sink);
  else
    moved = read_completions(sink);
  if (moved && sleeper_ != nullptr) [[unlikely]]
    sleeper_->wake(); // another thread of ours should look again
  return moved;
}

bool OfiTransport::look_with_chores(Sink& sink) {
  breakdown_.raise();
  const bool arming = arm_wanted_.exchange(false, std::memory_order_relaxed);
  const bool was_refused = std::exchange(refused_, false);
  bool moved = !early_.empty() && take_early(sink); // before what has come later
  moved |= read_completions(sink);
  if (!failed_.empty()) {
    end_failed(sink);
    moved = true;
  }
  if (!to_self_.empty()) moved |= to_self_.deliver(rank_, sink);
  if (!unpublished_.empty()) moved |= open_waiting(sink);
  retry_answers();
  if (was_refused) {
    // A sink that is told of an end may make a route more.
    for (Route* const route : routes_with([](const Route& its) { return !its.unposted.empty(); }))
      advance_all(*route, sink);
  }
  while (!breaking_.empty()) {
    Route& route = *breaking_.back();
    breaking_.pop_back();
    break_off(route, sink);
    moved = true;
  }
  if (arming && !moved) moved = look_for_ended(sink);
  if (arming && pool_.grown()) pool_.trim(now());
  const bool unsent =
      std::ranges::any_of(routes_, [](const auto& row) { return !row.second->unposted.empty(); });
  refused_ = refused_ || unsent;
  chores_ = !to_self_.empty() || !unpublished_.empty() || !unposted_.empty() ||
            !answering_.empty() || !breaking_.empty();
  if (arming && !moved) {
    hurried_.store(chores_ || refused_ || was_refused, std::memory_order_relaxed);
    if (fabric_.descriptor() < 0 || fabric_.may_sleep()) {
      ++counters_.sleeps;
      waiting_.watch();
      sleeps_ = true;
      armed_.store(true, std::memory_order_release);
    } else {
      moved =
          true; // something is there already: nobody may fall asleep, on another network neither
    }
  }
  return moved;
}

void OfiTransport::retry_answers() {
  for (std::size_t i = unposted_.size(); i-- > 0;)
    post_receive(*std::exchange(unposted_[i], nullptr)); // pushes it again if there is no room
  std::erase(unposted_, nullptr);
  std::erase_if(answering_, [&](Route* route) { return send_answers(*route); });
}

// What the progress thread has left for us goes before what is there now.
bool OfiTransport::deliver_held(Sink& sink) {
  for (const fi_cq_msg_entry& entry : std::exchange(held_, {}))
    on_completion(entry, sink);
  return true;
}

bool OfiTransport::read_completions(Sink& sink) {
  if (!held_.empty()) [[unlikely]]
    return deliver_held(sink);
  std::array<fi_cq_msg_entry, batch> entries;
  const ssize_t count = fi_cq_read(fabric_.completions(), entries.data(), entries.size());
  if (count > 0) [[likely]] {
    for (ssize_t i = 0; i < count; ++i)
      on_completion(entries[static_cast<std::size_t>(i)], sink);
    return true;
  }
  if (count == -FI_EAGAIN || count == 0) return false;
  if (count != -FI_EAVAIL)
    base::fail(MPI_ERR_OTHER, "libfabric: the completions of {} cannot be read: {}", fabric_.name(),
               fabric_.text_of(count));
  if (!keep_error()) return false;
  end_failed(sink);
  return true;
}

void OfiTransport::on_completion(const fi_cq_msg_entry& entry, Sink& sink) {
  auto* const operation = static_cast<Operation*>(entry.op_context);
  if (operation == nullptr) return; // of no operation of ours
  if (operation->kind == Operation::Kind::receive) return on_receive(*operation, entry.len, sink);
  Route& route = *operation->route;
  --route.under_way;
  note_talk(route);
  Transfer* const transfer = operation->transfer;
  end(*operation);
  if (transfer != nullptr) {
    --transfer->under_way;
    if (is_finished(*transfer)) finish(*transfer, sink);
  }
  if (!route.unposted.empty()) advance_all(route, sink);
}

// An operation that has failed, for end_failed(). False if there was none after all.
bool OfiTransport::keep_error() {
  fi_cq_err_entry entry = {};
  if (fi_cq_readerr(fabric_.completions(), &entry, 0) <= 0) return false;
  auto* const operation = static_cast<Operation*>(entry.op_context);
  if (operation == nullptr) return true; // of no operation of ours
  // A message of a stranger's that is longer than any of ours; or the endpoint is being closed.
  if (operation->kind == Operation::Kind::receive) {
    ++counters_.strangers;
    post_receive(*operation);
    return true;
  }
  failed_.push_back({operation, entry.err});
  chores_ = true;
  return true;
}

void OfiTransport::end_failed(Sink& sink) {
  for (const auto [operation, error] : std::exchange(failed_, {})) {
    Route& route = *operation->route;
    --route.under_way;
    note_failure(route, fabric_.text_of(error));
    Transfer* const transfer = operation->transfer;
    end(*operation);
    if (transfer == nullptr) continue;
    --transfer->under_way;
    transfer->failed = true;
    if (is_finished(*transfer)) finish(*transfer, sink);
  }
}

// Whose message this is, if it proves that; else null.
Route* OfiTransport::find_source(const wire::Header& header) {
  if (last_source_ == nullptr || header.source != last_name_) {
    const auto rank = processes_.find(header.source);
    if (!rank || *rank == rank_) return nullptr;
    const auto known = routes_.find(*rank);
    // Nothing is kept for a stranger who only knows a name.
    if (known == routes_.end() &&
        !header.is_sealed_by(
            token_of(processes_.secret(rank_), header.source, processes_.own_name())))
      return nullptr;
    last_source_ = known == routes_.end() ? &route_to(*rank) : known->second.get();
    last_name_ = header.source;
  }
  return header.is_sealed_by(last_source_->their_token) ? last_source_ : nullptr;
}

inline OfiTransport::Sender OfiTransport::sender_of(const Operation& receive, std::size_t bytes) {
  Sender sender;
  if (bytes < sizeof sender.header) return sender;
  std::memcpy(&sender.header, receive.buffer->memory, sizeof sender.header);
  sender.route = find_source(sender.header);
  return sender;
}

void OfiTransport::on_receive(Operation& operation, std::size_t bytes, Sink& sink) {
  const std::byte* const memory = operation.buffer->memory;
  const auto [header, route] = sender_of(operation, bytes);
  if (route != nullptr && route->state != Route::State::broken) [[likely]]
    take(*route, header, memory + sizeof header, bytes - sizeof header, sink);
  else if (route == nullptr)
    keep_early(header, memory, bytes);
  if (spare_receives_ == 0) return post_receive(operation);
  --spare_receives_;
  end(operation);
}

// A process of a job that this one will meet may have met its job already, and sends. It proves
// that by the seal; its route is made when this process first sends to it. Nothing but messages
// comes so early, and all else is a stranger's. Whether the job is known is not asked again: the
// program may meet it just now.
void OfiTransport::keep_early(const wire::Header& header, const std::byte* memory,
                              std::size_t bytes) {
  if (bytes < sizeof header || header.kind() != wire::Kind::message ||
      !header.is_sealed_by(
          token_of(processes_.secret(rank_), header.source, processes_.own_name()))) {
    ++counters_.strangers;
    return;
  }
  if (early_.size() == most_early) early_.erase(early_.begin()); // left by jobs that are forgotten
  early_.push_back({header, {memory + sizeof header, memory + bytes}});
}

bool OfiTransport::take_early(Sink& sink) {
  bool moved = false;
  for (KeptMessage& early : std::exchange(early_, {})) {
    Route* const route = find_source(early.header);
    if (route == nullptr) {
      early_.push_back(std::move(early));
    } else if (route->state != Route::State::broken) {
      take(*route, early.header, early.body.data(), early.body.size(), sink);
      moved = true;
    }
  }
  return moved;
}

inline void OfiTransport::take(Route& route, const wire::Header& header, const std::byte* body,
                               std::size_t bytes, Sink& sink) {
  const wire::Kind kind = header.kind();
  note_talk(route);
  if (header.credits != 0) {
    add_credits(route, header.credits);
    if (!route.unposted.empty()) advance_all(route, sink);
  }
  if (!wire::is_numbered(kind)) {
    take_next(route, kind, body, bytes, sink);
  } else if (header.number == route.next_to_take || header.number == 0) [[likely]] {
    route.next_to_take = wire::number_after(header.number);
    take_next(route, kind, body, bytes, sink);
    if (!route.ahead.empty()) [[unlikely]]
      take_ahead(route, sink);
  } else {
    route.ahead.push_back({header, {body, body + bytes}}); // a window's at most
  }
}

inline void OfiTransport::take_next(Route& route, wire::Kind kind, const std::byte* body,
                                    std::size_t bytes, Sink& sink) {
  deliver(route, kind, body, bytes, sink);
  count_taken(route, kind);
}

// What has come before its time, once that is there.
void OfiTransport::take_ahead(Route& route, Sink& sink) {
  const auto is_next = [&](const KeptMessage& its) {
    return its.header.number == route.next_to_take;
  };
  for (;;) {
    const auto found = std::ranges::find_if(route.ahead, is_next);
    if (found == route.ahead.end()) return;
    const KeptMessage next = std::move(*found);
    route.ahead.erase(found);
    route.next_to_take = wire::number_after(route.next_to_take);
    take_next(route, next.header.kind(), next.body.data(), next.body.size(), sink);
  }
}

void OfiTransport::count_taken(Route& route, wire::Kind kind) {
  if (!wire::takes_credit(kind)) return;
  ++route.taken;
  if (owes_credits(route)) owe(route);
}

void OfiTransport::deliver(Route& route, wire::Kind kind, const std::byte* body, std::size_t bytes,
                           Sink& sink) {
  switch (kind) {
  case wire::Kind::message:
    return sink.on_message(route.rank, body, bytes);
  case wire::Kind::notice:
    if (wire::Notice notice; read_body(notice, body, bytes))
      sink.on_put(route.rank, notice.notification, notice.bytes);
    return;
  case wire::Kind::ask:
  case wire::Kind::atomic:
  case wire::Kind::revoke:
    return reply(route, kind, body, bytes);
  case wire::Kind::answer:
    if (wire::Question question; read_body(question, body, bytes))
      end_inquiry(route, question.id, nullptr, true, sink);
    return;
  case wire::Kind::result:
    if (wire::AtomicResult result; read_body(result, body, bytes))
      end_inquiry(route, result.id, &result.value, result.done != 0, sink);
    return;
  case wire::Kind::revoked:
    if (wire::PermitWanted wanted; read_body(wanted, body, bytes) && route.permits != nullptr)
      route.permits->answered(wanted.permit, wanted.used != 0);
    return;
  case wire::Kind::credits:
    return;
  }
}

// To a question.
void OfiTransport::reply(Route& route, wire::Kind kind, const std::byte* body, std::size_t bytes) {
  if (kind == wire::Kind::ask) {
    if (wire::Question question; read_body(question, body, bytes))
      answer(route, wire::Kind::answer, &question, sizeof question);
  } else if (kind == wire::Kind::atomic) {
    if (wire::AtomicRequest request; read_body(request, body, bytes)) serve(route, request);
  } else if (wire::PermitWanted wanted; read_body(wanted, body, bytes)) {
    Permits* const permits = permits_of(route);
    if (permits == nullptr) throw std::bad_alloc();
    wanted.used = permits->revoke(wanted.permit) ? 1 : 0;
    answer(route, wire::Kind::revoked, &wanted, sizeof wanted);
  }
}

void OfiTransport::post_receive(Operation& operation) {
  mem::Buffer& buffer = *operation.buffer;
  const auto& region = static_cast<const Region&>(*buffer.arena->region);
  const ssize_t result = fi_recv(fabric_.endpoint(), buffer.memory, pool_.buffer_bytes(),
                                 region.descriptor(), FI_ADDR_UNSPEC, &operation.room);
  if (result == 0) [[likely]]
    return;
  if (result != -FI_EAGAIN)
    base::fail(MPI_ERR_OTHER, "libfabric: {} takes no receive: {}", fabric_.name(),
               fabric_.text_of(result));
  unposted_.push_back(&operation);
  chores_ = true;
}

// What a peer has asked for goes before what this process sends to it.
void OfiTransport::answer(Route& route, wire::Kind kind, const void* body, std::size_t bytes) {
  std::vector<std::byte>& waiting = route.answers.emplace_back(1 + bytes);
  waiting[0] = static_cast<std::byte>(kind);
  std::memcpy(&waiting[1], body, bytes);
  owe(route);
}

void OfiTransport::owe(Route& route) {
  if (std::ranges::find(answering_, &route) != answering_.end() || send_answers(route)) return;
  answering_.push_back(&route);
  chores_ = true;
}

// True if none is left.
bool OfiTransport::send_answers(Route& route) {
  try_open(route);
  while (route.state == Route::State::open && !route.answers.empty()) {
    const std::vector<std::byte>& front = route.answers.front();
    if (post_message(route, static_cast<wire::Kind>(front[0]), &front[1], front.size() - 1, nullptr,
                     0) != Posted::done)
      return false;
    route.answers.erase(route.answers.begin());
  }
  if (route.state == Route::State::broken) {
    route.answers.clear();
    return true;
  }
  if (route.answers.empty() && owes_credits(route) && route.state == Route::State::open)
    static_cast<void>(post_message(route, wire::Kind::credits, nullptr, 0, nullptr, 0));
  return route.answers.empty() && !owes_credits(route);
}

// Without the program: the provider moves what is read and written here, questions are answered,
// and what strangers send is dropped. Messages and completions are kept for the program.
bool OfiTransport::attend() noexcept {
  const std::unique_lock guard(lock_, std::try_to_lock);
  if (!guard) return false; // the program is at it
  bool any = false;
  try {
    std::array<fi_cq_msg_entry, batch> entries;
    unsigned batches = 0;
    for (; batches < most_batches; ++batches) {
      const ssize_t count = fi_cq_read(fabric_.completions(), entries.data(), entries.size());
      if (count != -FI_EAVAIL ? count <= 0 : !keep_error()) break;
      any = true;
      for (ssize_t i = 0; i < count; ++i) {
        const fi_cq_msg_entry& entry = entries[static_cast<std::size_t>(i)];
        auto* const operation = static_cast<Operation*>(entry.op_context);
        const bool is_receive = operation != nullptr && operation->kind == Operation::Kind::receive;
        const Sender sender = is_receive ? sender_of(*operation, entry.len) : Sender();
        if (is_receive && sender.route == nullptr) {
          keep_early(sender.header, operation->buffer->memory, entry.len);
          post_receive(*operation);
          continue;
        }
        if (is_receive && serve_at_once(*operation, sender, entry.len)) continue;
        held_.push_back(entry);
        if (is_receive) post_spare_receive();
      }
    }
    retry_answers();
    any = batches == most_batches || fabric_.may_sleep() || any; // the descriptor stays readable
  } catch (...) {
    break_down();
  }
  if (!(held_.empty() && failed_.empty()) && sleeps_) {
    sleeps_ = false;
    if (sleeper_ != nullptr)
      sleeper_->wake();
    else
      waiting_.wake();
  }
  return any;
}

// In the place of one whose message is kept: without a receive the provider takes nothing more,
// puts and questions neither.
void OfiTransport::post_spare_receive() {
  if (spare_receives_ == most_spare_receives) return;
  Operation* const operation = operations_.try_make();
  if (operation == nullptr) return;
  operation->buffer = pool_.take();
  if (operation->buffer == nullptr) return end(*operation);
  ++spare_receives_;
  post_receive(*operation);
}

// A question, or an atomic: not in order with messages, as nobody counts on that.
bool OfiTransport::serve_at_once(Operation& operation, const Sender& sender, std::size_t bytes) {
  const wire::Header& header = sender.header;
  Route& route = *sender.route;
  if (!wire::is_question(header.kind()) || route.state == Route::State::broken) return false;
  note_talk(route);
  if (header.credits != 0) refused_ = true; // the program goes on with what waited for them
  add_credits(route, header.credits);
  reply(route, header.kind(), operation.buffer->memory + sizeof header, bytes - sizeof header);
  count_taken(route, header.kind());
  post_receive(operation);
  return true;
}

void OfiTransport::serve(Route& route, const wire::AtomicRequest& request) {
  wire::AtomicResult result = {.id = request.id};
  std::byte* const word = fabric_.find(request.word, sizeof(std::uint64_t));
  if (word != nullptr && reinterpret_cast<std::uintptr_t>(word) % alignof(std::uint64_t) == 0) {
    result.value = change(word, {.kind = static_cast<engine::Atomic::Kind>(request.kind),
                                 .operand = request.operand,
                                 .compare = request.compare});
    result.done = 1;
    ++counters_.served;
  }
  answer(route, wire::Kind::result, &result, sizeof result);
}

void OfiTransport::end_inquiry(Route& route, std::uint64_t id, const std::uint64_t* value, bool ok,
                               Sink& sink) {
  const auto found = route.inquiries.find(id);
  if (found == route.inquiries.end()) return;
  const Inquiry inquiry = found->second;
  route.inquiries.erase(found);
  if (inquiry.is_probe) {
    route.probe_patience = 0;
    return;
  }
  if (ok && inquiry.result != nullptr && value != nullptr) *inquiry.result = *value;
  sink.on_complete(inquiry.cookie, ok);
}

// Those whose addresses were not published when they were first wanted.
bool OfiTransport::open_waiting(Sink& sink) {
  bool moved = false;
  for (std::size_t i = unpublished_.size(); i-- > 0;) {
    Route& route = *unpublished_[i];
    if (!try_open(route)) continue;
    unpublished_.erase(unpublished_.begin() + static_cast<std::ptrdiff_t>(i));
    moved = true;
    route.promised = false;
    sink.on_peer(route.rank, engine::PeerState::connected);
  }
  return moved;
}

// The network does not always tell of the end of a process: one that only waits for a message has
// nothing under way that could fail.
bool OfiTransport::look_for_ended(Sink& sink) {
  const double time = now();
  const std::vector<Route*> ended = routes_with([&](Route& route) {
    if (route.state == Route::State::broken || route.state == Route::State::unknown) return false;
    const boot::Life life = processes_.life(route.rank);
    if (life == boot::Life::unknown) probe(route, time);
    if (!has_ended(life)) return false;
    if (route.ended_since == 0) route.ended_since = time;
    hurried_.store(true, std::memory_order_relaxed);
    return time - route.ended_since > time_to_arrive;
  });
  for (Route* const route : ended) {
    note_failure(*route, "its process has ended");
    route->reason.reset();
    std::erase(breaking_, route);
    break_off(*route, sink);
  }
  return !ended.empty();
}

// Of a peer that nobody watches the network may tell: what is sent to it fails. A question may be
// lost with the connection, which is found out by the next one; a peer that is stopped is asked
// less and less often.
void OfiTransport::probe(Route& route, double time) {
  if (time < route.probe_at || !can_send(route)) return;
  const wire::Question question = {++inquiries_};
  route.inquiries.emplace(question.id, Inquiry{.is_probe = true});
  route.probe_patience = std::max(2 * route.probe_patience, probe_interval);
  route.probe_at = time + route.probe_patience;
  if (post_message(route, wire::Kind::ask, &question, sizeof question, nullptr, 0) == Posted::done)
    return;
  route.inquiries.erase(question.id);
  route.probe_patience = 0;
}

// What the provider still has of it completes, with an error or not; nothing more is begun.
void OfiTransport::break_off(Route& route, Sink& sink) {
  if (route.state == Route::State::broken) return;
  route.state = Route::State::broken;
  ++counters_.broken;
  std::erase(unpublished_, &route);
  std::erase(answering_, &route);
  route.answers.clear();
  route.ahead.clear();
  fail_pending(route, sink);
  if (route.wanted) sink.on_peer(route.rank, engine::PeerState::failed);
}

// Ends, not `ok`, what the provider does not have.
void OfiTransport::fail_pending(Route& route, Sink& sink) {
  while (!route.inquiries.empty())
    end_inquiry(route, route.inquiries.begin()->first, nullptr, false, sink);
  std::vector<Transfer*> idle;
  for (Transfer& transfer : route.transfers) {
    transfer.failed = true;
    if (transfer.under_way == 0) idle.push_back(&transfer);
  }
  for (Transfer* const transfer : idle)
    finish(*transfer, sink);
}

void OfiTransport::abandon(Sink& sink) noexcept {
  waiting_.stop();
  fabric_.close();
  for (Route* const route : routes_with([](const Route&) { return true; })) {
    for (Transfer& transfer : route->transfers)
      transfer.under_way = 0; // the provider has let go of all
    break_off(*route, sink);
    fail_pending(*route, sink); // of one that was broken before
  }
}

} // namespace macadam::net::ofi
