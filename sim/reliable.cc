// SPDX-License-Identifier: BSD-3-Clause
#include "base/error.h"
#include "sim/queue_pair.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace macadam::sim {

using net::rdma::Access;
using net::rdma::Completion;
using net::rdma::Operation;
using net::rdma::SendWork;
using net::rdma::WorkStatus;

namespace {

constexpr std::uint64_t request_bytes = 30; // headers of a message, or a whole read request
constexpr std::uint8_t for_ever = 7;        // of Retries::receiver_not_ready

// InfiniBand's codes of the receiver-not-ready timer, in units of 10 us.
constexpr std::array<int, 32> not_ready_timer = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

} // namespace

template <void (ReliableQueuePair::*Handler)(Work&)>
void ReliableQueuePair::later(Time when, Work& work) {
  scheduler().at(when, [&fabric = device_.fabric(), lid = device_.lid(), number = number_,
                        epoch = epoch_, &work] {
    SimulatedDevice* device = fabric.find(lid);
    SimulatedQueuePair* found = device == nullptr ? nullptr : device->find_queue_pair(number);
    if (found == nullptr) return;
    auto& self = *static_cast<ReliableQueuePair*>(found);
    // An answer counts whenever it comes, and so does what has arrived; what was under way before a
    // resend does not.
    constexpr bool is_answer = Handler == &ReliableQueuePair::finish ||
                               Handler == &ReliableQueuePair::finish_read ||
                               Handler == &ReliableQueuePair::place_late;
    if (self.state_ == State::failed || (!is_answer && epoch != self.epoch_)) return;
    (self.*Handler)(work);
  });
}

ReliableQueuePair::ReliableQueuePair(SimulatedDevice& device, std::uint32_t number,
                                     const net::rdma::QueuePairOptions& options)
    : SimulatedQueuePair(device, number, options) {
  received_.serve_connections();
}

ReliableQueuePair::~ReliableQueuePair() {
  if (state_ == State::accepting || state_ == State::established)
    device_.fabric().count_connection(device_.lid(), -1);
  while (oldest_ != nullptr)
    device_.fabric().works.free(std::exchange(oldest_, oldest_->next));
}

void ReliableQueuePair::accept(const net::rdma::QueuePairAddress& remote,
                               const net::rdma::Retries& retries) {
  if (state_ != State::made)
    base::fail(MPI_ERR_INTERN, "{}: queue pair {} is connected already", device_.name(), number_);
  device_.spend(from_ns(device_.fabric().model().queue_pair_connect_ns));
  remote_lid_ = remote.port.lid;
  remote_number_ = remote.number;
  retries_ = retries;
  state_ = State::accepting;
  device_.count_connection();
  device_.fabric().count_connection(device_.lid(), 1);
}

void ReliableQueuePair::establish() {
  if (state_ != State::accepting)
    base::fail(MPI_ERR_INTERN, "{}: queue pair {} is established before it accepts", device_.name(),
               number_);
  device_.spend(from_ns(device_.fabric().model().queue_pair_connect_ns));
  retries_left_ = retries_.count;
  not_ready_left_ = retries_.receiver_not_ready;
  state_ = State::established;
}

// ------------------------------------------------------------------ the sending side

std::size_t ReliableQueuePair::post(std::span<const SendWork> work) {
  if (state_ != State::established && state_ != State::failed)
    base::fail(MPI_ERR_INTERN,
               "{}: a request was posted to queue pair {}, which is not established",
               device_.name(), number_);
  const Model& model = device_.fabric().model();
  std::size_t taken = 0;
  for (; taken < work.size() && places_ > 0; ++taken) {
    check(work[taken], device_.limits().message);
    --places_;
    Work* added = add(work[taken]);
    const std::size_t gathered = work[taken].inlined ? 0 : work[taken].segments.size();
    device_.spend(
        from_ns(model.post_ns +
                model.segment_ns * static_cast<double>(std::max<std::size_t>(gathered, 1) - 1)));
    added->ready = device_.time();
    if (state_ == State::failed) {
      added->state = Work::State::done;
      added->status = WorkStatus::flushed;
    } else if (next_ == added) {
      ring(added->ready);
    }
  }
  if (state_ == State::failed) retire();
  return taken;
}

