// SPDX-License-Identifier: BSD-3-Clause
// The end of a program: what must be complete when nothing moves any more, and what must not be
// left.
#include "fmt/format.h"
#include "prove/content.h"
#include "prove/job.h"

#include <algorithm>

namespace macadam::prove {

// Nothing moves any more: what MPI's rules have matched must be complete, and sends that need no
// receiver too.
void Job::check_rest() {
  check_partitions_at_rest();
  for (Process& process : processes_) {
    const bool copied = settings_.protocols == base::Protocols::customized &&
                        program_.conditions.scarce == 0 &&
                        program_.conditions.starved == 0; // then the library may have no memory
    const std::size_t bound = copied ? process.limits.hybrid : process.limits.eager;
    for (const auto& operation : process.operations) {
      if (operation->request == nullptr) continue;
      const std::string name = name_of(*operation);
      if (has_broken_down(operation->rank)) say(name + " hangs after all has ended");
      if (operation->step.peer >= 0 && is_dead(operation->step.peer))
        say(name + " hangs, its peer is gone");
      if (operation->receive) {
        if (operation->cancelling) say(name + ", to be cancelled, hangs");
        if (oracle_.receive(operation->rank, operation->number).message != Oracle::none)
          say(name + " hangs although a message matched it");
        continue;
      }
      if (operation->cancelling && oracle_.waits(operation->number))
        say(name + ", to be cancelled, hangs");
      const Step& step = operation->step;
      const bool leaves =
          (step.what == Step::What::send && step.bytes <= bound) ||
          (step.what == Step::What::nonblocking_send && step.bytes <= process.limits.eager);
      const bool alone = leaves && !program_.conditions.throttle;
      if (alone || oracle_.message(operation->number).receive != Oracle::none) say(name + " hangs");
    }
  }
}

void Job::check_held(int rank, bool has_looked) {
  engine(rank).peers().for_each([&](const engine::Peer& peer) {
    if (!peer.holds) return;
    if (has_looked) say(fmt::format("rank {} has looked, and holds messages", rank));
    for (const engine::Deferred& waiting : peer.backlog)
      if (waiting.type != engine::Deferred::Type::eager ||
          waiting.send->mode != engine::SendMode::nonblocking)
        say(fmt::format("rank {} holds something else than a message of a burst", rank));
  });
}

void Job::take_back(int rank) {
  for (auto& operation : processes_[index(rank)].operations) {
    if (operation->receive) cancel(*operation);
  }
}

// One message at a time, so that every message is looked at.
bool Job::receive_rest(int rank) {
  if (is_dead(rank)) return false;
  Step step{.what = Step::What::match_probe, .peer = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
  if (processes_[index(rank)].probed == nullptr) {
    if (oracle_.unexpected(rank).empty()) return false;
    step.context = oracle_.message(oracle_.unexpected(rank).front()).context;
    if (!match_probe(rank, step)) return false;
  }
  step.what = Step::What::receive_matched;
  step.bytes = oracle_.message(processes_[index(rank)].probed_message).bytes;
  receive_matched(rank, step);
  return true;
}

void Job::check_end() {
  if (!wrong().empty()) return;
  release_partitioned();
  for (Process& process : processes_) {
    if (process.dead) continue;
    for (auto& operation : process.operations) {
      if (operation->request != nullptr) return say(name_of(*operation) + " hangs");
      // The memory of what has ended, however, is the user's, who has used it.
      const unsigned char rest = reused;
      if (std::count(operation->memory.begin(), operation->memory.end(), rest) !=
          std::ssize(operation->memory))
        return say(name_of(*operation) + " was complete, then its memory was written to");
    }
    // What goes by messages is kept until its round is over.
    const bool in_round = std::ranges::any_of(process.partitioned, [](const auto& operation) {
      return operation->sends() && operation->running();
    });
    if (!in_round && !process.engine->quiet()) return say("something is left in flight");
  }
  for (const auto& [rank, peer] : broken_off_) {
    if (!processes_[index(rank)].has_lost(peer))
      return say(
          fmt::format("an operation of rank {} with {} failed, the peer did not", rank, peer));
  }
  for (const Oracle::Message& message : oracle_.messages()) {
    // A process that never used its connection to the sender is not told that it has failed.
    const bool lost = message.lost || processes_[index(message.from)].has_lost(message.to) ||
                      is_dead(message.from) || is_dead(message.to) || has_broken_down(message.to);
    if (message.receive == Oracle::none && !lost && !message.withdrawn)
      return say("a message was never received");
  }
  check_channels();
}

// What both sides of a channel remember must agree when nothing is under way, or the next message
// would go wrong.
void Job::check_channels() {
  for (int rank = 0; rank < static_cast<int>(processes_.size()); ++rank) {
    if (is_dead(rank) || has_broken_down(rank)) continue;
    processes_[index(rank)].engine->peers().for_each([&](const engine::Peer& peer) {
      const int other = static_cast<int>(peer.rank);
      if (processes_[index(rank)].has_lost(other) || processes_[index(other)].has_lost(rank) ||
          is_dead(other))
        return;
      peer.channels.for_each(
          [&](const engine::Channel& channel) { check_channel(rank, peer, channel); });
    });
  }
}

void Job::check_harm(unsigned times_without_memory) {
  if (harmed_.size() + refused_calls_ + breakdowns_ > times_without_memory)
    say(fmt::format("memory lacked {} times; {} messages were lost, {} calls refused, {} processes "
                    "broke down",
                    times_without_memory, harmed_.size(), refused_calls_, breakdowns_));
}

void Job::check_channel(int rank, const engine::Peer& peer, const engine::Channel& channel) {
  const std::string name =
      fmt::format("channel of rank {} with {}, tag {}", rank, peer.rank, channel.tag);
  if (processes_[index(rank)].has_freed(channel.context))
    return say(name + " exists, its communicator is freed");
  if (channel.pending != 0 || channel.revoking || !channel.waiting.empty())
    say(name + " is not at rest");
  for (const engine::Announcement& announcement : channel.announcements) {
    if (announcement.ordinal >= channel.sent &&
        peer.transport->use(*peer.link, announcement.permit))
      say(name + " could use an announcement that is gone");
  }
  const engine::Peer* const back =
      processes_[peer.rank].engine->peers().find(static_cast<engine::Rank>(rank));
  if (back == nullptr || processes_[peer.rank].has_freed(channel.context)) return;
  back->channels.for_each([&](const engine::Channel& other) {
    if (other.context == channel.context && other.tag == channel.tag &&
        other.matched != channel.sent)
      say(fmt::format("{} has counted {} messages, {} were matched", name, channel.sent,
                      other.matched));
  });
}

} // namespace macadam::prove
