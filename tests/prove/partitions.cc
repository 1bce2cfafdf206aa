// SPDX-License-Identifier: BSD-3-Clause
// The calls of partitioned communication in a program, and what must be true of them.
#include "prove/partitions.h"

#include "fmt/format.h"
#include "prove/call_library.h"
#include "prove/content.h"
#include "prove/job.h"

#include <algorithm>
#include <cstring>

namespace macadam::prove {
namespace {

std::string title(const PartitionedOperation& operation) {
  return fmt::format("the partitioned {} {} of rank {}", operation.sends() ? "send" : "receive",
                     operation.order, operation.rank);
}

// What a round brings, told from all others.
int message_of(const PartitionedOperation& operation, int round) {
  const int from = operation.sends() ? operation.rank : operation.step.peer;
  return (from * 7 + operation.step.tag * 3 + operation.order) * 8 + round + 100;
}

unsigned char& byte_of(PartitionedOperation& operation, std::size_t i) {
  return operation.memory[place(i, operation.step.noncontiguous)];
}

} // namespace

void Job::make_partitioned(int rank, const Step& step) {
  Process& process = processes_[index(rank)];
  auto made = std::make_unique<PartitionedOperation>();
  made->job = this;
  made->step = step;
  made->rank = rank;
  made->memory.assign(step.noncontiguous ? made->bytes() / 4 * 6 : made->bytes(), untouched);
  for (const auto& other : process.partitioned) {
    if (other->made() && other->step.what == step.what && other->step.peer == step.peer &&
        other->step.tag == step.tag)
      ++made->order;
  }
  const engine::Partitions data{
      reinterpret_cast<std::byte*>(made->memory.data()),
      static_cast<std::uint32_t>(step.partitions),
      static_cast<MPI_Count>(step.noncontiguous ? step.bytes / 4 : step.bytes),
      step.noncontiguous ? types_.noncontiguous.get() : &types_.predefined[MPI_BYTE]};
  const auto ended = [](void* argument, const engine::Status& status) noexcept {
    const InLibrary test(false);
    auto& its = *static_cast<PartitionedOperation*>(argument);
    its.job->ended_round(its, status);
  };
  const std::uint64_t context = context_of(step);
  const bool called = call_library([&] {
    engine::Peer& peer = process.engine->peer(static_cast<engine::Rank>(step.peer));
    engine::PartitionedTable& table = process.engine->partitioned();
    if (made->sends())
      made->send = &table.make_send(peer, {context, rank, step.tag}, data, ended, made.get());
    else
      made->receive =
          &table.make_receive(peer, {context, step.peer, step.tag}, data, ended, made.get());
  });
  process.partitioned.push_back(std::move(made)); // its number is taken in any case
  if (!called) count_refused_call(rank);
}

void Job::start_round(int rank, int number) {
  Process& process = processes_[index(rank)];
  PartitionedOperation& operation = *process.partitioned[index(number)];
  if (!operation.made()) return;
  check_inactive(operation);
  ++operation.started;
  operation.marked = 0;
  operation.failed = false;
  if (!operation.sends()) std::fill(operation.memory.begin(), operation.memory.end(), untouched);
  const InLibrary library;
  if (operation.sends())
    process.engine->partitioned().start(*operation.send);
  else
    process.engine->partitioned().start(*operation.receive);
}

// The user fills the partition, then says so: and has it sent, or leaves that to whoever makes
// progress.
void Job::mark_partition(int rank, const Step& step) {
  Process& process = processes_[index(rank)];
  PartitionedOperation& operation = *process.partitioned[index(step.number)];
  if (!operation.made()) return;
  const std::size_t bytes = operation.step.bytes;
  for (std::size_t i = step.partition * bytes; i < (step.partition + 1) * bytes; ++i)
    byte_of(operation, i) = content(message_of(operation, operation.started - 1), i);
  operation.marked |= 1U << step.partition;
  if (operation.marked == (1U << operation.step.partitions) - 1) ++operation.filled;
  if (!operation.send->mark(static_cast<std::uint32_t>(step.partition)))
    say(title(operation) + " has a partition marked that is not");
  engine::PartitionedTable& table = process.engine->partitioned();
  const InLibrary library;
  if (step.what == Step::What::mark_ready)
    table.post_marked(operation.send->id, static_cast<std::uint32_t>(step.partition),
                      static_cast<std::uint32_t>(step.partition));
  else
    table.leave();
}

void Job::ended_round(PartitionedOperation& operation, const engine::Status& status) {
  ++operation.ended;
  const bool lacks = program_.conditions.starved != 0 &&
                     (status.error == MPI_ERR_NO_MEM || status.error == MPI_ERR_OTHER);
  if (status.error == MPI_ERR_PROC_ABORTED || lacks) {
    operation.failed = operation.harmed = true;
    reuse(operation.memory);
    if (lacks && !has_broken_down(operation.rank))
      harmed_.insert(message_of(operation, operation.ended - 1));
    else
      broken_off_.emplace_back(operation.rank, operation.step.peer);
    return;
  }
  if (status.error != MPI_SUCCESS)
    return say(fmt::format("{} has ended with the error {}", title(operation), status.error));
  if (operation.sends()) return reuse(operation.memory);
  if (status.bytes != operation.bytes()) say(title(operation) + " has a status with a wrong size");
  check_inactive(operation);
}

// Outside of a round the memory holds what the last one brought, or the user's own.
void Job::check_inactive(PartitionedOperation& operation) {
  // The user may have filled partitions of a send that had failed.
  if (operation.ended == 0 || (operation.failed && operation.sends())) return;
  const bool is_users = operation.sends() || operation.failed;
  for (std::size_t i = 0; i < operation.bytes(); ++i) {
    const unsigned char expected =
        is_users ? reused : content(message_of(operation, operation.ended - 1), i);
    if (byte_of(operation, i) != expected)
      return say(fmt::format("{} does not hold byte {} of round {}", title(operation), i,
                             operation.ended - 1));
  }
}

// In a round: partitions that are said to be there are, and nothing else was ever written.
void Job::check_partitions(int rank) {
  for (const auto& operation : processes_[index(rank)].partitioned) {
    if (operation->receive == nullptr || !operation->running()) continue;
    if (operation->receive->error != MPI_SUCCESS) continue; // something is lost
    for (std::size_t i = 0; i < operation->bytes(); ++i) {
      const unsigned char found = byte_of(*operation, i);
      const bool right = found == content(message_of(*operation, operation->started - 1), i);
      const bool there =
          operation->receive->has_arrived(static_cast<std::uint32_t>(i / operation->step.bytes));
      if (!right && (there || found != untouched))
        say(fmt::format("{} has byte {} wrong", title(*operation), i));
    }
  }
}

// Nothing moves any more: rounds that both sides have begun and the sender has filled are over, and
// no other is.
void Job::check_partitions_at_rest() {
  for (const Process& process : processes_) {
    if (process.dead) continue;
    for (const auto& operation : process.partitioned) {
      if (is_dead(operation->step.peer)) {
        if (operation->running()) say(title(*operation) + " hangs, its peer is gone");
        continue;
      }
      if (!operation->made()) continue;
      if (has_broken_down(operation->rank) || has_broken_down(operation->step.peer)) {
        if (operation->running()) say(title(*operation) + " hangs after all has ended");
        continue;
      }
      const PartitionedOperation* const other = other_side(*operation);
      const PartitionedOperation* const send = operation->sends() ? operation.get() : other;
      const PartitionedOperation* const receive = operation->sends() ? other : operation.get();
      const int over = other == nullptr ? 0 : std::min(send->filled, receive->started);
      const bool harmed = operation->harmed || (other != nullptr && other->harmed);
      if (operation->ended < over || (operation->ended > over && !harmed))
        say(fmt::format("{} has ended {} rounds, {} are over", title(*operation), operation->ended,
                        over));
    }
  }
}

PartitionedOperation* Job::other_side(const PartitionedOperation& operation) const {
  for (const auto& other : processes_[index(operation.step.peer)].partitioned) {
    if (other->made() && other->sends() != operation.sends() &&
        other->step.peer == operation.rank && other->step.tag == operation.step.tag &&
        other->order == operation.order)
      return other.get();
  }
  return nullptr;
}

void Job::release_partitioned() {
  for (Process& process : processes_) {
    if (process.dead) continue;
    for (const auto& operation : process.partitioned) {
      if (!operation->running()) check_inactive(*operation);
      engine::PartitionedTable& table = process.engine->partitioned();
      if (operation->send != nullptr) table.release(*std::exchange(operation->send, nullptr));
      if (operation->receive != nullptr) table.release(*std::exchange(operation->receive, nullptr));
    }
  }
}

} // namespace macadam::prove
