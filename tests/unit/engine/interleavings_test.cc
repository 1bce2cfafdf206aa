// SPDX-License-Identifier: BSD-3-Clause
// All interleavings of small programs: one process sends, the other receives, probes and cancels;
// at every point any process may take its next step, or any packet or transfer that is on its way
// may arrive. Every order that a network can bring about is run, so that the rules of
// announcements, ordinals and retractions are checked and not believed. A failure prints the
// program and the order of its steps.
#include "datatype/type.h"
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace macadam::engine {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr std::size_t eager = 8, hybrid = 16, large = 24; // payload bytes: cheap to check
constexpr std::uint64_t context = 4;
constexpr unsigned char untouched = 0xee, reused = 0xdd;

struct SendStep {
  std::size_t bytes;
  int tag;
};
struct ReceiveStep {
  enum What { exact, any_source, any_tag, matched_probe, cancel_first, cancel_last } what;
  std::size_t room = large;
};
struct Program {
  std::vector<SendStep> sends;
  std::vector<ReceiveStep> receives;
  base::Rendezvous rendezvous = base::Rendezvous::read;
  bool slow = false; // puts and gets take time; sends behind a put are refused meanwhile
};

std::string describe(const Program& program) {
  static const char* const names[] = {"exact",         "any source",   "any tag",
                                      "matched probe", "cancel first", "cancel last"};
  std::ostringstream text;
  text << "sends:";
  for (const SendStep& step : program.sends)
    text << " " << step.bytes << "/" << step.tag;
  text << "; receives:";
  for (const ReceiveStep& step : program.receives)
    text << " " << names[step.what] << "/" << step.room;
  text << (program.rendezvous == base::Rendezvous::read ? "; read" : "; write")
       << (program.slow ? "; slow" : "");
  return text.str();
}

// One side of a network of two. poll() delivers only what was allowed by the explorer.
class Node final : public Transport {
 public:
  explicit Node(bool slow) : slow_(slow) {}

  Node* peer = nullptr;
  std::deque<Bytes> inbox;
  struct Transfer {
    bool put;
    void* local;
    void* remote;
    std::size_t bytes;
    std::uint64_t cookie;
  };
  std::deque<Transfer> transfers;
  enum class Allowed { nothing, message, transfer } allowed = Allowed::nothing;
  int registered = 0;

  const Limits& limits() const override { return limits_; }
  Link& connect(Rank rank, PeerState& state) override {
    link_.rank = rank;
    state = PeerState::connected;
    return link_;
  }
  Posted send(Link&, const void* header, std::size_t header_bytes, const void* payload,
              std::size_t payload_bytes) override {
    for (const Transfer& transfer : transfers) {
      if (transfer.put) return Posted::busy;
    }
    Bytes message(header_bytes + payload_bytes);
    std::memcpy(message.data(), header, header_bytes);
    if (payload_bytes != 0) std::memcpy(message.data() + header_bytes, payload, payload_bytes);
    peer->inbox.push_back(std::move(message));
    return Posted::done;
  }
  Posted put(Link&, const void* local, RemoteMemory to, std::size_t bytes,
             std::uint64_t cookie) override {
    return start(
        {true, const_cast<void*>(local), reinterpret_cast<void*>(to.address), bytes, cookie});
  }
  Posted get(Link&, void* local, RemoteMemory from, std::size_t bytes,
             std::uint64_t cookie) override {
    return start({false, local, reinterpret_cast<void*>(from.address), bytes, cookie});
  }
  RemoteMemory register_memory(void* memory, std::size_t) override {
    ++registered;
    return {reinterpret_cast<std::uintptr_t>(memory), 1};
  }
  void release_memory(RemoteMemory) override { --registered; }
  void* allocate(std::size_t bytes) override { return ::operator new(bytes); }
  void free(void* memory) override { ::operator delete(memory); }
  bool poll(Sink& sink) override {
    switch (std::exchange(allowed, Allowed::nothing)) {
    case Allowed::nothing:
      return false;
    case Allowed::message: {
      const Bytes message = std::move(inbox.front());
      inbox.pop_front();
      sink.on_message(link_.rank, reinterpret_cast<const std::byte*>(message.data()),
                      message.size());
      return true;
    }
    case Allowed::transfer: {
      const Transfer transfer = transfers.front();
      transfers.pop_front();
      move(transfer);
      sink.on_complete(transfer.cookie, true);
      return true;
    }
    }
    return false;
  }
  void idle(unsigned, unsigned) override {}
  void resume() override {}
  double now() const override { return 0; }
  void list_counters(base::CounterList&) const override {}
  std::vector<std::string> fallbacks() const override { return {}; }
  std::size_t memory_bytes() const override { return 0; }

 private:
  Posted start(const Transfer& transfer) {
    if (slow_) {
      transfers.push_back(transfer);
      return Posted::pending;
    }
    move(transfer);
    return Posted::done;
  }
  static void move(const Transfer& transfer) {
    if (transfer.put)
      std::memcpy(transfer.remote, transfer.local, transfer.bytes);
    else
      std::memcpy(transfer.local, transfer.remote, transfer.bytes);
  }

  Limits limits_{"two", 4096, eager, hybrid, false};
  Link link_;
  bool slow_;
};

// One run of a program, in the order that `order` gives.
class Execution {
 public:
  Execution(const Program& program, const datatype::PredefinedTypes& types,
            const base::Settings& settings)
      : program_(program), bytes_(types[MPI_BYTE]), sender_node_(program.slow),
        receiver_node_(program.slow), sender_(sender_node_, 2, settings),
        receiver_(receiver_node_, 2, settings) {
    sender_node_.peer = &receiver_node_;
    receiver_node_.peer = &sender_node_;
    sender_.peer(1);
    receiver_.peer(0);
    sent_.reserve(program.sends.size());
    received_.reserve(program.receives.size() + program.sends.size());
  }

  // What can happen next, in a fixed order.
  enum Event { send, receive, to_sender, to_receiver, sender_transfer, receiver_transfer };
  [[nodiscard]] std::vector<Event> possible() const {
    std::vector<Event> events;
    if (next_send_ < program_.sends.size()) events.push_back(send);
    if (next_receive_ < program_.receives.size()) events.push_back(receive);
    if (!sender_node_.inbox.empty()) events.push_back(to_sender);
    if (!receiver_node_.inbox.empty()) events.push_back(to_receiver);
    if (!sender_node_.transfers.empty()) events.push_back(sender_transfer);
    if (!receiver_node_.transfers.empty()) events.push_back(receiver_transfer);
    return events;
  }

  void happen(Event event) {
    switch (event) {
    case send:
      return do_send(program_.sends[next_send_++]);
    case receive:
      return do_receive(program_.receives[next_receive_++]);
    case to_sender:
      return allow(sender_, sender_node_, Node::Allowed::message);
    case to_receiver:
      return allow(receiver_, receiver_node_, Node::Allowed::message);
    case sender_transfer:
      return allow(sender_, sender_node_, Node::Allowed::transfer);
    case receiver_transfer:
      return allow(receiver_, receiver_node_, Node::Allowed::transfer);
    }
  }

  // The program is over: takes everything back that is left. Says what is wrong, empty if nothing.
  std::string finish() {
    for (Received& r : received_) {
      if (!r.request->complete) receiver_.cancel(*r.request);
    }
    settle();
    for (Received& r : received_) {
      if (!r.request->complete) return "a cancelled receive hangs";
    }
    while (probe_and_receive(large))
      settle();
    for (Received& r : received_) {
      const std::string wrong = check(r);
      if (!wrong.empty()) return wrong;
    }
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      if (sent_[i].received != 1)
        return "message " + std::to_string(i) + " was received " +
               std::to_string(sent_[i].received) + " times";
      if (sent_[i].request != nullptr && !sent_[i].request->complete) return "a send hangs";
    }
    const std::string overtaken = check_order();
    if (!overtaken.empty()) return overtaken;
    for (Sent& s : sent_) {
      if (s.request != nullptr) sender_.release(s.request);
    }
    for (Received& r : received_)
      receiver_.release(r.request);
    if (!sender_.quiet() || !receiver_.quiet()) return "something is left in flight";
    if (sender_node_.registered != 0 || receiver_node_.registered != 0)
      return "memory stays registered";
    return "";
  }

 private:
  struct Sent {
    Bytes data;
    std::size_t bytes;
    int tag;
    SendRequest* request = nullptr;
    int received = 0;
  };
  struct Received {
    Envelope wanted;
    Bytes buffer;
    ReceiveRequest* request = nullptr;
    int message = -1;
  };

  static unsigned char content(std::size_t message, std::size_t i) {
    return static_cast<unsigned char>(i == 0 ? message : 16 * message + i);
  }

  static void allow(Engine& engine, Node& node, Node::Allowed what) {
    node.allowed = what;
    engine.progress();
  }

  void do_send(const SendStep& step) {
    Sent& s = sent_.emplace_back();
    s.bytes = step.bytes;
    s.tag = step.tag;
    for (std::size_t i = 0; i < step.bytes; ++i)
      s.data.push_back(content(sent_.size() - 1, i));
    const Data data{s.data.data(), static_cast<MPI_Count>(step.bytes), &bytes_};
    s.request = sender_.send(sender_.peer(1), {context, 0, step.tag}, data, SendMode::standard);
    if (s.request == nullptr) s.data.assign(s.bytes, reused); // the user may do that
  }

  void do_receive(const ReceiveStep& step) {
    switch (step.what) {
    case ReceiveStep::cancel_first:
    case ReceiveStep::cancel_last:
      if (received_.empty()) return;
      return receiver_.cancel(
          *(step.what == ReceiveStep::cancel_first ? received_.front() : received_.back()).request);
    case ReceiveStep::matched_probe:
      probe_and_receive(step.room);
      return;
    default:
      break;
    }
    const bool any_source = step.what == ReceiveStep::any_source;
    Received& r = post({context, any_source ? MPI_ANY_SOURCE : 0,
                        step.what == ReceiveStep::any_tag ? MPI_ANY_TAG : 0},
                       step.room);
    r.request = receiver_.receive(any_source ? nullptr : &receiver_.peer(0), r.wanted, data_of(r));
  }

  Received& post(const Envelope& wanted, std::size_t room) {
    Received& r = received_.emplace_back();
    r.wanted = wanted;
    r.buffer.assign(room, untouched);
    return r;
  }
  Data data_of(Received& r) {
    return {r.buffer.data(), static_cast<MPI_Count>(r.buffer.size()), &bytes_};
  }

  bool probe_and_receive(std::size_t room) {
    const Envelope wanted{context, MPI_ANY_SOURCE, MPI_ANY_TAG};
    Message* const message = receiver_.match_probe(wanted);
    if (message == nullptr) return false;
    Received& r = post(wanted, room);
    r.request = receiver_.receive_matched(*message, data_of(r));
    return true;
  }

  void settle() {
    for (;;) {
      const auto events = possible();
      if (events.empty()) return;
      happen(events.front());
    }
  }

  std::string check(Received& r) {
    const Status& status = r.request->status;
    if (status.cancelled) {
      for (const unsigned char byte : r.buffer) {
        if (byte != untouched) return "a cancelled receive was written to";
      }
      return "";
    }
    const std::size_t number = r.buffer[0];
    if (number >= sent_.size()) return "a receive completed without data";
    Sent& s = sent_[number];
    ++s.received;
    r.message = static_cast<int>(number);
    const std::size_t fits = std::min(s.bytes, r.buffer.size());
    if (!Matcher::matches(r.wanted, {context, 0, s.tag}))
      return "a receive got a message of another tag";
    if (status.tag != s.tag || status.source != 0) return "a status names another message";
    if (status.bytes != fits) return "a status has the wrong size";
    if (status.error != (s.bytes > r.buffer.size() ? MPI_ERR_TRUNCATE : MPI_SUCCESS))
      return "a status has the wrong error";
    for (std::size_t i = 0; i < r.buffer.size(); ++i) {
      if (r.buffer[i] != (i < fits ? content(number, i) : untouched))
        return "message " + std::to_string(number) + " has a wrong byte " + std::to_string(i);
    }
    return "";
  }

  // A receive must not have got a message while a later receive got an earlier one that it matched.
  std::string check_order() const {
    for (std::size_t i = 0; i < received_.size(); ++i) {
      for (std::size_t j = i + 1; j < received_.size(); ++j) {
        const int first = received_[i].message, second = received_[j].message;
        if (first < 0 || second < 0 || second > first) continue;
        const Envelope overtaken{context, 0, sent_[static_cast<std::size_t>(second)].tag};
        if (Matcher::matches(received_[i].wanted, overtaken))
          return "message " + std::to_string(first) + " overtook " + std::to_string(second);
      }
    }
    return "";
  }

  const Program& program_;
  const datatype::Type& bytes_;
  std::vector<Sent> sent_;
  std::vector<Received> received_;
  std::size_t next_send_ = 0, next_receive_ = 0;
  Node sender_node_, receiver_node_;
  Engine sender_, receiver_;
};

