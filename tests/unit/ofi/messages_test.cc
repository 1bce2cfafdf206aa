// SPDX-License-Identifier: BSD-3-Clause
// Messages, sleeping, and what happens if a process ends.
#include "world.h"

#include "../support/null_transport.h"
#include "net/ofi/listening.h"

#include <atomic>
#include <rdma/fabric.h>
#include <thread>

namespace macadam::test {
namespace {

bool is_bare_tcp(const World::Process& process) {
  const std::string& provider = process.transport->provider();
  return provider.starts_with("tcp on ") || provider.starts_with("net on ");
}

TEST(OfiMessages, ArriveOnceAndInOrderBothWays) {
  World world(3);
  constexpr unsigned count = 500;
  std::map<std::pair<Rank, Rank>, unsigned> sent;
  const std::vector<std::pair<Rank, Rank>> ways = {{0, 1}, {1, 0}, {2, 1}, {0, 2}};
  const auto push = [&] {
    bool all = true;
    for (const auto& way : ways) {
      unsigned& n = sent[way];
      while (n < count && world[way.first].try_send(way.second, long_message(n)) == Posted::done)
        ++n;
      all = all && n == count && world[way.second].received[way.first].size() == count;
    }
    return all;
  };
  ASSERT_TRUE(world.until(push));
  for (const auto& [from, to] : ways) {
    for (unsigned n = 0; n < count; ++n)
      ASSERT_EQ(world[to].received[from][n], long_message(n)) << from << " to " << to << ", " << n;
  }
  EXPECT_EQ(world[0].counter("ofi_strangers"), 0u);
  ASSERT_TRUE(world.until([&] { return world[0].transport->drain(); }));
}

// Long ones that the provider fetches from the sender (ofi_rxm: above 16 KiB) are there later.
TEST(OfiMessages, ShortOnesDoNotOvertakeLongOnes) {
  World world(2, false);
  for (auto& process : world.processes) {
    process->settings.rdma_eager = 64 << 10;
    process->start();
  }
  std::vector<std::string> sent;
  for (unsigned n = 0; n < 100; ++n) {
    sent.push_back(std::to_string(n));
    if (n % 4 < 2) sent.back().resize(60'000 - n, 'x');
    ASSERT_TRUE(world.until([&] { return world[0].try_send(1, sent.back()) == Posted::done; }));
  }
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == sent.size(); }));
  for (std::size_t n = 0; n < sent.size(); ++n)
    ASSERT_EQ(world[1].received[0][n], sent[n]);
}

// Receives take what buffers they like, but not the last.
TEST(OfiMessages, FewBuffersAreEnough) {
  World world(2, false);
  for (auto& process : world.processes) {
    process->settings.rdma_buffers = 2;
    process->start();
  }
  for (unsigned n = 0; n < 20; ++n) {
    ASSERT_TRUE(world.send(0, 1, long_message(15 + n)));
    ASSERT_TRUE(world.send(1, 0, long_message(15 + n)));
  }
  ASSERT_TRUE(world.until(
      [&] { return world[0].received[1].size() == 20 && world[1].received[0].size() == 20; }));
  World too_few(1, false);
  too_few[0].settings.rdma_buffers = 1;
  try {
    too_few[0].start();
    FAIL() << "nothing was thrown";
  } catch (const base::Error& error) {
    EXPECT_NE(error.text.find("MACADAM_RDMA_BUFFERS"), std::string::npos) << error.text;
  }
}

// One side has met the other's job already, and sends; the other has not.
TEST(OfiMessages, OfAJobThatIsMetLater) {
  World one(1), other(1, false);
  other[0].its_secret = {4, 5, 6};
  other[0].start();
  const Rank there = one[0].processes->add(other[0]);
  const auto until = [&](const std::function<bool()>& so) {
    return one.until([&] {
      other[0].transport->poll(other[0]);
      return so();
    });
  };
  ASSERT_TRUE(until([&] { return one[0].try_send(there, "early") == Posted::done; }));
  for (int i = 0; i < 2000; ++i) {
    one[0].transport->poll(one[0]);
    other[0].transport->poll(other[0]);
  }
  EXPECT_TRUE(other[0].received.empty());
  EXPECT_EQ(other[0].counter("ofi_strangers"), 0u);
  const Rank back = other[0].processes->add(one[0]);
  ASSERT_TRUE(until([&] { return other[0].try_send(back, "answer") == Posted::done; }));
  ASSERT_TRUE(until([&] { return one[0].try_send(there, "late") == Posted::done; }));
  ASSERT_TRUE(until(
      [&] { return one[0].received[there].size() == 1 && other[0].received[back].size() == 2; }));
  EXPECT_EQ(other[0].received[back], (std::vector<std::string>{"early", "late"}));
}

