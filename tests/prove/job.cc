// SPDX-License-Identifier: BSD-3-Clause
#include "prove/job.h"

#include "base/error.h"
#include "datatype/constructors.h"
#include "engine/wire.h"
#include "fmt/format.h"
#include "prove/call_library.h"
#include "prove/content.h"

#include <cstring>

namespace macadam::prove {
namespace {

using engine::Envelope;

} // namespace

Types::Types() : noncontiguous(datatype::vector(2, 2, 4, predefined[MPI_BYTE])) {
  noncontiguous->commit();
}

Job::Job(const Program& program, const Types& types, const base::Settings& settings)
    : program_(program), types_(types), settings_(settings), oracle_(program.ranks.size()),
      processes_(program.ranks.size()) {}

// Engines first: what they still hold lies in the operations' memory.
Job::~Job() {
  for (Process& process : processes_) {
    for (auto& operation : process.operations) {
      if (operation->request != nullptr) operation->request->continuation = nullptr;
    }
    process.engine.reset();
  }
}

void Job::start(int rank, engine::Networks networks) {
  Process& process = processes_[index(rank)];
  process.limits = networks.nearest().limits();
  for (const engine::Transport* const network : networks) {
    process.limits.eager = std::min(process.limits.eager, network->limits().eager);
    process.limits.hybrid = std::min(process.limits.hybrid, network->limits().hybrid);
  }
  process.engine = std::make_unique<engine::Engine>(
      std::move(networks), static_cast<engine::Rank>(processes_.size()), settings_);
}

// ---------------------------------------------------------------- the calls

bool Job::may_call(int rank) const {
  const Process& process = processes_[index(rank)];
  const auto& steps = program_.ranks[index(rank)];
  if (process.next >= steps.size()) return false;
  const Step& step = steps[process.next];
  if (step.what == Step::What::wait) {
    return index(step.number) < process.receives.size() &&
           process.receives[index(step.number)]->request == nullptr;
  }
  if (step.what == Step::What::end_round)
    return !process.partitioned[index(step.number)]->running();
  if (step.what == Step::What::free_context) {
    return std::none_of(process.operations.begin(), process.operations.end(), [&](const auto& o) {
      return o->step.context == step.context && o->request != nullptr;
    });
  }
  return true;
}

void Job::call(int rank) {
  const Step& step = program_.ranks[index(rank)][processes_[index(rank)].next++];
  switch (step.what) {
  case Step::What::send:
  case Step::What::synchronous_send:
  case Step::What::exchange_send:
  case Step::What::nonblocking_send:
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
  case Step::What::withdraw: {
    auto& sends = processes_[index(rank)].sends;
    if (index(step.number) < sends.size()) withdraw(*sends[index(step.number)]);
    return;
  }
  case Step::What::wait:
    return;
  case Step::What::free_context:
    return free_context(rank, step.context);
  case Step::What::partitioned_send:
  case Step::What::partitioned_receive:
    return make_partitioned(rank, step);
  case Step::What::start_round:
    return start_round(rank, step.number);
  case Step::What::mark_ready:
  case Step::What::mark_only:
    return mark_partition(rank, step);
  case Step::What::end_round:
    return;
  }
}

Job::Operation& Job::begin(int rank, const Step& step) {
  Process& process = processes_[index(rank)];
  Operation& operation = *process.operations.emplace_back(std::make_unique<Operation>());
  operation.job = this;
  operation.step = step;
  operation.rank = rank;
  operation.memory.assign(step.noncontiguous ? step.bytes / 4 * 6 : step.bytes, untouched);
  return operation;
}

engine::Data Job::describe(Operation& operation) const {
  const Step& step = operation.step;
  return {operation.memory.data(),
          static_cast<MPI_Count>(step.noncontiguous ? step.bytes / 4 : step.bytes),
          step.noncontiguous ? types_.noncontiguous.get() : &types_.predefined[MPI_BYTE]};
}

std::string Job::name_of(const Operation& operation) {
  return fmt::format("{} {} of rank {}", operation.receive ? "receive" : "send", operation.number,
                     operation.rank);
}

void Job::send(int rank, const Step& step) {
  Process& process = processes_[index(rank)];
  Operation& operation = begin(rank, step);
  operation.number = oracle_.sent(rank, step);
  process.sends.push_back(&operation);
  if (processes_[index(step.peer)].has_lost(rank) || is_dead(step.peer))
    oracle_.lose(rank, step.peer);
  for (std::size_t i = 0; i < step.bytes; ++i)
    operation.memory[place(i, step.noncontiguous)] = content(operation.number, i);
  using enum engine::SendMode;
  const auto mode = step.what == Step::What::synchronous_send   ? synchronous
                    : step.what == Step::What::exchange_send    ? exchange
                    : step.what == Step::What::nonblocking_send ? nonblocking
                                                                : blocking;
  Sending sending;
  process.sending = &sending;
  polled(rank);
  engine::SendRequest* request = nullptr;
  bool called = false;
  try {
    called = call_library([&] {
      request = process.engine->send(process.engine->peer(static_cast<engine::Rank>(step.peer)),
                                     {context_of(step), rank, step.tag}, describe(operation), mode);
    });
  } catch (const base::Error& error) {
    process.sending = nullptr;
    if (error.error_class != MPI_ERR_PROC_ABORTED) throw;
    oracle_.take_back(operation.number);
    return failed(operation);
  }
  process.sending = nullptr;
  if (!called) {
    reuse(operation.memory);
    oracle_.take_back(operation.number);
    return count_refused_call(rank);
  }
  // What goes by the last byte has no packet of its own. (Answers to messages that were offered
  // before go by it too, but only from inside a poll.)
  const engine::EngineCounters& counted = process.engine->counters();
  if (counted.receiver_early != sending.receiver_early && counted.last_byte != sending.last_byte)
    oracle_.silence(operation.number);
  if (request == nullptr) return completed(operation, {});
  watch(operation, request);
}

void Job::polled(int rank) {
  check_partitions(rank);
  const Process& process = processes_[index(rank)];
  if (process.sending == nullptr) return;
  process.sending->receiver_early = process.engine->counters().receiver_early;
  process.sending->last_byte = process.engine->counters().last_byte;
}

void Job::receive(int rank, const Step& step) {
  Process& process = processes_[index(rank)];
  Operation& operation = begin(rank, step);
  operation.receive = true;
  operation.number = static_cast<int>(process.receives.size());
  process.receives.push_back(&operation);
  oracle_.post(rank, step);
  engine::Request* request = nullptr;
  process.posting = operation.number;
  const bool called = call_library([&] {
    engine::Peer* const peer = step.peer == MPI_ANY_SOURCE
                                   ? nullptr
                                   : &process.engine->peer(static_cast<engine::Rank>(step.peer));
    request =
        process.engine->receive(peer, {context_of(step), step.peer, step.tag}, describe(operation));
  });
  process.posting = Oracle::none;
  if (called) return watch(operation, request);
  reuse(operation.memory);
  oracle_.take_back_receive(rank, operation.number, false);
  count_refused_call(rank);
}

// What a broken process is refused is refused for the same reason.
void Job::count_refused_call(int rank) {
  if (!has_broken_down(rank)) ++refused_calls_;
}

void Job::probe(int rank, const Step& step) {
  if (has_broken_down(rank)) return;
  const engine::Message* const found =
      processes_[index(rank)].engine->probe({context_of(step), step.peer, step.tag});
  const int expected = oracle_.oldest(rank, step);
  if (found != nullptr && expected == Oracle::none)
    return say(fmt::format("a probe of rank {} finds a message of rank {} that is not there", rank,
                           found->envelope.source));
  if (found == nullptr && expected != Oracle::none)
    return say(fmt::format("a probe of rank {} finds nothing, where {} bytes of rank {} have come",
                           rank, oracle_.message(expected).bytes, oracle_.message(expected).from));
  if (found == nullptr) return;
  const Oracle::Message& message = oracle_.message(expected);
  if (found->envelope.source != message.from || found->envelope.tag != message.tag ||
      found->bytes != message.bytes)
    say(fmt::format("a probe of rank {} finds another message than the oldest", rank));
}

bool Job::match_probe(int rank, const Step& step) {
  probe(rank, step); // finds the same
  Process& process = processes_[index(rank)];
  if (process.probed != nullptr) return false; // one at a time: the last is not received yet
  process.probed = process.engine->match_probe({context_of(step), step.peer, step.tag});
  process.probed_message = oracle_.oldest(rank, step);
  if (process.probed == nullptr && has_broken_down(rank)) return false;
  if (process.probed != nullptr && process.probed_message != Oracle::none)
    oracle_.take(rank, process.probed_message);
  return process.probed != nullptr;
}

void Job::receive_matched(int rank, const Step& step) {
  Process& process = processes_[index(rank)];
  if (process.probed == nullptr) return;
  Operation& operation = begin(rank, step);
  operation.receive = true;
  operation.number = static_cast<int>(process.receives.size());
  process.receives.push_back(&operation);
  oracle_.receive_taken(rank, process.probed_message);
  engine::Request* request = nullptr;
  const bool called = call_library(
      [&] { request = process.engine->receive_matched(*process.probed, describe(operation)); });
  if (!called) { // the message is still to be received
    reuse(operation.memory);
    oracle_.take_back_receive(rank, operation.number, true);
    return count_refused_call(rank);
  }
  process.probed = nullptr;
  process.probed_message = Oracle::none;
  watch(operation, request);
}

void Job::cancel(Operation& operation) {
  if (operation.request == nullptr) return;
  operation.cancelling = call_library([&] {
    operation.cancelling = true; // it may end within
    processes_[index(operation.rank)].engine->cancel(
        static_cast<engine::ReceiveRequest&>(*operation.request));
  });
  if (!operation.cancelling) count_refused_call(operation.rank);
}

void Job::check_cancels(int rank) {
  if (has_broken_down(rank)) return;
  for (const Operation* const operation : processes_[index(rank)].receives) {
    if (operation->request == nullptr || !operation->cancelling) continue;
    const Oracle::Receive& receive = oracle_.receive(rank, operation->number);
    const auto& on_the_way = oracle_.on_the_way(receive.peer, rank);
    if (receive.message == Oracle::none &&
        std::none_of(on_the_way.begin(), on_the_way.end(),
                     [&](int number) { return Oracle::fits(receive, oracle_.message(number)); }))
      say(name_of(*operation) + " is cancelled, and waits for another process");
  }
}

void Job::withdraw(Operation& operation) {
  if (operation.request == nullptr) return;
  operation.cancelling = true;
  auto& request = static_cast<engine::SendRequest&>(*operation.request);
  operation.send_id = request.id;
  const InLibrary library;
  processes_[index(operation.rank)].engine->cancel(request);
}

void Job::sees_withdraw(int at, int from, std::uint64_t send_id) {
  for (const Operation* send : processes_[index(from)].sends) {
    if (send->send_id == send_id && !is_leaving(*send))
      oracle_.withdraw(send->number, processes_[index(at)].posting);
  }
}

std::vector<std::size_t> Job::may_leave(int rank) const {
  std::vector<std::size_t> found;
  if (failure(rank) != nullptr) return found;
  const auto& sends = processes_[index(rank)].sends;
  for (std::size_t number = 0; number < sends.size(); ++number) {
    const engine::Request* const request = sends[number]->request;
    if (request != nullptr && engine::Engine::may_leave(*request)) found.push_back(number);
  }
  return found;
}

void Job::leave(int rank, std::size_t send) {
  Process& process = processes_[index(rank)];
  const InLibrary library;
  process.engine->leave(static_cast<engine::SendRequest&>(*process.sends[send]->request));
}

// By EAGER, since it was cancelled: too late, it is complete once its data have left.
bool Job::is_leaving(const Operation& operation) {
  const auto* const send = static_cast<const engine::SendRequest*>(operation.request);
  return send != nullptr && send->stage == engine::SendStage::leaving;
}

void Job::free_context(int rank, int context) {
  const std::uint64_t freed = first_context + static_cast<std::uint64_t>(context);
  const engine::RankMap all(0, 1, static_cast<int>(processes_.size()));
  processes_[index(rank)].engine->drop_contexts(freed, 1, all);
  processes_[index(rank)].freed.push_back(freed);
}

// ---------------------------------------------------------------- what comes of them

void Job::watch(Operation& operation, engine::Request* request) {
  operation.request = request;
  const auto done = [](engine::Request& ended, void* argument) noexcept {
    const InLibrary test(false);
    auto& its = *static_cast<Operation*>(argument);
    its.job->completed(its, ended.status);
  };
  if (request->complete) return done(*request, &operation);
  request->argument = &operation;
  request->continuation = done;
}

// At once, within the engine: what the user may do from here on must do no harm.
void Job::completed(Operation& operation, engine::Status status) {
  if (operation.request != nullptr)
    processes_[index(operation.rank)].engine->release(std::exchange(operation.request, nullptr));
  const bool broken = has_broken_down(operation.rank);
  if (status.error == MPI_ERR_PROC_ABORTED || (broken && status.error == MPI_ERR_NO_MEM))
    return failed(operation);
  if (program_.conditions.starved != 0 &&
      (status.error == MPI_ERR_NO_MEM || status.error == MPI_ERR_OTHER))
    return lost_for_want_of_memory(operation);
  if (!operation.receive) {
    operation.send_id = 0; // too late to be withdrawn
    reuse(operation.memory);
    if (status.error != MPI_SUCCESS) say("a send ended with an error");
    if (status.cancelled != oracle_.message(operation.number).withdrawn)
      say(name_of(operation) + (status.cancelled ? " is cancelled, and its message there"
                                                 : " is complete, and its message withdrawn"));
    return;
  }
  if (status.cancelled) {
    if (!operation.cancelling)
      say(name_of(operation) + " is cancelled, nobody asked for it");
    else if (!oracle_.ended(operation.rank, operation.number))
      say(name_of(operation) + " is cancelled, but a message had matched it");
  }
  if (oracle_.receive(operation.rank, operation.number).message == Oracle::none)
    arrive_silently(status.source, operation.rank);
  check_message(operation, status);
  reuse(operation.memory);
}

// Its peer has failed: the process may be told a little later, so that is looked at in the end.
void Job::failed(Operation& operation) {
  int peer = operation.step.peer;
  if (operation.receive) {
    const int number = oracle_.receive(operation.rank, operation.number).message;
    if (number != Oracle::none)
      peer = oracle_.message(number).from;
    else if (peer == MPI_ANY_SOURCE && has_broken_down(operation.rank))
      peer = operation.rank;
    else if (peer == MPI_ANY_SOURCE)
      return say(name_of(operation) + " has failed, and could still get any message");
    oracle_.ended(operation.rank, operation.number);
  }
  reuse(operation.memory);
  broken_off_.emplace_back(operation.rank, peer);
}

// Both sides of its message may say so.
void Job::lost_for_want_of_memory(Operation& operation) {
  int number = operation.number;
  if (operation.receive) {
    number = oracle_.receive(operation.rank, number).message;
    if (number == Oracle::none)
      return say(name_of(operation) + " had no memory, and no message matched it");
  }
  reuse(operation.memory);
  harmed_.insert(number);
}

void Job::check_message(const Operation& operation, const engine::Status& status) {
  const std::string name = name_of(operation);
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
    expected[place(i, operation.step.noncontiguous)] = content(number, i);
  if (expected == operation.memory) return;
  say(status.cancelled ? name + " was cancelled, and written to"
                       : fmt::format("{} does not hold message {}", name, number));
}

// A message is matched when its first packet comes: the data, an offer, or the FIN of data that
// were written to an announced receive.
void Job::sees(int at, int from, const std::byte* packet, std::size_t all) {
  if (processes_[index(at)].has_lost(from))
    say(fmt::format("a packet of rank {} comes to rank {}, where it has failed", from, at));
  namespace wire = engine::wire;
  const auto read = [&]<class Header>(Header header) {
    std::memcpy(&header, packet, sizeof header);
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
    bytes = all - (eager.kind == wire::Kind::eager ? sizeof(wire::Eager)
                                                   : sizeof(wire::EagerSynchronous));
    break;
  }
  case wire::Kind::bundle:
    for (std::size_t place = sizeof(wire::Bundle); place < all;) {
      wire::BundledBytes length;
      std::memcpy(&length, packet + place, sizeof length);
      sees(at, from, packet + place + sizeof length, length);
      place += sizeof length + length;
    }
    return;
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
  case wire::Kind::withdraw:
    return sees_withdraw(at, from, read(wire::Withdraw{}).send_id);
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

void Job::sees_notification(int at, int from, std::uint32_t notification, std::size_t bytes) {
  if ((notification & engine::PartitionedTable::notification_bit) != 0) return;
  sees_end(at, from, bytes, [&](const engine::ReceiveRequest& receive) {
    return base::short_id(receive.id) == notification;
  });
}

// The data of a message are in the memory of an announced receive.
template <class Is>
void Job::sees_end(int at, int from, std::uint64_t bytes, Is&& is) {
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
void Job::arrive_silently(int from, int at) {
  while (from >= 0 && !oracle_.on_the_way(from, at).empty() &&
         oracle_.message(oracle_.on_the_way(from, at).front()).silent)
    oracle_.arrive(from, at);
}

// What was on the way will not come.
void Job::loses(int at, int from) {
  processes_[index(at)].lost.push_back(from);
  oracle_.lose(from, at);
}

std::unique_ptr<engine::Engine> Job::die(int rank) {
  Process& process = processes_[index(rank)];
  for (auto& operation : process.operations) {
    if (operation->request == nullptr) continue;
    if (!operation->receive && is_leaving(*operation)) operation->send_id = 0;
    std::exchange(operation->request, nullptr)->continuation = nullptr;
  }
  for (auto& operation : process.partitioned) {
    operation->send = nullptr;
    operation->receive = nullptr;
  }
  process.dead = true;
  process.probed = nullptr;
  for (int other = 0; other < static_cast<int>(processes_.size()); ++other)
    oracle_.lose(other, rank);
  return std::move(process.engine);
}

void Job::breaks_down(int rank) {
  if (processes_[index(rank)].has_lost(rank)) return; // told of another network of its
  ++breakdowns_;
  for (int other = 0; other < static_cast<int>(processes_.size()); ++other)
    loses(rank, other);
}

} // namespace macadam::prove
