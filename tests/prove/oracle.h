// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "prove/program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace macadam::prove {

// MPI's matching rules (MPI 5.0, 3.5 "Semantics of Point-to-Point Communication") at their
// plainest: a process has a list of pending receives in the order of posting and a list of
// unexpected messages in the order of arrival; what comes takes the first that fits in the other
// list. Given the order in which messages arrive, this leaves no choice, so the engine must agree
// with it in every match, whatever protocol brought the message. Only the end of a cancelled
// receive is the engine's to choose, as long as nothing has matched it.
class Oracle {
 private:
  template <class Rows>
  static auto& at(Rows& rows, int rank) {
    return rows[static_cast<std::size_t>(rank)];
  }

 public:
  static constexpr int none = -1;

  struct Message {
    int from, to, context, tag;
    std::size_t bytes;
    int receive = none;     // the receive of `to` that it matched
    int arrival = none;     // how many had arrived before
    bool silent = false;    // its data come without a packet
    bool lost = false;      // it will never come: the connection has failed
    bool withdrawn = false; // its send was cancelled
  };
  struct Receive {
    int context, peer, tag;
    int message = none;
    bool pending = false;
  };

  explicit Oracle(std::size_t ranks)
      : receives_(ranks), unexpected_(ranks), on_the_way_(ranks * ranks) {}

  [[nodiscard]] const std::vector<Message>& messages() const { return messages_; }
  [[nodiscard]] const std::vector<std::vector<Receive>>& receives() const { return receives_; }
  [[nodiscard]] const Receive& receive(int rank, int number) const {
    return at(receives_, rank)[static_cast<std::size_t>(number)];
  }

  // A send is called. Returns the message's number.
  int sent(int from, const Step& send) {
    messages_.push_back({from, send.peer, send.context, send.tag, send.bytes});
    const auto number = static_cast<int>(messages_.size()) - 1;
    way(from, send.peer).push_back(number);
    return number;
  }

  // The send, the last one to its process, has failed.
  void take_back(int number) {
    Message& message = messages_[static_cast<std::size_t>(number)];
    message.lost = true;
    if (auto& its_way = way(message.from, message.to); !its_way.empty() && its_way.back() == number)
      its_way.pop_back();
  }
  // What is on the way will not come.
  void lose(int from, int to) {
    for (const int number : way(from, to))
      messages_[static_cast<std::size_t>(number)].lost = true;
    way(from, to).clear();
  }

  void silence(int number) { messages_[static_cast<std::size_t>(number)].silent = true; }

  // The next message from one process reaches the other. Returns its number, `none` if there was
  // none to come.
  int arrive(int from, int to) {
    if (way(from, to).empty()) return none;
    const int number = way(from, to).front();
    way(from, to).pop_front();
    messages_[static_cast<std::size_t>(number)].arrival = arrivals_++;
    for (std::size_t i = 0; i < at(receives_, to).size(); ++i) {
      if (const Receive& r = at(receives_, to)[i]; r.pending && fits(r, message(number))) {
        match(to, static_cast<int>(i), number);
        return number;
      }
    }
    at(unexpected_, to).push_back(number);
    return number;
  }

  // A receive is posted; its number at this process is the next.
  void post(int rank, const Step& step) {
    auto& receives = at(receives_, rank);
    receives.push_back({step.context, step.peer, step.tag});
    settle(rank, static_cast<int>(receives.size()) - 1);
  }

  // The post has failed, or receive_taken() has: what it took waits where it was.
  void take_back_receive(int rank, int number, bool of_probe) {
    Receive& receive = at(receives_, rank)[static_cast<std::size_t>(number)];
    receive.pending = false;
    const int message = std::exchange(receive.message, none);
    if (message == none) return;
    messages_[static_cast<std::size_t>(message)].receive = none;
    if (of_probe) return;
    auto& there = at(unexpected_, rank);
    const auto later = [this](int a, int b) {
      return this->message(a).arrival < this->message(b).arrival;
    };
    there.insert(std::upper_bound(there.begin(), there.end(), message, later), message);
  }