class Interleavings : public testing::Test {
 protected:
  // Runs the program in every order, depth first: each run follows a prefix of choices and then
  // always takes the first; the last choice that has an alternative is changed for the next run.
  void explore(const Program& program) {
    struct Choice {
      std::size_t taken, of;
    };
    base::Settings settings;
    settings.rendezvous = program.rendezvous;
    std::vector<Choice> choices;
    for (;;) {
      Execution run(program, types_, settings);
      std::string order;
      std::size_t depth = 0;
      for (auto events = run.possible(); !events.empty(); events = run.possible()) {
        if (depth == choices.size()) choices.push_back({0, events.size()});
        ASSERT_EQ(choices[depth].of, events.size()) << "a run is not repeatable";
        const Execution::Event event = events[choices[depth++].taken];
        order += "srSRpg"[event];
        run.happen(event);
      }
      ++runs_;
      const std::string wrong = run.finish();
      ASSERT_EQ(wrong, "") << describe(program) << "; order " << order
                           << " (s send, r receive, S to sender, R to receiver, p put, g get)";
      while (!choices.empty() && choices.back().taken + 1 == choices.back().of)
        choices.pop_back();
      if (choices.empty()) return;
      ++choices.back().taken;
    }
  }

  // In both forms of SEND_RNDV, with transfers that are done at once and such that take time.
  void explore_all_forms(Program program) {
    for (const auto form : {base::Rendezvous::read, base::Rendezvous::write}) {
      for (const bool slow : {false, true}) {
        program.rendezvous = form;
        program.slow = slow;
        explore(program);
        if (HasFatalFailure()) return;
      }
    }
  }