Work* ReliableQueuePair::add(const SendWork& from) {
  Work* work = device_.fabric().works.make();
  work->id = from.id;
  work->remote_address = from.remote_address;
  work->compare_or_add = from.compare_or_add;
  work->swap = from.swap;
  work->remote_key = from.remote_key;
  work->immediate = from.immediate;
  work->operation = from.operation;
  work->signalled = from.signalled;
  take_data(*work, from);
  (newest_ != nullptr ? newest_->next : oldest_) = work;
  newest_ = work;
  if (next_ == nullptr) next_ = work;
  return work;
}

// One ring at a time: requests become ready in order, so the first finds what comes after it.
void ReliableQueuePair::ring(Time when) {
  if (std::exchange(rung_, true)) return;
  scheduler().at(when, [&fabric = device_.fabric(), lid = device_.lid(), number = number_] {
    SimulatedDevice* device = fabric.find(lid);
    SimulatedQueuePair* found = device == nullptr ? nullptr : device->find_queue_pair(number);
    if (found == nullptr) return;
    auto& self = *static_cast<ReliableQueuePair*>(found);
    self.rung_ = false;
    self.pump();
  });
}

bool ReliableQueuePair::may_start(const Work& work) const {
  return !work.is_read() || reads_ < device_.limits().outstanding_reads;
}

void ReliableQueuePair::pump() {
  while (state_ == State::established && !stalled_ && next_ != nullptr && may_start(*next_)) {
    if (next_->ready > scheduler().now()) {
      ring(next_->ready);
      return;
    }
    Work& work = *std::exchange(next_, next_->next);
    transmit(work);
  }
}

void ReliableQueuePair::transmit(Work& work) {
  Fabric& fabric = device_.fabric();
  work.state = Work::State::under_way;
  if (work.is_read()) ++reads_;
  const std::uint64_t bytes = request_bytes + (work.is_read() ? 0 : work.bytes);
  const Time arrived = fabric.transmit(device_.lid(), remote_lid_, bytes).arrived;
  const Time before = last_arrival_;
  last_arrival_ = std::max(arrived, last_arrival_ + 1); // in order, whatever the jitter
  ++fabric.counters.messages;
  fabric.counters.bytes += work.bytes;
  if (fabric.faults().split_writes && work.operation == Operation::write && work.bytes > 1) {
    const auto between = static_cast<std::uint64_t>(std::min<Time>(
        last_arrival_ - before - 1, transfer_time(bytes, fabric.model().bandwidth_mb_per_s)));
    if (between > 0)
      later<&ReliableQueuePair::place_first_part>(
          last_arrival_ - static_cast<Time>(fabric.random().below(between)), work);
  }
  later<&ReliableQueuePair::arrive>(last_arrival_, work);
}

// In order, request by request: a completion tells of all before it.
void ReliableQueuePair::retire() {
  while (oldest_ != nullptr && oldest_->state == Work::State::done) {
    Work* work = oldest_;
    oldest_ = work->next;
    if (oldest_ == nullptr) newest_ = nullptr;
    ++unsignalled_;
    if (work->signalled || work->status != WorkStatus::ok)
      push_send(*work, work->status, std::exchange(unsignalled_, 0));
    device_.fabric().works.free(work);
  }
}

void ReliableQueuePair::finish(Work& work) {
  work.state = Work::State::done;
  if (work.is_read()) --reads_;
  retries_left_ = retries_.count;
  not_ready_left_ = retries_.receiver_not_ready;
  retire();
  pump();
}

