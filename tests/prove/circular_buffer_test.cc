// SPDX-License-Identifier: BSD-3-Clause
// The queue and the rings of shared memory, in every order of their atomic steps. Senders and
// reader are fibers that run the code of net/shm; its atomics are replaced by ones that give the
// turn away after each step, so that what follows a step comes as late as can be. Memory is
// sequentially consistent here: that each step's order of memory is strong enough is for the thread
// sanitizer (shm_circular_buffer_test).
#include "prove/machine.h"
#include "prove/stepped_atomic.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

// The headers must see the stand-ins; nothing else of the standard library is included after this.
#define atomic_ref stepped_atomic_ref
#define atomic stepped_atomic
#include "net/shm/bulk/chunks.h"
#include "net/shm/bulk/claims.h"
#include "net/shm/messages/pair_channel.h"
#include "net/shm/messages/ring.h"
#include "net/shm/messages/shared_queue.h"
#undef atomic
#undef atomic_ref

namespace macadam::prove {
namespace {

using namespace net::shm;

// A circular buffer with what stands in front of it, all zero.
template <class Front>
struct Shared {
  static constexpr std::size_t most = 8;
  Front front;
  Seat seats[3];
  std::uint64_t killed = 0;
  Line lines[most] = {};
};

// A message of one or two lines. Its words are the stamp that the second line would need to pass
// for a first one in the next lap, whichever of the first three that is.
std::vector<std::uint32_t> words_of(std::uint32_t number, std::uint32_t lines) {
  std::vector<std::uint32_t> words(lines == 1 ? 2 : 20, CircularBuffer::stamp_of_lap(number % 3));
  words[0] = number;
  return words;
}

// Sends the messages of a source; waits for a change when there is no room.
template <class Writer>
void send_all(Writer& writer, Rank source, const std::vector<std::uint32_t>& lengths) {
  for (std::uint32_t number = 0; number < lengths.size(); ++number) {
    const auto words = words_of(number, lengths[number]);
    for (;;) {
      Machine::now->between(number, writer);
      const std::uint64_t before = Machine::now->version();
      if (writer.write(Kind::message, source, {words.data(), 4 * words.size(), nullptr, 0})) break;
      Machine::now->wait([before] { return Machine::now->version() != before; });
    }
  }
}

// Reads all messages of all sources, each source's in order and whole.
template <class Reader>
void read_all(Reader& reader, const std::vector<std::vector<std::uint32_t>>& sources) {
  std::vector<std::uint32_t> next(sources.size());
  std::size_t left = 0;
  for (const auto& lengths : sources)
    left += lengths.size();
  while (left > 0) {
    Machine::now->between(left, reader);
    Machine::now->wait([&] { return reader.next() != nullptr; });
    const Line* const line = reader.next();
    if (line == nullptr) return Machine::now->fail("a message goes away");
    Machine::now->step(static_cast<std::uint64_t>(line->kind) << 32 | line->bytes);
    if (line->kind != Kind::pad) {
      if (line->place >= sources.size()) return Machine::now->fail("a message of nobody");
      const std::uint32_t number = next[line->place]++;
      if (number >= sources[line->place].size()) return Machine::now->fail("a message too many");
      const auto words = words_of(number, sources[line->place][number]);
      if (line->kind != Kind::message || line->bytes != 4 * words.size() ||
          std::memcmp(line->body(), words.data(), line->bytes) != 0)
        return Machine::now->fail("a message is not what was sent, or not in order");
      --left;
      Machine::now->step(line->place);
    }
    reader.pop();
  }
  if (reader.next() != nullptr) Machine::now->fail("stale data pass for a message");
}

// Runs `make`'s tasks in every order.
template <class Memory>
void explore(const std::function<std::vector<std::function<void()>>(Memory&)>& make) {
  Machine machine;
  const auto memory = std::make_unique<Memory>();
  do {
    new (memory.get()) Memory();
    machine.run(make(*memory), {{memory.get(), sizeof(Memory)}});
    ASSERT_EQ(machine.failure, "") << "in run " << machine.runs;
  } while (machine.next());
  testing::Test::RecordProperty("states", std::to_string(machine.states()));
  testing::Test::RecordProperty("runs", std::to_string(machine.runs));
  EXPECT_GT(machine.states(), 100u);
}

using Lengths = std::vector<std::uint32_t>;

void ring(std::uint64_t size, const Lengths& lengths) {
  using Memory = Shared<RingControl>;
  explore<Memory>([&](Memory& memory) {
    return std::vector<std::function<void()>>{[&, size] {
                                                RingWriter writer(memory.front, size);
                                                send_all(writer, 0, lengths);
                                              },
                                              [&, size] {
                                                RingReader reader(memory.front, size);
                                                read_all(reader, {lengths});
                                              }};
  });
}

TEST(CircularBuffersInEveryOrder, RingOfSingleLines) {
  ring(4, Lengths(14, 1));
}
TEST(CircularBuffersInEveryOrder, RingOfPairsAndSingles) {
  ring(8, {2, 1, 2, 2, 2, 1, 2, 2, 2, 1, 2, 1, 1}); // each lap ends with a line left out
}

void queue(std::uint64_t size, const std::vector<Lengths>& sources) {
  using Memory = Shared<SegmentHeader>;
  explore<Memory>([&](Memory& memory) {
    std::vector<std::function<void()>> tasks;
    for (Rank source = 0; source < sources.size(); ++source) {
      tasks.push_back([&, source, size] {
        SharedQueueWriter writer(memory.front, CircularBuffer(memory.lines, size),
                                 memory.seats[source]);
        send_all(writer, source, sources[source]);
      });
    }
    tasks.push_back([&, size] {
      SharedQueueReader reader(memory.front, CircularBuffer(memory.lines, size));
      read_all(reader, sources);
    });
    return tasks;
  });
}

TEST(CircularBuffersInEveryOrder, QueueOfTwoSendersOfSingleLines) {
  queue(2, {{1, 1, 1}, {1, 1}});
}
TEST(CircularBuffersInEveryOrder, QueueOfTwoSendersOfPairsAndSingles) {
  queue(4, {{2, 1, 2}, {1, 2}});
}
TEST(CircularBuffersInEveryOrder, QueueOfThreeSenders) {
  queue(2, {{1}, {1}, {1}});
}

// As SharedQueueWriter::write(), with steps at which a process may be killed.
struct SlowWriter {
  SharedQueueWriter writer;
  CircularBuffer buffer;
  bool write(Kind kind, Rank source, const MessageBody& body) {
    std::uint64_t position = 0, gap = 0;
    if (!writer.take(lines_for(body.header_bytes), position, gap)) return false;
    if (gap > 0) {
      fill(buffer.at(position), Kind::pad, {source}, {});
      buffer.publish(position);
    }
    fill(buffer.at(position + gap), kind, {source}, body);
    Machine::now->changed();
    Machine::now->step(0);
    buffer.publish(position + gap);
    return true;
  }
};

// Reads all messages of those that are not killed, and what source 0 sent until it was.
void read_of_survivors(Shared<SegmentHeader>& memory, std::uint64_t size,
                       const std::vector<Lengths>& sources, bool careful) {
  SharedQueueReader reader(memory.front, CircularBuffer(memory.lines, size));
  std::vector<std::uint32_t> next(sources.size());
  const auto all_read = [&] {
    for (Rank source = 0; source < sources.size(); ++source)
      if (next[source] < sources[source].size() && (source > 0 || memory.killed == 0)) return false;
    return true;
  };
  const auto runs = [&](std::size_t source) {
    return careful && (source > 0 || memory.killed == 0);
  };
  while (!all_read()) {
    std::size_t read = 0;
    for (const std::uint32_t number : next)
      read = read * 16 + number;
    Machine::now->between(read, reader);
    const std::uint64_t before = Machine::now->version();
    const Line* const line = reader.next();
    if (line == nullptr) {
      if (memory.killed == 0 || !reader.leave_out_abandoned(memory.seats, runs))
        Machine::now->wait([before] { return Machine::now->version() != before; });
      continue;
    }
    if (line->kind != Kind::pad) {
      const std::uint32_t number = next.at(line->place)++;
      const auto words = words_of(number, sources[line->place].at(number));
      if (line->bytes != 4 * words.size() ||
          std::memcmp(line->body(), words.data(), line->bytes) != 0)
        return Machine::now->fail("a message is not what was sent, or not in order");
    }
    reader.pop();
  }
}

// A sender is killed, at any step; what the others send arrives. The first failure.
std::string queue_with_a_kill(std::uint64_t size, const std::vector<Lengths>& sources,
                              bool careful = true) {
  using Memory = Shared<SegmentHeader>;
  Machine machine;
  const auto memory = std::make_unique<Memory>();
  do {
    new (memory.get()) Memory();
    std::vector<std::function<void()>> tasks;
    for (Rank source = 0; source < sources.size(); ++source) {
      tasks.push_back([&, source] {
        const CircularBuffer buffer(memory->lines, size);
        SharedQueueWriter writer(memory->front, buffer, memory->seats[source]);
        SlowWriter slow{writer, buffer};
        if (source == 0)
          send_all(slow, source, sources[source]);
        else
          send_all(writer, source, sources[source]);
      });
    }
    tasks.push_back([&] { read_of_survivors(*memory, size, sources, careful); });
    tasks.push_back([&] {
      machine.kill(0);
      memory->killed = 1;
      machine.changed();
    });
    machine.run(std::move(tasks), {{memory.get(), sizeof(Memory)}});
  } while (machine.failure.empty() && machine.next());
  return machine.failure;
}

TEST(CircularBuffersInEveryOrder, QueueOfWhichASenderIsKilled) {
  EXPECT_EQ(queue_with_a_kill(2, {{1}, {1, 1}}), "");
  EXPECT_EQ(queue_with_a_kill(4, {{2}, {1, 2}}), "");
  EXPECT_EQ(queue_with_a_kill(4, {{1, 2}, {1, 1}}), "");
  EXPECT_EQ(queue_with_a_kill(2, {{1, 1}, {1, 1}}), "");
}

TEST(CircularBuffersInEveryOrder, ToLeaveOutLinesOfWhoRunsIsFound) {
  EXPECT_NE(queue_with_a_kill(4, {{2}, {1, 2}}, false), "");
}

// Two processes that talk by rings and in turn.
struct ChannelRings {
  RingControl control;
  Line lines[8] = {};
};
struct ChannelSpace {
  ChannelRings to[2]; // the first, the second
  Line block[2] = {};
  std::uint32_t ended = 0;
};

// Whether two scripts end: each message that one waits for is sent before the other waits for ever.
bool ends(const std::string& first, const std::string& second) {
  const std::string* scripts[2] = {&first, &second};
  std::size_t at[2] = {}, sent[2] = {}, received[2] = {};
  for (bool moved = true; moved;) {
    moved = false;
    for (unsigned who = 0; who < 2; ++who) {
      while (at[who] < scripts[who]->size()) {
        const bool sends = (*scripts[who])[at[who]] == 's';
        if (!sends && received[who] == sent[1 - who]) break;
        ++(sends ? sent : received)[who];
        ++at[who];
        moved = true;
      }
    }
  }
  return at[0] == first.size() && at[1] == second.size();
}

// What one of them does: s for a send, r for the next message. If `careless` it does not tell in
// its ring what it has written in turn.
void converse(ChannelSpace& space, unsigned who, const std::string& script, bool careless) {
  PairChannel channel;
  channel.out = RingWriter(space.to[1 - who].control, 8);
  channel.in = RingReader(space.to[who].control, 8);
  channel.mailbox = Mailbox(reinterpret_cast<std::byte*>(space.block), who == 0);
  std::uint32_t sent = 0, received = 0, early = 0;
  const auto lines_of = [](std::uint32_t number) { return number % 3 == 1 ? 2u : 1u; };
  const auto write = [&](const MessageBody& body) {
    if (!careless || channel.mailbox.is_for_answer())
      return channel.write(Kind::message, body) != PairChannel::Written::nothing;
    const Mark mark = {0, channel.mailbox.mark(channel.in.position()).seen};
    return channel.out.write(Kind::message, mark, body);
  };
  // Takes what comes next, and tells whether that is a message.
  const auto read = [&] {
    const Line* const line = channel.next();
    const bool is_message = line->kind != Kind::pad;
    if (is_message) {
      const auto words = words_of(received, lines_of(received));
      ++received;
      if (line->bytes != 4 * words.size() ||
          std::memcmp(line->body(), words.data(), line->bytes) != 0)
        Machine::now->fail("a message is not what was sent, or not in order");
    }
    channel.pop();
    return is_message;
  };
  for (std::size_t step = 0; step < script.size(); ++step) {
    Machine::now->between(step * script.size() + early, channel);
    if (script[step] == 's') {
      const auto words = words_of(sent, lines_of(sent));
      ++sent;
      // While there is no room it reads: the other may wait for that.
      for (;;) {
        const std::uint64_t before = Machine::now->version();
        if (write({words.data(), 4 * words.size(), nullptr, 0})) break;
        Machine::now->wait(
            [&] { return channel.next() != nullptr || Machine::now->version() != before; });
        if (channel.next() != nullptr && read()) ++early;
      }
    } else if (early > 0) {
      --early;
    } else {
      do {
        Machine::now->wait([&] { return channel.next() != nullptr; });
        if (channel.next() == nullptr) return Machine::now->fail("a message goes away");
      } while (!read());
    }
  }
  // For the other may still wait for room.
  ++space.ended;
  Machine::now->changed();
  while (space.ended < 2) {
    Machine::now->between(script.size() * script.size(), channel);
    Machine::now->wait([&] { return channel.next() != nullptr || space.ended == 2; });
    if (channel.next() != nullptr) read();
  }
}

// Runs all pairs of scripts of so many sends and reads, each in every order; the first failure.
std::string all_exchanges(std::size_t sends, std::size_t reads, bool careless,
                          std::size_t& states) {
  const auto space = std::make_unique<ChannelSpace>();
  std::string first = std::string(reads, 'r') + std::string(sends, 's');
  do {
    std::string second = std::string(reads, 'r') + std::string(sends, 's');
    do {
      if (!ends(first, second)) continue;
      Machine machine;
      do {
        new (space.get()) ChannelSpace();
        machine.run({[&] { converse(*space, 0, first, careless); },
                     [&] { converse(*space, 1, second, careless); }},
                    {{space.get(), sizeof(ChannelSpace)}});
        if (!machine.failure.empty()) return first + " " + second + ": " + machine.failure;
      } while (machine.next());
      states += machine.states();
    } while (std::next_permutation(second.begin(), second.end()));
  } while (std::next_permutation(first.begin(), first.end()));
  return "";
}

TEST(CircularBuffersInEveryOrder, ChannelsByRingAndMailbox) {
  std::size_t states = 0;
  EXPECT_EQ(all_exchanges(3, 3, false, states), "");
  EXPECT_EQ(all_exchanges(4, 2, false, states), "");
  RecordProperty("states", std::to_string(states));
  EXPECT_GT(states, 10'000u);
}

TEST(CircularBuffersInEveryOrder, WhoDoesNotTellWhatWentBeforeIsFound) {
  std::size_t states = 0;
  EXPECT_NE(all_exchanges(3, 3, true, states), "");
}

// That a mistake would be seen: a sender that stamps its lines before they are filled.
TEST(CircularBuffersInEveryOrder, AStampThatComesTooEarlyIsFound) {
  using Memory = Shared<RingControl>;
  Machine machine;
  const auto memory = std::make_unique<Memory>();
  do {
    new (memory.get()) Memory();
    machine.run(
        {[&] {
           const CircularBuffer buffer(memory->lines, 8);
           for (std::uint32_t i = 0; i < 3; ++i) {
             const auto words = words_of(i, 1);
             buffer.publish(i);
             fill(buffer.at(i), Kind::message, 0, {words.data(), 4 * words.size(), nullptr, 0});
           }
         },
         [&] {
           RingReader reader(memory->front, 8);
           read_all(reader, {Lengths(3, 1)});
         }},
        {{memory.get(), sizeof(Memory)}});
  } while (machine.failure.empty() && machine.next());
  EXPECT_NE(machine.failure, "");
}

// ---- Claims: of two processes that could move data, one does.

struct ClaimedGets {
  SegmentHeader header;
  std::uint32_t asked = 0; // the ticket of the request that the owner sees
  std::uint32_t moved = 0; // rounds whose data the owner has moved, a bit each
  std::uint32_t ended = 0; // rounds that are over: whose memory must not be written
};

// `checks`: the owner asks the claim before it moves data.
std::string claimed_gets(bool checks) {
  constexpr std::uint32_t rounds = 3;
  Machine machine;
  const auto memory = std::make_unique<ClaimedGets>();
  do {
    new (memory.get()) ClaimedGets();
    const auto word = [](std::uint32_t& value) { return std::stepped_atomic_ref(value); };
    const auto asking = [&] {
      Claims claims(memory->header);
      for (std::uint32_t round = 1; round <= rounds; ++round) {
        const std::uint32_t claim = claims.take();
        const std::uint32_t ticket = claims.offer(claim);
        word(memory->asked).store(ticket, std::memory_order_release);
        if (!claims.take_back(claim, ticket))
          Machine::now->wait([&, round] { return (memory->moved & 1u << round) != 0; });
        word(memory->ended).store(round, std::memory_order_release);
        claims.give_back(claim);
      }
    };
    // The owner may read a request late, when the next one has been made with the same claim.
    const auto owner = [&] {
      for (std::uint32_t turn = 0; turn < rounds; ++turn) {
        const std::uint32_t ticket = word(memory->asked).load(std::memory_order_acquire);
        if (ticket == 0 || (memory->moved & 1u << ticket) != 0) continue;
        if (checks && !Claims::take_from(memory->header, 0, ticket)) continue;
        if (word(memory->ended).load(std::memory_order_acquire) >= ticket)
          return Machine::now->fail("data are moved to memory that the user has back");
        word(memory->moved).store(memory->moved | 1u << ticket, std::memory_order_release);
      }
      // So that nobody waits for it: what is asked from now on is taken back.
      for (std::uint32_t round = 1; round <= rounds; ++round)
        if (Claims::take_from(memory->header, 0, round))
          word(memory->moved).store(memory->moved | 1u << round, std::memory_order_release);
    };
    machine.run({asking, owner}, {{memory.get(), sizeof(ClaimedGets)}});
  } while (machine.failure.empty() && machine.next());
  return machine.failure;
}

TEST(ClaimsInEveryOrder, OneOfTwoMovesTheData) {
  EXPECT_EQ(claimed_gets(true), "");
}
TEST(ClaimsInEveryOrder, AnOwnerThatDoesNotAskIsFound) {
  EXPECT_NE(claimed_gets(false), "");
}

// ---- Chunks: a chunk is one process's from take() to free().

struct ChunkMemory {
  std::byte front[2 * (line_bytes + line_bytes)] = {};
};

TEST(ChunksInEveryOrder, EachIsOneProcessAtATime) {
  explore<ChunkMemory>([](ChunkMemory& memory) {
    const auto user = [&memory](std::uint32_t seat) {
      return [&memory, seat] {
        const Chunks chunks(memory.front, {.offset = 0, .bytes = line_bytes, .count = 2});
        for (std::uint32_t use = 0; use < 2; ++use) {
          std::uint32_t chunk = 0;
          if (!chunks.take(0, seat)) {
            chunk = 1;
            if (!chunks.take(1, seat)) continue;
          }
          auto& word = *reinterpret_cast<std::uint32_t*>(chunks.data(chunk));
          std::stepped_atomic_ref(word).store(seat + 1, std::memory_order_relaxed);
          if (std::stepped_atomic_ref(word).load(std::memory_order_relaxed) != seat + 1)
            Machine::now->fail("two processes write into a chunk");
          if (chunks.holder(chunk) != seat) Machine::now->fail("a chunk is somebody else's");
          chunks.free(chunk);
        }
      };
    };
    return std::vector<std::function<void()>>{user(0), user(1)};
  });
}

} // namespace
} // namespace macadam::prove