  void TearDown() override { RecordProperty("runs", std::to_string(runs_)); }

  datatype::PredefinedTypes types_;
  std::uint64_t runs_ = 0;
};

constexpr std::size_t sizes[] = {4, 12, 20}; // EAGER, HYBRID, rendezvous

TEST_F(Interleavings, OfTwoSendsAndTwoReceives) {
  for (const std::size_t first : sizes) {
    for (const std::size_t second : sizes) {
      for (const auto one : {ReceiveStep::exact, ReceiveStep::any_source, ReceiveStep::any_tag}) {
        for (const std::size_t room : {large, std::size_t{8}}) {
          explore_all_forms({.sends = {{first, 0}, {second, 0}},
                             .receives = {{one, large}, {ReceiveStep::exact, room}}});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_F(Interleavings, OfTwoTagsUnderWildcards) {
  for (const std::size_t first : sizes) {
    for (const std::size_t second : sizes) {
      explore_all_forms({.sends = {{first, 1}, {second, 0}},
                         .receives = {{ReceiveStep::exact}, {ReceiveStep::any_tag}}});
      explore_all_forms({.sends = {{first, 1}, {second, 0}},
                         .receives = {{ReceiveStep::any_tag}, {ReceiveStep::exact}}});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(Interleavings, OfACancelledReceive) {
  for (const std::size_t first : sizes) {
    for (const std::size_t second : sizes) {
      for (const auto which : {ReceiveStep::cancel_first, ReceiveStep::cancel_last}) {
        for (const auto other : {ReceiveStep::exact, ReceiveStep::any_source}) {
          explore_all_forms({.sends = {{first, 0}, {second, 0}},
                             .receives = {{ReceiveStep::exact}, {other}, {which}}});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_F(Interleavings, OfAMatchedProbeBetweenReceives) {
  for (const std::size_t first : sizes) {
    for (const std::size_t second : sizes) {
      explore_all_forms({.sends = {{first, 0}, {second, 0}},
                         .receives = {{ReceiveStep::matched_probe}, {ReceiveStep::exact}}});
      explore_all_forms({.sends = {{first, 0}, {second, 0}},
                         .receives = {{ReceiveStep::exact}, {ReceiveStep::matched_probe}}});
      if (HasFatalFailure()) return;
    }
  }
}

// A receive posted while the sender is asked about a cancelled one.
TEST_F(Interleavings, OfAReceivePostedDuringARetraction) {
  for (const std::size_t first : sizes) {
    for (const std::size_t room : {large, std::size_t{8}}) {
      explore_all_forms({.sends = {{first, 0}, {20, 0}},
                         .receives = {{ReceiveStep::exact, room},
                                      {ReceiveStep::cancel_first},
                                      {ReceiveStep::exact}}});
      if (HasFatalFailure()) return;
    }
  }
}

// The same with one more announced receive, which has to announce itself anew.
TEST_F(Interleavings, OfAReceivePostedBehindOneThatMovesUp) {
  for (const std::size_t second : sizes) {
    explore({.sends = {{20, 0}, {second, 0}},
             .receives = {{ReceiveStep::exact},
                          {ReceiveStep::exact},
                          {ReceiveStep::cancel_first},
                          {ReceiveStep::exact}}});
    if (HasFatalFailure()) return;
  }
}

TEST_F(Interleavings, OfThreeLargeMessages) {
  explore({.sends = {{20, 0}, {12, 0}, {20, 0}},
           .receives = {{ReceiveStep::exact}, {ReceiveStep::any_source}, {ReceiveStep::exact}}});
}

TEST_F(Interleavings, OfTwoCancels) {
  explore({.sends = {{20, 0}},
           .receives = {{ReceiveStep::exact},
                        {ReceiveStep::exact},
                        {ReceiveStep::cancel_first},
                        {ReceiveStep::cancel_last}}});
}

} // namespace
} // namespace macadam::engine