// Stops sending; after `delay` goes on from `work`, whatever was sent after it.
void ReliableQueuePair::try_again(Work& work, Time delay) {
  ++epoch_;
  stalled_ = true;
  next_ = &work;
  for (Work* each = &work; each != nullptr && each->state == Work::State::under_way;
       each = each->next) {
    each->state = Work::State::queued;
    if (each->is_read()) --reads_;
  }
  scheduler().at(scheduler().now() + delay, [&fabric = device_.fabric(), lid = device_.lid(),
                                             number = number_] {
    SimulatedDevice* device = fabric.find(lid);
    SimulatedQueuePair* found = device == nullptr ? nullptr : device->find_queue_pair(number);
    if (found == nullptr) return;
    auto& self = *static_cast<ReliableQueuePair*>(found);
    self.stalled_ = false;
    self.pump();
  });
}

void ReliableQueuePair::on_no_answer(Work& work) {
  if (retries_left_ == 0) {
    break_with(WorkStatus::no_answer, &work);
    return;
  }
  --retries_left_;
  ++device_.fabric().counters.resends;
  try_again(work, 0);
}

void ReliableQueuePair::on_no_receiver(Work& work) {
  Fabric& fabric = device_.fabric();
  ++fabric.counters.receiver_not_ready;
  if (not_ready_left_ == 0) {
    break_with(WorkStatus::no_receiver, &work);
    return;
  }
  if (not_ready_left_ != for_ever) --not_ready_left_;
  const std::size_t code = retries_.receiver_not_ready_timer & 31u;
  try_again(work, fabric.latency() + not_ready_timer[code] * 10 * microsecond);
}

// The connection is over: `failed` completes with `status`, everything else flushed.
void ReliableQueuePair::break_with(WorkStatus status, Work* failed) {
  if (state_ == State::failed) return;
  if (state_ != State::made) device_.fabric().count_connection(device_.lid(), -1);
  state_ = State::failed;
  ++epoch_;
  for (Work* work = oldest_; work != nullptr; work = work->next) {
    if (work->state == Work::State::done) continue;
    work->state = Work::State::done;
    work->status = work == failed ? status : WorkStatus::flushed;
  }
  next_ = nullptr;
  retire();
  while (const auto receive = shared_ == nullptr ? receives_->pop() : std::nullopt) {
    Completion completion;
    completion.id = receive->id;
    completion.queue_pair = number_;
    completion.status = WorkStatus::flushed;
    push_receive(completion);
  }
}

// ------------------------------------------------------------------ the receiving side

// The queue pair at the other end, if it takes what this one sends.
ReliableQueuePair* ReliableQueuePair::responder() const {
  SimulatedDevice* device = device_.fabric().find(remote_lid_);
  if (device == nullptr) return nullptr;
  auto* other = dynamic_cast<ReliableQueuePair*>(device->find_queue_pair(remote_number_));
  if (other == nullptr || other->state_ == State::made || other->state_ == State::failed)
    return nullptr;
  const bool ours = other->remote_number_ == number_ && other->remote_lid_ == device_.lid();
  return ours ? other : nullptr;
}

void ReliableQueuePair::place_first_part(Work& work) {
  if (work.seen_from != work.seen_to) return; // sent again
  ReliableQueuePair* other = responder();
  if (other == nullptr || !other->device_.regions.allows(work.remote_key, work.remote_address,
                                                         work.bytes, Access::remote))
    return;
  std::vector<std::byte> data(work.bytes);
  if (!gather(work, data.data())) return;
  // All but the last byte, or on a device that promises no order, the last part first. Adapters
  // write whole lines of memory: what lies in one small block is seen at once.
  constexpr std::uint64_t block = 16;
  const std::uint64_t cut =
      (work.remote_address + 1 + device_.fabric().random().below(work.bytes - 1)) / block * block;
  if (cut <= work.remote_address) return;
  const auto first = static_cast<std::uint32_t>(cut - work.remote_address);
  work.seen_from = device_.limits().orders_bytes ? 0 : first;
  work.seen_to = device_.limits().orders_bytes ? first : work.bytes;
  std::memcpy(reinterpret_cast<std::byte*>(work.remote_address) + work.seen_from,
              data.data() + work.seen_from, work.seen_to - work.seen_from);
  other->device_.on_activity();
}

