// SPDX-License-Identifier: BSD-3-Clause
#include "prove/execution.h"

#include "datatype/constructors.h"
#include "engine/wire.h"
#include "fmt/format.h"

#include <algorithm>
#include <cstring>

namespace macadam::prove {
namespace {

using engine::Envelope;

constexpr unsigned char untouched = 0xee, reused = 0xdd;
constexpr std::uint64_t first_context = 4;

std::uint64_t context_of(const Step& step) {
  return first_context + static_cast<std::uint64_t>(step.context);
}

// The bytes of a message; neighbours differ, and so do messages.
unsigned char content(int message, std::size_t i) {
  return static_cast<unsigned char>((static_cast<std::size_t>(message) * 37 + i * 5 + 1) % 200);
}

// Where byte `i` of the data lies in the user's memory.
std::size_t place(std::size_t i, bool gaps) {
  return gaps ? i / 4 * 6 + i % 4 + (i % 4 >= 2 ? 2 : 0) : i;
}

base::Settings settings_for(const Conditions& conditions) {
  base::Settings settings;
  settings.rendezvous = conditions.rendezvous;
  settings.protocols = conditions.protocols;
  settings.tags_per_peer = conditions.tags;
  settings.last_byte = conditions.last_byte;
  if (conditions.demote) settings.unexpected_limit = sizeof(engine::Message) + 1;
  return settings;
}

} // namespace

Types::Types() : gaps(datatype::vector(2, 2, 4, predefined[MPI_BYTE])) {
  gaps->commit();
}

Execution::Execution(const Program& program, const Types& types, Decider& decider)
    : program_(program), types_(types), settings_(settings_for(program.conditions)),
      network_(static_cast<int>(program.ranks.size()), program.conditions, decider),
      oracle_(program.ranks.size()), processes_(program.ranks.size()) {
  const int ranks = static_cast<int>(processes_.size());
  for (int rank = 0; rank < ranks; ++rank) {
    processes_[index(rank)].engine = std::make_unique<engine::Engine>(
        network_.transport(rank), static_cast<engine::Rank>(ranks), settings_);
  }
  network_.on_message = [this](int at, int from, const Network::Bytes& message) {
    sees(at, from, message);
  };
  network_.on_notice = [this](int at, int from, const Network::Transfer& put) {
    sees_notice(at, from, put);
  };
  network_.on_begin = [this](int from, int to, const Network::Transfer& transfer) {
    begins(from, to, transfer);
  };
}

// Engines first: what they still hold lies in the operations' memory.
Execution::~Execution() {
  for (Process& process : processes_) {
    for (auto& operation : process.operations) {
      if (operation->request != nullptr) operation->request->continuation = nullptr;
    }
    process.engine.reset();
  }
}

// ---------------------------------------------------------------- what can happen

bool Execution::may_call(int rank) const {
  const Process& process = processes_[index(rank)];
  const auto& steps = program_.ranks[index(rank)];
  if (process.next >= steps.size()) return false;
  const Step& step = steps[process.next];
  if (step.what == Step::What::wait) {
    return index(step.number) < process.receives.size() &&
           process.receives[index(step.number)]->request == nullptr;
  }
  if (step.what == Step::What::free_context) {
    return std::none_of(process.operations.begin(), process.operations.end(), [&](const auto& o) {
      return o->step.context == step.context && o->request != nullptr;
    });
  }
  return true;
}

// A poll that finds nothing matters: something waits for room, and room there is; or a receive
// waits for its last byte, which is there.
bool Execution::may_poll(int rank) const {
  bool found = false;
  for (const Operation* receive : processes_[index(rank)].receives) {
    if (receive->request == nullptr || !program_.conditions.last_byte) continue;
    const auto& request = static_cast<const engine::ReceiveRequest&>(*receive->request);
    const base::ListNode<engine::Watched>& watched = request;
    if (!watched.linked()) continue;
    const auto* const landing = request.staged != nullptr
                                    ? reinterpret_cast<const unsigned char*>(request.staged)
                                    : receive->memory.data();
    found = found || landing[request.capacity - 1] != request.last_byte;
  }
  for (int peer = 0; peer < static_cast<int>(processes_.size()); ++peer) {
    if (network_.must_deliver(rank, peer)) return false;
  }
  processes_[index(rank)].engine->peers().for_each([&](const engine::Peer& peer) {
    if (peer.state != engine::PeerState::connected || peer.backlog.empty()) return;
    const auto type = peer.backlog.front().type;
    found = found || type == engine::Deferred::Type::put || type == engine::Deferred::Type::get ||
            !network_.blocked(rank, static_cast<int>(peer.rank));
  });
  return found;
}

const std::vector<Event>& Execution::possible() {
  events_.clear();
  const int ranks = static_cast<int>(processes_.size());
  for (int rank = 0; rank < ranks; ++rank) {
    if (may_call(rank)) events_.push_back({Event::What::call, rank});
    deliveries_.clear();
    network_.list_deliveries(rank, deliveries_);
    for (const Delivery& delivery : deliveries_)
      events_.push_back({Event::What::deliver, rank, delivery});
    for (int peer = 0; peer < ranks; ++peer) {
      if (network_.can_land(rank, peer)) {
        events_.push_back({Event::What::land, rank, {Delivery::What::message, rank, peer}});
      }
    }
    if (may_poll(rank)) events_.push_back({Event::What::progress, rank});
  }
  return events_;
}

void Execution::happen(const Event& event) {
  network_.begin_call(event.at);
  engine::Engine& engine = *processes_[index(event.at)].engine;
  switch (event.what) {
  case Event::What::call:
    return call(event.at);
  case Event::What::deliver:
    network_.allow(event.delivery);
    engine.progress();
    return;
  case Event::What::land:
    return network_.land(event.at, event.delivery.peer);
  case Event::What::progress:
    engine.progress();
    return;
  }
}

std::string show(const Event& event, const Program& program, std::size_t step) {
  switch (event.what) {
  case Event::What::call:
    return fmt::format("rank {}: {}", event.at,
                       show(program.ranks[static_cast<std::size_t>(event.at)][step]));
  case Event::What::deliver:
    switch (event.delivery.what) {
    case Delivery::What::connected:
      return fmt::format("rank {} is connected to {}", event.at, event.delivery.peer);
    case Delivery::What::message:
      return fmt::format("rank {} gets the next packet of {}", event.at, event.delivery.peer);
    case Delivery::What::finished:
      return fmt::format("rank {} ends its put or get with {}", event.at, event.delivery.peer);
    }
    break;
  case Event::What::land:
    return fmt::format("a put of rank {} lands at {}", event.delivery.peer, event.at);
  case Event::What::progress:
    return fmt::format("rank {} tries again to send", event.at);
  }
  return "";
}

// ---------------------------------------------------------------- the calls

void Execution::call(int rank) {
  const Step& step = program_.ranks[index(rank)][processes_[index(rank)].next++];
  switch (step.what) {
  case Step::What::send:
  case Step::What::synchronous_send:
    return send(rank, step);
  case Step::What::receive:
    return receive(rank, step);
  case Step::What::probe:
    return probe(rank, step);
  case Step::What::match_probe:
    match_probe(rank, step);
    return;
  case Step::What::receive_matched:
    return receive_matched(rank, step);
  case Step::What::cancel: {
    auto& receives = processes_[index(rank)].receives;
    if (index(step.number) < receives.size()) cancel(*receives[index(step.number)]);
    return;
  }
  case Step::What::wait:
    return;
  case Step::What::free_context:
    return free_context(rank, step.context);
  }
}

Execution::Operation& Execution::begin(int rank, const Step& step) {
  Process& process = processes_[index(rank)];
  Operation& operation = *process.operations.emplace_back(std::make_unique<Operation>());
  operation.run = this;
  operation.step = step;
  operation.rank = rank;
  operation.memory.assign(step.gaps ? step.bytes / 4 * 6 : step.bytes, untouched);
  return operation;
}

engine::Data Execution::describe(Operation& operation) const {
  const Step& step = operation.step;
  return {operation.memory.data(), static_cast<MPI_Count>(step.gaps ? step.bytes / 4 : step.bytes),
          step.gaps ? types_.gaps.get() : &types_.predefined[MPI_BYTE]};
}

void Execution::send(int rank, const Step& step) {
  Operation& operation = begin(rank, step);
  operation.number = oracle_.sent(rank, step);
  for (std::size_t i = 0; i < step.bytes; ++i)
    operation.memory[place(i, step.gaps)] = content(operation.number, i);
  engine::Engine& engine = *processes_[index(rank)].engine;
  const auto mode = step.what == Step::What::synchronous_send ? engine::SendMode::synchronous
                                                              : engine::SendMode::standard;
  // What goes by the last byte has no packet of its own.
  const Sending sending{operation.number, engine.counters().receiver_early};
  sending_ = &sending;
  engine::SendRequest* const request =
      engine.send(engine.peer(static_cast<engine::Rank>(step.peer)),
                  {context_of(step), rank, step.tag}, describe(operation), mode);
  sending_ = nullptr;
  if (request == nullptr) return completed(operation, {});
  watch(operation, request);
}

// A put of a call of send that used an announcement: if it fills the receiver's buffer and changes
// its last byte, its end is seen there.
void Execution::begins(int from, int to, const Network::Transfer& put) {
  if (sending_ == nullptr || !program_.conditions.last_byte || !put.put) return;
  if (processes_[index(from)].engine->counters().receiver_early == sending_->early) return;
  const Network::Region* const region = network_.region(to, put.remote.key);
  if (region == nullptr || put.bytes != region->bytes ||
      put.bytes != oracle_.message(sending_->message).bytes)
    return;
  const auto* const landing = reinterpret_cast<const unsigned char*>(put.remote.address);
  const auto* const data = static_cast<const unsigned char*>(put.local);
  if (landing[put.bytes - 1] != data[put.bytes - 1]) oracle_.silence(sending_->message);
}

void Execution::receive(int rank, const Step& step) {
  Process& process = processes_[index(rank)];
  Operation& operation = begin(rank, step);
  operation.receive = true;
  operation.number = static_cast<int>(process.receives.size());
  process.receives.push_back(&operation);
  oracle_.post(rank, step);
  engine::Peer* const peer = step.peer == MPI_ANY_SOURCE
                                 ? nullptr
                                 : &process.engine->peer(static_cast<engine::Rank>(step.peer));
  watch(operation, process.engine->receive(peer, {context_of(step), step.peer, step.tag},
                                           describe(operation)));
}

void Execution::probe(int rank, const Step& step) {
  const engine::Message* const found =
      processes_[index(rank)].engine->probe({context_of(step), step.peer, step.tag});
  const int expected = oracle_.oldest(rank, step);
  if ((found != nullptr) != (expected != Oracle::none))
    return say(fmt::format("a probe of rank {} finds {}", rank,
                           found != nullptr ? "a message that is not there" : "nothing"));
  if (found == nullptr) return;
  const Oracle::Message& message = oracle_.message(expected);
  if (found->envelope.source != message.from || found->envelope.tag != message.tag ||
      found->bytes != message.bytes)
    say(fmt::format("a probe of rank {} finds another message than the oldest", rank));
}

bool Execution::match_probe(int rank, const Step& step) {
  probe(rank, step); // finds the same
  Process& process = processes_[index(rank)];
  if (process.probed != nullptr) return false; // one at a time: the last is not received yet
  process.probed = process.engine->match_probe({context_of(step), step.peer, step.tag});
  process.probed_message = oracle_.oldest(rank, step);
  if (process.probed != nullptr && process.probed_message != Oracle::none)
    oracle_.take(rank, process.probed_message);
  return process.probed != nullptr;
}

void Execution::receive_matched(int rank, const Step& step) {
  Process& process = processes_[index(rank)];
  if (process.probed == nullptr) return;
  Operation& operation = begin(rank, step);
  operation.receive = true;
  operation.number = static_cast<int>(process.receives.size());
  process.receives.push_back(&operation);
  oracle_.receive_taken(rank, process.probed_message);
  engine::Message& message = *std::exchange(process.probed, nullptr);
  process.probed_message = Oracle::none;
  watch(operation, process.engine->receive_matched(message, describe(operation)));
}

void Execution::cancel(Operation& operation) {
  if (operation.request == nullptr) return;
  operation.cancelling = true;
  processes_[index(operation.rank)].engine->cancel(
      static_cast<engine::ReceiveRequest&>(*operation.request));
}

void Execution::free_context(int rank, int context) {
  processes_[index(rank)].engine->drop_context(first_context + static_cast<std::uint64_t>(context));
  processes_[index(rank)].freed.push_back(first_context + static_cast<std::uint64_t>(context));
}

// ---------------------------------------------------------------- what comes of them

void Execution::watch(Operation& operation, engine::Request* request) {
  operation.request = request;
  const auto done = [](engine::Request& ended, void* argument) {
    auto& its = *static_cast<Operation*>(argument);
    its.run->completed(its, ended.status);
  };
  if (request->complete) return done(*request, &operation);
  request->argument = &operation;
  request->continuation = done;
}

// At once, within the engine: what the user may do from here on must do no harm.
void Execution::completed(Operation& operation, const engine::Status& status) {
  if (operation.request != nullptr)
    processes_[index(operation.rank)].engine->release(std::exchange(operation.request, nullptr));
  if (!operation.receive) {
    std::fill(operation.memory.begin(), operation.memory.end(), reused);
    if (status.error != MPI_SUCCESS) say("a send ended with an error");
    return;
  }
  if (status.cancelled) {
    if (!operation.cancelling)
      say(fmt::format("receive {} of rank {} is cancelled, nobody asked for it", operation.number,
                      operation.rank));
    else if (!oracle_.cancelled(operation.rank, operation.number))
      say(fmt::format("receive {} of rank {} is cancelled, but a message had matched it",
                      operation.number, operation.rank));
  }
  if (oracle_.receive(operation.rank, operation.number).message == Oracle::none)
    arrive_silently(status.source, operation.rank);
  check_message(operation, status);
}

void Execution::check_message(const Operation& operation, const engine::Status& status) {
  const std::string name = fmt::format("receive {} of rank {}", operation.number, operation.rank);
  const int number = oracle_.receive(operation.rank, operation.number).message;
  std::size_t fits = 0;
  if (!status.cancelled) {
    if (number == Oracle::none) return say(name + " is complete, but nothing matches it");
    const Oracle::Message& message = oracle_.message(number);
    fits = std::min(message.bytes, operation.step.bytes);
    if (status.source != message.from || status.tag != message.tag)
      say(name + " has a status that names another message");
    if (status.bytes != fits) say(name + " has a status with the wrong size");
    if (status.error != (message.bytes > fits ? MPI_ERR_TRUNCATE : MPI_SUCCESS))
      say(fmt::format("{} has a status with the error {}", name, status.error));
  }
  std::vector<unsigned char> expected(operation.memory.size(), untouched);
  for (std::size_t i = 0; i < fits; ++i)
    expected[place(i, operation.step.gaps)] = content(number, i);
  if (expected == operation.memory) return;
  say(status.cancelled ? name + " was cancelled, and written to"
                       : fmt::format("{} does not hold message {}", name, number));
}

// A message is matched when its first packet comes: the data, an offer, or the FIN of data that
// were written to an announced receive.
void Execution::sees(int at, int from, const Network::Bytes& packet) {
  namespace wire = engine::wire;
  const auto read = [&]<class Header>(Header header) {
    std::memcpy(&header, packet.data(), sizeof header);
    return header;
  };
  Envelope envelope;
  std::size_t bytes = 0;
  switch (static_cast<wire::Kind>(packet[0])) {
  case wire::Kind::eager:
  case wire::Kind::eager_synchronous: {
    const auto eager = read(wire::Eager{});
    envelope = {std::uint64_t{eager.context_high} << 32 | eager.context_low, eager.source,
                eager.tag};
    bytes = packet.size() - (eager.kind == wire::Kind::eager ? sizeof(wire::Eager)
                                                             : sizeof(wire::EagerSynchronous));
    break;
  }
  case wire::Kind::sender_ready: {
    const auto ready = read(wire::SenderReady{});
    envelope = {ready.context, ready.source, ready.tag};
    bytes = ready.bytes;
    break;
  }
  case wire::Kind::fin_to_receiver: {
    const auto fin = read(wire::Fin{});
    return sees_end(at, from, fin.bytes,
                    [&](const engine::ReceiveRequest& receive) { return receive.id == fin.id; });
  }
  default:
    return;
  }
  arrive_silently(from, at);
  const int number = oracle_.arrive(from, at);
  if (number == Oracle::none) return say("a message that nobody sent");
  const Oracle::Message& message = oracle_.message(number);
  if (envelope.source != message.from || envelope.tag != message.tag ||
      envelope.context != first_context + static_cast<std::uint64_t>(message.context) ||
      bytes != message.bytes)
    say(fmt::format("a message overtakes message {}", number));
}

void Execution::sees_notice(int at, int from, const Network::Transfer& put) {
  sees_end(at, from, put.bytes, [&](const engine::ReceiveRequest& receive) {
    return base::short_id(receive.id) == put.notice;
  });
}

// The data of a message are in the memory of an announced receive.
template <class Is>
void Execution::sees_end(int at, int from, std::uint64_t bytes, Is&& is) {
  for (const Operation* receive : processes_[index(at)].receives) {
    if (receive->request == nullptr ||
        !is(static_cast<const engine::ReceiveRequest&>(*receive->request)))
      continue;
    if (oracle_.receive(at, receive->number).message != Oracle::none) return; // was offered before
    arrive_silently(from, at);
    const int number = oracle_.arrive(from, at);
    if (number == Oracle::none) return say("the end of a message that nobody sent");
    const Oracle::Message& message = oracle_.message(number);
    if (message.receive != receive->number)
      say(fmt::format("message {} is written to receive {} of rank {}, it matches {}", number,
                      receive->number, at,
                      message.receive == Oracle::none ? "none" : std::to_string(message.receive)));
    if (message.bytes != bytes) say("the end of a message has the size of another");
    return;
  }
  say(fmt::format("the end of a message comes to rank {} for a receive that is gone", at));
}

// A message without a packet of its own came before what comes now.
void Execution::arrive_silently(int from, int at) {
  while (from >= 0 && !oracle_.on_the_way(from, at).empty() &&
         oracle_.message(oracle_.on_the_way(from, at).front()).silent)
    oracle_.arrive(from, at);
}

// ---------------------------------------------------------------- the end

void Execution::settle() {
  while (wrong().empty()) {
    const auto& events = possible();
    const auto event = std::find_if(events.begin(), events.end(),
                                    [](const Event& e) { return e.what != Event::What::call; });
    if (event == events.end()) return;
    happen(Event(*event));
  }
}

void Execution::finish() {
  network_.calm();
  check_rest();
  for (Process& process : processes_) {
    for (auto& operation : process.operations) {
      if (operation->receive) cancel(*operation);
    }
  }
  settle();
  drain();
  if (!wrong().empty()) return;
  for (Process& process : processes_) {
    for (auto& operation : process.operations) {
      if (operation->request != nullptr)
        return say(fmt::format("{} {} of rank {} hangs", operation->receive ? "receive" : "send",
                               operation->number, operation->rank));
      const unsigned char rest = reused; // a send's memory is the user's, who has used it
      if (!operation->receive && std::count(operation->memory.begin(), operation->memory.end(),
                                            rest) != std::ssize(operation->memory))
        return say("a send's memory was written to");
    }
    if (!process.engine->quiet()) return say("something is left in flight");
  }
  for (const Oracle::Message& message : oracle_.messages()) {
    if (message.receive == Oracle::none) return say("a message was never received");
  }
  if (network_.registered() != 0) return say("memory stays registered");
  check_channels();
}

// Nothing moves any more: what MPI's rules have matched must be complete, and sends that need no
// receiver too.
void Execution::check_rest() {
  const Conditions& conditions = program_.conditions;
  for (Process& process : processes_) {
    for (const auto& operation : process.operations) {
      if (operation->request == nullptr) continue;
      const std::string name =
          fmt::format("{} {} of rank {}", operation->receive ? "receive" : "send",
                      operation->number, operation->rank);
      if (operation->receive) {
        if (operation->cancelling) say(name + ", to be cancelled, hangs");
        if (oracle_.receive(operation->rank, operation->number).message != Oracle::none)
          say(name + " hangs although a message matched it");
        continue;
      }
      const Step& step = operation->step;
      const std::size_t bound =
          conditions.protocols == base::Protocols::customized ? hybrid_limit : eager_limit;
      const bool alone = step.what == Step::What::send && step.bytes <= bound && !conditions.demote;
      if (alone || oracle_.message(operation->number).receive != Oracle::none) say(name + " hangs");
    }
  }
}

// Receives what is unexpected, so that every message is looked at.
void Execution::drain() {
  for (bool found = true; found && wrong().empty();) {
    found = false;
    for (int rank = 0; rank < static_cast<int>(processes_.size()); ++rank) {
      Step step{.what = Step::What::match_probe, .peer = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
      const Process& process = processes_[index(rank)];
      if (process.probed == nullptr) {
        if (oracle_.unexpected(rank).empty()) continue;
        step.context = oracle_.message(oracle_.unexpected(rank).front()).context;
        if (!match_probe(rank, step)) return;
      }
      step.what = Step::What::receive_matched;
      step.bytes = 64;
      receive_matched(rank, step);
      found = true;
      settle();
    }
  }
}

// What both sides of a channel remember must agree when nothing is under way, or the next message
// would go wrong.
void Execution::check_channels() {
  const int ranks = static_cast<int>(processes_.size());
  for (int rank = 0; rank < ranks; ++rank) {
    processes_[index(rank)].engine->peers().for_each([&](const engine::Peer& peer) {
      peer.channels.for_each([&](const engine::Channel& channel) {
        const std::string name =
            fmt::format("channel of rank {} with {}, tag {}", rank, peer.rank, channel.tag);
        if (processes_[index(rank)].has_freed(channel.context))
          return say(name + " exists, its communicator is freed");
        if (channel.pending != 0 || channel.retracting || !channel.waiting.empty())
          say(name + " is not at rest");
        for (const engine::Announcement& announcement : channel.announcements) {
          if (announcement.ordinal >= channel.sent)
            say(name + " keeps an announcement that is gone");
        }
        const engine::Peer* back =
            processes_[peer.rank].engine->peers().find(static_cast<engine::Rank>(rank));
        if (back == nullptr || processes_[peer.rank].has_freed(channel.context)) return;
        back->channels.for_each([&](const engine::Channel& other) {
          if (other.context == channel.context && other.tag == channel.tag &&
              other.matched != channel.sent)
            say(fmt::format("{} has counted {} messages, {} were matched", name, channel.sent,
                            other.matched));
        });
      });
    });
  }
}

} // namespace macadam::prove