  // What a probe finds: the oldest message that has arrived, fits and is not matched.
  [[nodiscard]] int oldest(int rank, const Step& wanted) const {
    return oldest(rank, Receive{wanted.context, wanted.peer, wanted.tag});
  }
  // A send is cancelled: its message goes if nothing has matched it, but for a receive (or `none`)
  // that is only being posted.
  void withdraw(int number, int posting) {
    Message& message = messages_[static_cast<std::size_t>(number)];
    message.withdrawn = std::erase(at(unexpected_, message.to), number) != 0;
    if (posting == none || message.receive != posting) return;
    message.withdrawn = true;
    message.receive = none;
    Receive& receive = at(receives_, message.to)[static_cast<std::size_t>(posting)];
    receive.message = none;
    settle(message.to, posting);
  }
  // Nothing has matched the message, not even a probe.
  [[nodiscard]] bool waits(int number) const {
    const Message& its = message(number);
    const auto& there = at(unexpected_, its.to);
    const auto& coming = on_the_way(its.from, its.to);
    return std::find(there.begin(), there.end(), number) != there.end() ||
           std::find(coming.begin(), coming.end(), number) != coming.end();
  }
  // A matched probe takes what oldest() told.
  void take(int rank, int number) { std::erase(at(unexpected_, rank), number); }
  // It is received; the receive's number is the process's next.
  void receive_taken(int rank, int number) {
    auto& receives = at(receives_, rank);
    receives.push_back({message(number).context, message(number).from, message(number).tag});
    match(rank, static_cast<int>(receives.size()) - 1, number);
  }

  // A receive has ended without a message. False if one had matched it.
  bool ended(int rank, int number) {
    Receive& receive = at(receives_, rank)[static_cast<std::size_t>(number)];
    return std::exchange(receive.pending, false);
  }

  static bool fits(const Receive& receive, const Message& message) {
    return receive.context == message.context &&
           (receive.peer == MPI_ANY_SOURCE || receive.peer == message.from) &&
           (receive.tag == MPI_ANY_TAG || receive.tag == message.tag);
  }

  [[nodiscard]] const Message& message(int number) const {
    return messages_[static_cast<std::size_t>(number)];
  }
  // Messages that have come and are not matched, oldest first.
  [[nodiscard]] const std::vector<int>& unexpected(int rank) const { return at(unexpected_, rank); }
  // Messages sent that have not arrived.
  [[nodiscard]] const std::deque<int>& on_the_way(int from, int to) const {
    return on_the_way_[index(from, to)];
  }

 private:
  [[nodiscard]] std::size_t index(int from, int to) const {
    return static_cast<std::size_t>(from) * receives_.size() + static_cast<std::size_t>(to);
  }
  std::deque<int>& way(int from, int to) { return on_the_way_[index(from, to)]; }
  [[nodiscard]] int oldest(int rank, const Receive& wanted) const {
    for (const int number : at(unexpected_, rank)) {
      if (fits(wanted, message(number))) return number;
    }
    return none;
  }
  // A receive without a message takes the oldest that fits, or waits.
  void settle(int rank, int number) {
    Receive& receive = at(receives_, rank)[static_cast<std::size_t>(number)];
    const int first = oldest(rank, receive);
    receive.pending = first == none;
    if (first == none) return;
    take(rank, first);
    match(rank, number, first);
  }
  void match(int rank, int number, int message) {
    Receive& receive = at(receives_, rank)[static_cast<std::size_t>(number)];
    receive.pending = false;
    receive.message = message;
    messages_[static_cast<std::size_t>(message)].receive = number;
  }

  std::vector<Message> messages_;
  int arrivals_ = 0;
  std::vector<std::vector<Receive>> receives_; // by rank
  std::vector<std::vector<int>> unexpected_;   // by rank
  std::vector<std::deque<int>> on_the_way_;    // by sender and receiver
};

} // namespace macadam::prove