void ReliableQueuePair::arrive(Work& work) {
  Fabric& fabric = device_.fabric();
  ReliableQueuePair* other = responder();
  if (fabric.random().chance(fabric.faults().queue_pair_break)) {
    ++fabric.counters.broken;
    // The message is lost, or only its acknowledgement: the sender cannot tell.
    if (other != nullptr && fabric.random().chance(0.5)) execute(work, *other);
    break_with(WorkStatus::no_answer, &work);
    return;
  }
  if (other == nullptr) {
    // What was sent after it is dropped too, and sent again together with it.
    ++epoch_;
    stalled_ = true;
    const Time timeout = from_ns(4096.0 * static_cast<double>(1u << (retries_.timeout & 31u)));
    later<&ReliableQueuePair::on_no_answer>(scheduler().now() + timeout, work);
    return;
  }
  scheduler().trace(std::uint64_t{device_.lid()} << 40 ^ std::uint64_t{number_} << 20 ^
                    std::uint64_t{work.bytes} << 4 ^ static_cast<std::uint64_t>(work.operation));
  switch (execute(work, *other)) {
  case Outcome::no_receiver:
    on_no_receiver(work);
    break;
  case Outcome::refused: // both ends break (InfiniBand: a remote access or operation error)
    ++fabric.counters.refused;
    other->break_with(WorkStatus::flushed, nullptr);
    break_with(WorkStatus::refused, &work);
    break;
  case Outcome::failed:
    break_with(WorkStatus::failed, &work);
    break;
  case Outcome::done:
    if (work.is_read())
      answer_read(work, *other);
    else
      later<&ReliableQueuePair::finish>(scheduler().now() + fabric.latency(), work);
    break;
  }
}

ReliableQueuePair::Outcome ReliableQueuePair::execute(Work& work, ReliableQueuePair& other) {
  const net::rdma::DeviceLimits& limits = device_.limits();
  const bool passes = work.is_read()                       ? false
                      : work.operation == Operation::write ? !limits.orders_writes
                                                           : !limits.orders_arrivals;
  if (!passes && !place_before(work, other)) return Outcome::refused;
  switch (work.operation) {
  case Operation::send:
  case Operation::send_immediate:
    return receive(work, other);
  case Operation::write:
    if (limits.orders_writes || work.bytes == 0) return write(work, other);
    if (!other.device_.regions.allows(work.remote_key, work.remote_address, work.bytes,
                                      Access::remote))
      return Outcome::refused;
    place_later(work);
    return Outcome::done;
  case Operation::write_immediate: {
    // Without a receive the data are placed nevertheless, and once more when it is sent again.
    const auto outcome = write(work, other);
    return outcome == Outcome::done ? receive(work, other) : outcome;
  }
  default:
    break;
  }
  const RegionTable& regions = other.device_.regions;
  if (!regions.allows(work.remote_key, work.remote_address, work.bytes, Access::remote))
    return Outcome::refused;
  if (!work.is_atomic()) return Outcome::done;
  if (work.remote_address % 8 != 0) return Outcome::refused;
  auto* memory = reinterpret_cast<void*>(work.remote_address);
  std::memcpy(&work.old_value, memory, 8);
  const std::uint64_t new_value = work.operation == Operation::fetch_and_add
                                      ? work.old_value + work.compare_or_add
                                  : work.old_value == work.compare_or_add ? work.swap
                                                                          : work.old_value;
  std::memcpy(memory, &new_value, 8);
  other.device_.on_activity();
  return Outcome::done;
}

