// SPDX-License-Identifier: BSD-3-Clause
#include "gravel/prove/execution.h"

#include <algorithm>

namespace macadam::gravel::prove {
namespace {

using What = Step::What;

constexpr std::byte taken_back{0xEE}; // memory that its owner has changed when it was free to

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

// What a process has in its memory at first: no two bytes of the job are alike.
std::byte initial(int rank, std::size_t at) {
  return static_cast<std::byte>(rank * 85 + static_cast<int>(at % 80));
}

bool takes(What what) {
  return what == What::take_receive_buffer || what == What::take_send_buffer ||
         what == What::take_send_request;
}

EntryKind kind_taken(What what) {
  switch (what) {
  case What::take_receive_buffer:
    return EntryKind::receive_buffer;
  case What::take_send_buffer:
    return EntryKind::send_buffer;
  default:
    return EntryKind::send_request;
  }
}

const char* name_of(What what) {
  constexpr const char* names[] = {"promise",      "receive",   "send",         "request",
                                   "take_receive", "take_send", "take_request", "put",
                                   "get",          "fin",       "wait"};
  return names[static_cast<std::size_t>(what)];
}

} // namespace

Execution::Execution(const Program& program, Decider& decider)
    : program_(program),
      network_(static_cast<int>(program.ranks.size()), program.conditions, decider) {
  network_.on_notification = [this](int rank, int source, std::uint32_t notification,
                                    std::uint64_t address) {
    if (notification >= credit_notification) return;
    const Entry& entry = *reinterpret_cast<const Entry*>(address);
    if (entry.kind == EntryKind::fin) return network_.vacate(rank, address);
    Process& process = *processes_[index(rank)];
    std::uint32_t& arrived = process.arrived[{source, notification}];
    process.announced.push_back({notification, source, entry.kind, entry.tag, entry.bytes, address,
                                 std::max(entry.uses, 1u), arrived++, false});
    if (entry.uses != 0 ||
        arrived - oldest_in_ledger(process, source, notification) == program_.conditions.slots)
      keep_all(process, source, notification);
  };
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    processes_.push_back(std::make_unique<Process>(*this, static_cast<int>(rank)));
  const auto ledgers_of = [this](Rank peer) { return processes_[peer]->core->ledgers(0); };
  for (auto& process : processes_) {
    process->core = std::make_unique<Core>(engine::Networks(network_.transport(process->number)),
                                           *process, ledgers_of, program.conditions.slots);
    process->core->register_memory(process->memory.data(), memory_bytes);
    for (std::size_t at = 0; at < memory_bytes; ++at)
      process->memory[at] = initial(process->number, at);
  }
}

void Execution::say(const Process& process, const std::string& what) {
  network_.say(fmt::format("rank {}, step {}: {}", process.number, process.next, what));
}

// The entry that a wait must find: the oldest that fits, by arrival.
const Execution::Announced* Execution::oldest(const Process& process, const Step& step) {
  for (const Announced& announced : process.announced) {
    if (announced.kind == kind_taken(step.what) &&
        (step.peer == any_source || announced.source == step.peer) &&
        (step.tag == any_tag || announced.tag == step.tag))
      return &announced;
  }
  return nullptr;
}

bool Execution::may_call(const Process& process) const {
  const auto& steps = program_.ranks[index(process.number)];
  if (process.dead || process.next == steps.size()) return false;
  const Step& step = steps[process.next];
  if (step.what == What::wait) {
    const std::uint64_t request = process.awaited[index(step.of)].request;
    return request == 0 || process.core->request(request).complete;
  }
  if (!takes(step.what) || oldest(process, step) != nullptr) return true;
  return may_fail(process, step.peer);
}

const std::vector<Event>& Execution::possible() {
  events_.clear();
  for (const auto& process : processes_) {
    const int rank = process->number;
    if (process->dead) continue;
    if (may_call(*process)) events_.push_back({Event::What::call, rank});
    deliveries_.clear();
    network_.list_deliveries(rank, deliveries_);
    for (const Delivery& delivery : deliveries_)
      events_.push_back({Event::What::deliver, rank, delivery});
    if (network_.refused(rank) || process->core->holds_fragment())
      events_.push_back({Event::What::retry, rank});
    if (program_.conditions.mortal == rank && process->next < program_.ranks[index(rank)].size())
      events_.push_back({Event::What::die, rank});
  }
  return events_;
}

void Execution::happen(const Event& event) {
  Process& process = *processes_[index(event.at)];
  try {
    switch (event.what) {
    case Event::What::call:
      return call(process);
    case Event::What::deliver:
      network_.allow(event.delivery);
      process.core->progress();
      if (event.delivery.what == Delivery::What::gone) forget(process, event.delivery.peer);
      return;
    case Event::What::retry:
      process.core->progress();
      return;
    case Event::What::die:
      process.dead = died_ = true;
      return network_.kill(event.at);
    }
  } catch (const std::exception& error) {
    say(process, std::string("throws: ") + error.what());
  }
}

// Its position.
std::uint32_t Execution::oldest_in_ledger(const Process& process, int source,
                                          std::uint32_t notification) {
  for (const Announced& announced : process.announced) {
    if (!announced.kept && announced.source == source && announced.notification == notification)
      return announced.position;
  }
  return process.arrived.at({source, notification});
}

// A promise leaves its ledger when it comes, and so does what fills it, with all that was there
// before it.
void Execution::keep_all(Process& process, int source, std::uint32_t notification) {
  for (Announced& announced : process.announced) {
    if (announced.kept || announced.source != source || announced.notification != notification)
      continue;
    network_.vacate(process.number, announced.address);
    announced.kept = true;
  }
}

// What a peer that is gone has announced is gone too, but for its send requests.
void Execution::forget(Process& process, int peer) {
  const auto is_gone = [&](const Announced& announced) {
    return announced.source == peer && announced.kind != EntryKind::send_request;
  };
  for (const Announced& announced : process.announced) {
    if (is_gone(announced) && !announced.kept) network_.vacate(process.number, announced.address);
  }
  std::erase_if(process.announced, is_gone);
}

// Whether a call may say that the peer is gone; for any source: that all are.
bool Execution::may_fail(const Process& process, int peer) const {
  if (peer >= 0) return process.core->has_lost(static_cast<Rank>(peer));
  return std::all_of(processes_.begin(), processes_.end(), [&](const auto& other) {
    return other->number == process.number ||
           process.core->has_lost(static_cast<Rank>(other->number));
  });
}

// Nobody knows how far the data of a request that has failed have come.
void Execution::lose_sight(Process& process, const Step& made) {
  std::fill_n(process.known.begin() + static_cast<std::ptrdiff_t>(made.at), made.bytes, false);
  if (made.what != What::send_fin) return;
  for (const Step* const fragment : process.taken[index(made.of)].fragments)
    lose_sight(process, *fragment);
}

// A process whose call fails because the peer is gone goes on with the next step; what depends on
// it is left out.
void Execution::call(Process& process) {
  const Step& step = program_.ranks[index(process.number)][process.next];
  int peer = step.peer;
  if (step.of >= 0 && step.what == What::post_receive_buffer) peer = process.found[index(step.of)];
  if (step.what == What::put || step.what == What::get || step.what == What::send_fin)
    peer = process.taken[index(step.of)].peer;
  if (step.what == What::wait) peer = process.awaited[index(step.of)].peer;
  try {
    perform(process, step);
  } catch (const Error& error) {
    if (error.code != Code::peer || !may_fail(process, peer)) throw;
    if (step.what == What::wait) lose_sight(process, *process.awaited[index(step.of)].step);
  }
  ++process.next;
}

void Execution::perform(Process& process, const Step& step) {
  Core& core = *process.core;
  std::byte* const at = process.memory.data() + step.at;
  Awaited* const made = step.as >= 0 ? &process.awaited[index(step.as)] : nullptr;
  switch (step.what) {
  case What::promise_receive_buffers:
    return core.promise_receive_buffers(step.peer, step.bytes, step.tag, step.at);
  case What::post_receive_buffer: {
    const int producer = step.of >= 0 ? process.found[index(step.of)] : step.peer;
    *made = {0, &step, producer};
    if (producer < 0) return; // was not found
    std::fill_n(process.known.begin() + static_cast<std::ptrdiff_t>(step.at), step.bytes, false);
    made->request = core.post_receive_buffer(producer, at, step.bytes, step.tag);
    return note_posted(process, producer, step);
  }
  case What::post_send_buffer:
    *made = {0, &step, step.peer};
    made->request = core.post_send_buffer(step.peer, at, step.bytes, step.tag);
    return;
  case What::post_send_request:
    *made = {0, &step, step.peer};
    made->request = core.post_send_request(step.peer, step.bytes, step.tag);
    return;
  case What::take_receive_buffer:
  case What::take_send_buffer:
  case What::take_send_request:
    return take(process, step);
  case What::put:
  case What::get:
    return move(process, step);
  case What::send_fin: {
    Taken& taken = process.taken[index(step.of)];
    *made = {0, &step, taken.peer};
    if (taken.buffer == 0) return;
    made->request = core.send_fin(taken.buffer);
    made->over = made->request == 0;
    return;
  }
  case What::wait:
    return wait(process, step);
  }
}

// What was put before belongs there.
void Execution::note_posted(Process& process, int producer, const Step& step) {
  auto& posted = process.posted[{producer, step.tag}];
  for (const auto& [which, value] : process.early[{producer, step.tag}]) {
    if (which.first != posted.size()) continue;
    process.known[step.at + which.second] = true;
    process.expected[step.at + which.second] = value;
  }
  posted.push_back(step.at);
}

void Execution::take(Process& process, const Step& step) {
  Core& core = *process.core;
  if (step.what == What::take_send_request)
    process.found[index(step.as)] = -1;
  else
    process.taken[index(step.as)] = {0, step.peer, 0, 0, {}, {}};
  const Announced* const expected = oldest(process, step);
  if (step.what == What::take_send_request) {
    const auto found = core.take_send_request(step.peer, step.tag);
    if (!found || expected == nullptr || static_cast<int>(found->producer) != expected->source ||
        found->tag != expected->tag || found->bytes != expected->bytes)
      return say(process, "takes another send request than the oldest that fits");
    process.found[index(step.as)] = expected->source;
  } else {
    const auto found = step.what == What::take_receive_buffer
                           ? core.take_receive_buffer(step.peer, step.tag)
                           : core.take_send_buffer(step.peer, step.tag);
    if (!found || expected == nullptr) return say(process, "finds no buffer where there is one");
    const Buffer& buffer = core.buffer(*found);
    if (static_cast<int>(buffer.peer->rank) != expected->source || buffer.tag != expected->tag ||
        buffer.bytes != expected->bytes)
      return say(process, "takes another buffer than the oldest that fits");
    Taken& taken = process.taken[index(step.as)];
    taken = {*found, expected->source, buffer.memory.address, 0, {}, {}};
    if (step.what == What::take_receive_buffer)
      taken.ordinal = process.takes[{expected->source, buffer.tag}]++;
    taken.tag = buffer.tag;
    if (step.what == What::take_send_buffer) {
      const auto* const content = reinterpret_cast<const std::byte*>(buffer.memory.address);
      taken.content.assign(content, content + buffer.bytes);
    }
  }
  const std::ptrdiff_t which = expected - process.announced.data();
  if (--process.announced[static_cast<std::size_t>(which)].uses != 0) return;
  if (!expected->kept) network_.vacate(process.number, expected->address);
  process.announced.erase(process.announced.begin() + which);
}

void Execution::move(Process& process, const Step& step) {
  Taken& taken = process.taken[index(step.of)];
  if (step.as >= 0) process.awaited[index(step.as)] = {0, &step, taken.peer};
  if (taken.buffer == 0) return;
  std::byte* const at = process.memory.data() + step.at;
  const auto asked = step.as >= 0 ? Core::Asked::yes : Core::Asked::no;
  std::uint64_t request = 0;
  if (step.what == What::put) {
    request = process.core->put(taken.buffer, at, step.bytes, step.offset, asked);
    Process& target = *processes_[index(taken.peer)];
    const std::pair flow(process.number, taken.tag);
    const auto& posted = target.posted[flow];
    for (std::size_t i = 0; i < step.bytes; ++i) {
      const std::byte value = process.memory[step.at + i];
      if (taken.ordinal >= posted.size()) {
        target.early[flow][{taken.ordinal, step.offset + i}] = value;
        continue;
      }
      const std::size_t there = posted[taken.ordinal] + step.offset + i;
      target.known[there] = true;
      target.expected[there] = value;
    }
  } else {
    request = process.core->get(taken.buffer, at, step.bytes, step.offset, asked);
    std::fill_n(process.known.begin() + static_cast<std::ptrdiff_t>(step.at), step.bytes, true);
    std::copy_n(taken.content.begin() + static_cast<std::ptrdiff_t>(step.offset), step.bytes,
                process.expected.begin() + static_cast<std::ptrdiff_t>(step.at));
  }
  taken.fragments.push_back(&step);
  if (step.as >= 0) process.awaited[index(step.as)].request = request;
}

// The data of a request that is complete are there.
void Execution::check_received(Process& process, const Step& made) {
  for (std::size_t at = made.at; at < made.at + made.bytes; ++at) {
    if (!process.known[at]) return say(process, "a request is complete before its data were moved");
    if (process.memory[at] != process.expected[at])
      return say(process, fmt::format("byte {} is {:#x}, not {:#x}", at,
                                      static_cast<unsigned>(process.memory[at]),
                                      static_cast<unsigned>(process.expected[at])));
  }
}

// Memory is its owner's again, who changes it at once: nobody may read or write it any more.
void Execution::scribble(Process& process, std::size_t at, std::size_t bytes, std::byte with) {
  for (std::size_t i = at; i < at + bytes; ++i) {
    process.memory[i] = process.expected[i] = with;
    process.known[i] = true;
  }
}

void Execution::wait(Process& process, const Step& step) {
  Awaited& awaited = process.awaited[index(step.of)];
  if (awaited.request == 0 && !awaited.over) return;
  const Step& made = *awaited.step;
  if (!std::exchange(awaited.over, false))
    process.core->finish(process.core->request(std::exchange(awaited.request, 0)));
  switch (made.what) {
  case What::post_receive_buffer:
    check_received(process, made);
    return scribble(process, made.at, made.bytes, taken_back);
  case What::get:
    return check_received(process, made);
  case What::put:
  case What::post_send_buffer:
    return scribble(process, made.at, made.bytes, taken_back);
  case What::send_fin:
    for (const Step* const fragment : process.taken[index(made.of)].fragments) {
      if (fragment->what == What::get) check_received(process, *fragment);
      scribble(process, fragment->at, fragment->bytes, taken_back);
    }
    return;
  default:
    return;
  }
}

void Execution::finish() {
  for (const auto& process : processes_) {
    if (process->dead) continue;
    if (process->next != program_.ranks[index(process->number)].size())
      return say(*process, "waits for ever");
    for (std::size_t at = 0; at < memory_bytes; ++at) {
      if (process->known[at] && process->memory[at] != process->expected[at])
        return say(*process, fmt::format("byte {} was changed after its request", at));
    }
    const std::string left = process->core->unfinished();
    if (!left.empty() && !died_) return say(*process, "is left with " + left);
    if (!process->core->at_rest()) return say(*process, "is not at rest");
    if (!died_) process->core->unregister_memory(process->memory.data()); // throws if in use
  }
  if (!network_.quiet()) network_.say("something is under way for ever");
}

std::string Execution::show(const Event& event) const {
  const Process& process = *processes_[index(event.at)];
  switch (event.what) {
  case Event::What::call:
    return fmt::format("rank {}: step {}, {}", event.at, process.next,
                       name_of(program_.ranks[index(event.at)][process.next].what));
  case Event::What::deliver: {
    constexpr const char* names[] = {"is connected to", "is given a notification of",
                                     "learns that a transfer is over, towards",
                                     "learns that it is gone:"};
    return fmt::format("rank {}: {} rank {}", event.at,
                       names[static_cast<std::size_t>(event.delivery.what)], event.delivery.peer);
  }
  case Event::What::retry:
    return fmt::format("rank {}: tries again", event.at);
  case Event::What::die:
    return fmt::format("rank {} ends", event.at);
  }
  return {};
}

} // namespace macadam::gravel::prove