// TCP's provider may lose a connection that both make at once: one of two whose jobs have met lets
// the other do it, but not for ever.
TEST(OfiMessages, OneOfTwoJobsLetsTheOtherConnect) {
  for (const bool other_sends : {true, false}) {
    World one(1), other(1, false);
    if (!is_bare_tcp(one[0])) GTEST_SKIP() << "what stands above TCP makes its own connections";
    other[0].its_secret = {4, 5, 6};
    other[0].start();
    const Rank there = one[0].processes->add(other[0]);
    const Rank back = other[0].processes->add(one[0]);
    const bool one_waits = other[0].processes->own_name() < one[0].processes->own_name();
    World::Process& waits = one_waits ? one[0] : other[0];
    World::Process& connects = one_waits ? other[0] : one[0];
    const Rank first = one_waits ? there : back; // as who waits knows it
    const Rank second = one_waits ? back : there;
    EXPECT_FALSE(waits.up(first));
    EXPECT_TRUE(connects.up(second));
    const auto until = [&](const std::function<bool()>& so) {
      return one.until([&] {
        other[0].transport->poll(other[0]);
        return so();
      });
    };
    if (other_sends) {
      ASSERT_TRUE(until([&] { return connects.try_send(second, "first") == Posted::done; }));
      ASSERT_TRUE(until([&] { return waits.received[first].size() == 1; }));
    }
    ASSERT_TRUE(until([&] { return waits.try_send(first, "second") == Posted::done; }));
    ASSERT_TRUE(until([&] { return connects.received[second].size() == 1; }));
  }
}

TEST(OfiMessages, ToOneself) {
  World world(1);
  ASSERT_EQ(world[0].try_send(0, "myself"), Posted::done);
  EXPECT_FALSE(world[0].transport->drain());
  ASSERT_TRUE(world.until([&] { return world[0].received[0].size() == 1; }));
  EXPECT_EQ(world[0].received[0][0], "myself");
  EXPECT_TRUE(world[0].transport->drain());
}

// The receiver does not poll: what it has not taken is bounded, and nothing is lost.
TEST(OfiMessages, WaitForAReceiverThatComputes) {
  World world(2);
  ASSERT_TRUE(world.send(0, 1, "first"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
  unsigned sent = 0;
  for (int round = 0; round < 20'000; ++round) {
    if (world[0].try_send(1, long_message(sent)) == Posted::done) ++sent;
    world[0].transport->poll(world[0]);
  }
  const std::uint32_t window = is_bare_tcp(world[0]) ? wire::window_of_tcp : wire::window;
  EXPECT_LE(sent, window);
  EXPECT_GE(sent, window / 2);
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1 + sent; }));
  for (unsigned n = 0; n < sent; ++n)
    ASSERT_EQ(world[1].received[0][1 + n], long_message(n));
}

// The data are the sender's until it is told; then it may change them.
TEST(OfiMessages, MayLeaveFromTheSendersMemory) {
  World world(2);
  if (!world[0].transport->limits().orders_puts)
    GTEST_SKIP() << "the provider keeps no order, so nothing is sent so";
  ASSERT_TRUE(world.send(0, 1, "first"));
  constexpr unsigned count = 20;
  std::string data = long_message(0);
  for (unsigned n = 0; n < count; ++n) {
    data = long_message(n);
    ASSERT_TRUE(world.until([&] {
      return world[0].transport->send_uncopied(world[0].link(1), "header ", 7, data.data(),
                                               data.size(), 100 + n) == Posted::pending;
    }));
    ASSERT_TRUE(world.until([&] { return world[0].completed.contains(100 + n); }));
    EXPECT_TRUE(world[0].completed[100 + n]);
  }
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1 + count; }));
  for (unsigned n = 0; n < count; ++n)
    ASSERT_EQ(world[1].received[0][1 + n], "header " + long_message(n));
  EXPECT_TRUE(world.until([&] { return world[0].transport->drain(); }));
}