ReliableQueuePair::Outcome ReliableQueuePair::write(Work& work, ReliableQueuePair& other) {
  if (work.bytes == 0) return Outcome::done;
  if (!other.device_.regions.allows(work.remote_key, work.remote_address, work.bytes,
                                    Access::remote))
    return Outcome::refused;
  auto* const memory = reinterpret_cast<std::byte*>(work.remote_address);
  if (work.seen_from == work.seen_to) {
    if (!gather(work, memory)) return Outcome::failed;
  } else { // the rest: what was seen may have been changed since
    std::vector<std::byte> data(work.bytes);
    if (!gather(work, data.data())) return Outcome::failed;
    std::copy_n(data.begin(), work.seen_from, memory);
    if (work.seen_to < work.bytes)
      place(memory + work.seen_to, data.data() + work.seen_to, work.bytes - work.seen_to);
  }
  other.device_.on_activity();
  return Outcome::done;
}

// On a device that orders no writes: at some time before it is acknowledged.
void ReliableQueuePair::place_later(Work& work) {
  work.unplaced = true;
  const auto least = static_cast<std::uint64_t>(from_ns(device_.fabric().model().latency_ns));
  const auto delay = least == 0 ? 0 : static_cast<Time>(device_.fabric().random().below(least));
  later<&ReliableQueuePair::place_late>(scheduler().now() + delay, work);
}

void ReliableQueuePair::place_late(Work& work) {
  ReliableQueuePair* other = responder();
  if (!work.unplaced || other == nullptr) return;
  work.unplaced = false;
  if (write(work, *other) == Outcome::done) return;
  ++device_.fabric().counters.refused;
  other->break_with(WorkStatus::flushed, nullptr);
  break_with(WorkStatus::refused, &work);
}

// What was written before a request that must not pass it.
bool ReliableQueuePair::place_before(const Work& work, ReliableQueuePair& other) {
  for (Work* each = oldest_; each != &work; each = each->next) {
    if (std::exchange(each->unplaced, false) && write(*each, other) != Outcome::done) return false;
  }
  return true;
}

ReliableQueuePair::Outcome ReliableQueuePair::receive(Work& work, ReliableQueuePair& other) {
  const auto receive = other.pop_receive();
  if (!receive) return Outcome::no_receiver;
  if (work.is_send() && work.bytes > 0) {
    if (work.bytes > receive->segment.bytes) return Outcome::refused;
    if (!other.device_.allows(receive->segment))
      base::fail(MPI_ERR_INTERN,
                 "{}: a message came to a receive whose memory is registered no more",
                 other.device_.name());
    if (!gather(work, static_cast<std::byte*>(receive->segment.memory))) return Outcome::failed;
  }
  Completion completion;
  completion.id = receive->id;
  completion.queue_pair = other.number_;
  completion.bytes = work.bytes;
  completion.immediate = work.immediate;
  other.push_receive(completion);
  return Outcome::done;
}

// The data of a read come back over the other side's link. They are taken when they arrive: until
// then the protocol must leave them alone.
void ReliableQueuePair::answer_read(Work& work, ReliableQueuePair& other) {
  const Time arrived = device_.fabric()
                           .transmit(other.device_.lid(), device_.lid(), request_bytes + work.bytes)
                           .arrived;
  later<&ReliableQueuePair::finish_read>(arrived, work);
}

void ReliableQueuePair::finish_read(Work& work) {
  bool placed;
  if (work.is_atomic()) {
    placed = scatter(work, reinterpret_cast<const std::byte*>(&work.old_value));
  } else {
    // A queue pair that has failed meanwhile sends nothing more, and its owner may use the memory.
    const ReliableQueuePair* const other = responder();
    if (other == nullptr) return break_with(WorkStatus::no_answer, &work);
    if (!other->device_.regions.allows(work.remote_key, work.remote_address, work.bytes,
                                       Access::remote)) {
      ++device_.fabric().counters.refused;
      break_with(WorkStatus::refused, &work);
      return;
    }
    placed = scatter(work, reinterpret_cast<const std::byte*>(work.remote_address));
  }
  if (placed)
    finish(work);
  else
    break_with(WorkStatus::failed, &work);
}

} // namespace macadam::sim