TEST(OfiMessages, APeerThatPublishesLateIsWaitedFor) {
  World world(2, false);
  world[0].start();
  EXPECT_FALSE(world[0].up(1));
  EXPECT_EQ(world[0].states[1], engine::PeerState::connecting);
  for (int i = 0; i < 10; ++i)
    world[0].transport->poll(world[0]);
  EXPECT_EQ(world[0].states[1], engine::PeerState::connecting);
  world[1].start();
  ASSERT_TRUE(world.send(0, 1, "late"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
}

TEST(OfiMessages, AnAddressOfAnotherNetworkIsRefusedByName) {
  World world(2, false);
  world[0].start();
  world[1].endpoint = world[0].transport->endpoint();
  world[1].endpoint->protocol ^= 1;
  try {
    world[0].link(1);
    FAIL() << "nothing was thrown";
  } catch (const base::Error& error) {
    EXPECT_NE(error.text.find("address of another network"), std::string::npos) << error.text;
    EXPECT_NE(error.text.find("FI_PROVIDER"), std::string::npos) << error.text;
  }
}

bool wakes(const World::Process& process) {
  return std::ranges::none_of(process.transport->fallbacks(), [](const std::string& note) {
    return note.find("not known to wake") != std::string::npos;
  });
}

// The idle() of a wait in vain: it prepares, is polled, and sleeps. Returns how long it took.
double sleep_once(World::Process& process, unsigned longest_us) {
  const double before = process.transport->now();
  for (unsigned fruitless = 0; fruitless < 1'000'000; ++fruitless) {
    const bool next_sleeps = process.transport->idle(fruitless, longest_us);
    if (process.transport->poll(process)) return -1;
    if (!next_sleeps) continue;
    process.transport->idle(fruitless + 1, longest_us);
    return process.transport->now() - before;
  }
  return -1;
}

TEST(OfiWaiting, ASleepEndsWithAMessageAndWithWake) {
  World world(2);
  if (!wakes(world[0])) GTEST_SKIP() << "the provider wakes nobody";
  ASSERT_TRUE(world.send(1, 0, "hello"));
  ASSERT_TRUE(world.until([&] { return world[0].received[1].size() == 1; }));
  ASSERT_TRUE(world.until([&] { return world[1].transport->drain(); }));
  // Nothing comes: it lasts as long as it may.
  EXPECT_GE(sleep_once(world[0], 30'000), 0.02);

  world[0].transport->wake();
  EXPECT_LT(sleep_once(world[0], 150'000), 0.1);

  std::thread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    while (world[1].try_send(0, "wake up") != Posted::done)
      world[1].transport->poll(world[1]);
    while (!world[1].transport->drain())
      world[1].transport->poll(world[1]);
  });
  EXPECT_LT(sleep_once(world[0], 190'000), 0.15);
  sender.join();
  ASSERT_TRUE(world.until([&] { return world[0].received[1].size() == 2; }));
}

// A process that sleeps on another network is woken there.
TEST(OfiWaiting, ASleeperElsewhereIsWoken) {
  struct Sleeper final : NullTransport {
    void wake() override { ++woken; }
    std::atomic<int> woken = 0;
  } sleeper;
  World world(2, false);
  world[1].start();
  world[0].start(&sleeper);
  if (!wakes(world[0])) GTEST_SKIP() << "the provider wakes nobody";
  ASSERT_TRUE(world.send(1, 0, "hello"));
  ASSERT_TRUE(world.until([&] { return world[0].received[1].size() == 1; }));
  ASSERT_TRUE(world.until([&] { return world[1].transport->drain(); }));
  while (world[0].transport->poll(world[0])) {
  }
  sleeper.woken = 0;
  world[0].transport->arm();
  while (world[0].transport->poll(world[0])) {
    world[0].transport->arm();
  }
  EXPECT_EQ(sleeper.woken, 0);
  while (world[1].try_send(0, "again") != Posted::done)
    world[1].transport->poll(world[1]);
  for (int i = 0; i < 5000 && sleeper.woken == 0; ++i) {
    world[1].transport->poll(world[1]);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GT(sleeper.woken, 0);
}

TEST(OfiFailure, AnEndedProcessIsToldToWhoWaits) {
  World world(2);
  ASSERT_TRUE(world.send(0, 1, "one"));
  ASSERT_TRUE(world.send(1, 0, "two"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
  world[1].transport.reset();
  world[1].its_life = boot::Life::failed;
  ASSERT_TRUE(world.until([&] {
    world[0].transport->arm();
    return world[0].states[1] == engine::PeerState::failed;
  }));
  EXPECT_EQ(world[0].transport->why_failed(world[0].link(1)), "") << "it has ended";
  EXPECT_EQ(world[0].received[1].size(), 1u) << "what it had sent before is delivered";
  EXPECT_EQ(world[0].try_send(1, "three"), Posted::busy) << "not connected any more";
  EXPECT_EQ(world[0].transport->send(world[0].link(1), "x", 1, nullptr, 0), Posted::done);
  EXPECT_TRUE(world[0].transport->drain());
}

// Who waits asks whether the peer is there, which has gone before it can answer.
TEST(OfiFailure, AQuestionThatIsLostIsAskedAgain) {
  World world(2);
  if (world[0].transport->provider().starts_with("shm"))
    GTEST_SKIP() << "the provider writes into memory that has gone with the peer";
  ASSERT_TRUE(world.send(0, 1, "one"));
  ASSERT_TRUE(world.send(1, 0, "two"));
  ASSERT_TRUE(world.until(
      [&] { return world[1].received[0].size() == 1 && world[0].received[1].size() == 1; }));
  world[1].its_life = boot::Life::unknown;
  world[0].transport->arm();
  world[0].transport->poll(world[0]);
  world[1].transport.reset();
  ASSERT_TRUE(world.until([&] {
    world[0].transport->arm();
    return world[0].states[1] == engine::PeerState::failed;
  }));
}

// Nobody has ever reached the peer, and no launcher tells of it: its machine says that nobody
// listens.
TEST(OfiFailure, APeerThatHasGoneBeforeItWasReached) {
  World world(2);
  const bool is_ip = world[0].transport->endpoint().format == FI_SOCKADDR_IN;
  if (!is_ip) GTEST_SKIP() << "no addresses of IP";
  const wire::Endpoint there = world[1].transport->endpoint();
  EXPECT_FALSE(nobody_listens(there));
  world[1].its_life = boot::Life::unknown;
  world[1].transport.reset();
  EXPECT_TRUE(nobody_listens(there));
  ASSERT_TRUE(world.until([&] {
    static_cast<void>(world[0].try_send(1, "are you there?"));
    return world[0].states[1] == engine::PeerState::failed;
  }));
  EXPECT_EQ(world[0].transport->why_failed(world[0].link(1)).find("rank 1 on host "), 0u)
      << "who cannot be reached, and why: " << world[0].transport->why_failed(world[0].link(1));
  EXPECT_NE(world[0].transport->why_failed(world[0].link(1)).find("cannot be reached: "),
            std::string::npos);
}

// What is under way to a process whose endpoint goes ends, not ok, without anybody's word.
TEST(OfiFailure, OperationsUnderWayEnd) {
  std::vector<char> there(1 << 20), here(1 << 20);
  World world(2);
  const RemoteMemory memory = world[1].transport->register_region(there.data(), there.size());
  ASSERT_TRUE(world.send(0, 1, "one"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
  std::uint64_t posted = 0;
  while (posted < 8 && world[0].transport->get(world[0].link(1), here.data(), memory, here.size(),
                                               posted + 1) == Posted::pending)
    ++posted;
  ASSERT_GT(posted, 0u);
  world[1].transport.reset();
  world[1].its_life = boot::Life::failed;
  ASSERT_TRUE(world.until([&] {
    world[0].transport->arm();
    return world[0].completed.size() == posted;
  }));
}

TEST(OfiFailure, AbandonEndsAll) {
  std::vector<char> there(1 << 20), here(1 << 20);
  World world(2);
  const RemoteMemory memory = world[1].transport->register_region(there.data(), there.size());
  ASSERT_TRUE(world.send(0, 1, "one"));
  ASSERT_EQ(world[0].transport->get(world[0].link(1), here.data(), memory, here.size(), 7),
            Posted::pending);
  world[0].transport->abandon(world[0]);
  EXPECT_EQ(world[0].completed.size(), 1u);
  EXPECT_FALSE(world[0].completed[7]);
  world[0].transport.reset();
}

// A permit is used or taken back, never both, whoever of the two asks first.
TEST(OfiPermits, AreUsedOrRevoked) {
  World world(2);
  ASSERT_TRUE(world.send(0, 1, "one"));
  ASSERT_TRUE(world.send(1, 0, "two"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
  OfiTransport& issuer = *world[0].transport;
  OfiTransport& peer = *world[1].transport;
  engine::Link& to_peer = world[0].link(1);
  engine::Link& to_issuer = world[1].link(0);
  const auto revoke = [&](std::uint64_t permit) {
    engine::Revoked outcome = engine::Revoked::unknown;
    EXPECT_TRUE(world.until([&] {
      outcome = issuer.revoke(to_peer, permit);
      return outcome != engine::Revoked::unknown;
    }));
    return outcome;
  };
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t used = issuer.issue(to_peer), unused = issuer.issue(to_peer);
    ASSERT_NE(used, 0u);
    ASSERT_NE(unused, 0u);
    EXPECT_TRUE(peer.use(to_issuer, used));
    EXPECT_EQ(revoke(used), engine::Revoked::no);
    EXPECT_EQ(revoke(unused), engine::Revoked::yes);
    EXPECT_FALSE(peer.use(to_issuer, unused));
    issuer.discard(to_peer, used);
    issuer.discard(to_peer, unused);
  }
  for (unsigned i = 0; i < Permits::most; ++i)
    EXPECT_NE(issuer.issue(to_peer), 0u);
  EXPECT_EQ(issuer.issue(to_peer), 0u) << "there are too many already";
}

// Whether something becomes so while no other process polls.
bool becomes_alone(World::Process& process, const std::function<bool()>& so) {
  for (int i = 0; i < 5000; ++i) {
    if (so()) return true;
    process.transport->poll(process);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// What peers want of a process is done while its program computes, and its messages are kept.
TEST(OfiAttended, AProcessThatComputesIsServed) {
  std::vector<std::uint64_t> words(100'000);
  World world(2);
  if (!wakes(world[0])) GTEST_SKIP() << "the provider wakes nobody, so there is no thread";
  const RemoteMemory memory = world[1].transport->register_region(words.data(), words.size() * 8);
  ASSERT_TRUE(world.send(0, 1, "before"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
  World::Process& a = world[0];
  const auto alone = [&](const std::function<bool()>& so) { return becomes_alone(a, so); };
  std::vector<std::uint64_t> data(words.size(), 7);
  constexpr unsigned unread = 40; // more than the receives of long messages
  for (unsigned i = 0; i < unread; ++i)
    ASSERT_TRUE(alone([&] { return a.try_send(1, long_message(i)) == Posted::done; }));
  ASSERT_NE(a.transport->put(a.link(1), data.data(), memory, data.size() * 8, 1), Posted::busy);
  ASSERT_TRUE(alone([&] { return a.transport->flush(a.link(1), 2) != Posted::busy; }));
  ASSERT_TRUE(alone([&] { return a.completed.contains(2) && a.completed.contains(1); }));
  EXPECT_EQ(words, data);
  std::uint64_t old = 0;
  ASSERT_TRUE(alone([&] {
    return a.transport->atomic(a.link(1), {engine::Atomic::Kind::fetch_and_add, 5, 0}, memory, &old,
                               3) != Posted::busy;
  }));
  ASSERT_TRUE(alone([&] { return a.completed.contains(3); }));
  EXPECT_EQ(old, 7u);
  EXPECT_EQ(words[0], 12u);
  EXPECT_EQ(world[1].received[0].size(), 1u) << "nothing is delivered but by poll()";
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1 + unread; }));
  for (unsigned i = 0; i < unread; ++i)
    EXPECT_EQ(world[1].received[0][1 + i], long_message(i));
}

// ... whatever strangers send it: more than it has receives, and longer than they are.
TEST(OfiAttended, AProcessThatComputesIsNotStoppedByStrangers) {
  World world(2);
  if (!wakes(world[0])) GTEST_SKIP() << "the provider wakes nobody, so there is no thread";
  std::uint64_t word = 1, old = 0;
  const RemoteMemory memory = world[1].transport->register_region(&word, sizeof word);
  ASSERT_TRUE(world.send(0, 1, "before"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
  World strangers(2, false);
  World::Process& stranger = strangers[1];
  stranger.settings.rdma_eager = 256 << 10;
  make_stranger(strangers, world[1].transport->endpoint());
  unsigned sent = 0;
  constexpr unsigned all = 200;
  const auto next = [&] { return sent == 0 ? std::string(200'000, 'x') : long_message(sent); };
  for (int i = 0; i < 3000 && !(sent == all && stranger.transport->drain()); ++i) {
    stranger.transport->poll(stranger);
    give_itself_credit(stranger, sent);
    if (sent < all && stranger.try_send(0, next()) == Posted::done) ++sent;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  World::Process& a = world[0];
  const auto alone = [&](const std::function<bool()>& so) { return becomes_alone(a, so); };
  ASSERT_TRUE(alone([&] {
    return a.transport->atomic(a.link(1), {engine::Atomic::Kind::fetch_and_add, 5, 0}, memory, &old,
                               1) != Posted::busy;
  }));
  ASSERT_TRUE(alone([&] { return a.completed.contains(1); }));
  EXPECT_EQ(old, 1u);
  ASSERT_TRUE(world.until([&] { return world[1].counter("ofi_strangers") == all; }));
}

// ... also if it has registered nothing, and nobody has sent to it before: a connection is made and
// a question answered.
TEST(OfiAttended, AProcessThatComputesFromTheStartAnswers) {
  World world(2);
  if (!wakes(world[0])) GTEST_SKIP() << "the provider wakes nobody, so there is no thread";
  World::Process& a = world[0];
  const auto alone = [&](const std::function<bool()>& so) { return becomes_alone(a, so); };
  ASSERT_TRUE(alone([&] { return a.try_send(1, "first") == Posted::done; }));
  const std::uint64_t permit = a.transport->issue(a.link(1));
  ASSERT_TRUE(
      alone([&] { return a.transport->revoke(a.link(1), permit) == engine::Revoked::yes; }));
  EXPECT_TRUE(world[1].received[0].empty());
}

// ... and one that sleeps is not left asleep by the thread that was faster.
TEST(OfiAttended, NoWakeUpIsLost) {
  World world(2);
  if (!wakes(world[0])) GTEST_SKIP() << "the provider wakes nobody, so there is no thread";
  ASSERT_TRUE(world.send(1, 0, "hello"));
  ASSERT_TRUE(world.until([&] { return world[0].received[1].size() == 1; }));
  std::thread sender([&] {
    for (unsigned i = 0; i < 200; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(200 + i * 37 % 3000));
      while (world[1].try_send(0, long_message(i)) != Posted::done)
        world[1].transport->poll(world[1]);
      while (!world[1].transport->drain())
        world[1].transport->poll(world[1]);
    }
  });
  const double begin = world[0].transport->now();
  world[0].settings.spin = 0;
  while (world[0].received[1].size() < 201 && world[0].transport->now() - begin < 30) {
    for (unsigned fruitless = 0; !world[0].transport->poll(world[0]); ++fruitless)
      world[0].transport->idle(1000 + fruitless, 1'000'000);
  }
  sender.join();
  EXPECT_EQ(world[0].received[1].size(), 201u);
  EXPECT_LT(world[0].transport->now() - begin, 10) << "sleeps of 200 ms that should have ended";
}

TEST(OfiForget, ARouteGoesAndComesAgain) {
  World world(2);
  ASSERT_TRUE(world.send(0, 1, "one"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
  ASSERT_TRUE(world.until([&] { return world[0].transport->forget(1, 1); }));
  world[0].links.clear();
  ASSERT_TRUE(world.send(0, 1, "two"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 2; }));
}

} // namespace
} // namespace macadam::test
