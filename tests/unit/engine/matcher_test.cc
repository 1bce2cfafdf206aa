// SPDX-License-Identifier: BSD-3-Clause
// MPI's matching rules alone, against a naive list.
#include "engine/match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace macadam::engine {
namespace {

// Everything in one list, in order, searched from the front: the rules as the standard says them.
class Naive {
 public:
  std::vector<ReceiveRequest*> posted;
  std::vector<Message*> unexpected;

  ReceiveRequest* take_receive(const Envelope& message) {
    const auto found = std::ranges::find_if(posted, [&](const ReceiveRequest* receive) {
      return Matcher::matches(receive->envelope, message);
    });
    if (found == posted.end()) return nullptr;
    ReceiveRequest* const receive = *found;
    posted.erase(found);
    return receive;
  }
  Message* find_unexpected(const Envelope& wanted) const {
    const auto found = std::ranges::find_if(unexpected, [&](const Message* message) {
      return Matcher::matches(wanted, message->envelope);
    });
    return found == unexpected.end() ? nullptr : *found;
  }
};

TEST(Matcher, WildcardRules) {
  const Envelope message{4, 2, 9};
  EXPECT_TRUE(Matcher::matches({4, 2, 9}, message));
  EXPECT_TRUE(Matcher::matches({4, MPI_ANY_SOURCE, 9}, message));
  EXPECT_TRUE(Matcher::matches({4, 2, MPI_ANY_TAG}, message));
  EXPECT_TRUE(Matcher::matches({4, MPI_ANY_SOURCE, MPI_ANY_TAG}, message));
  EXPECT_FALSE(Matcher::matches({5, MPI_ANY_SOURCE, MPI_ANY_TAG}, message));
  EXPECT_FALSE(Matcher::matches({4, 1, MPI_ANY_TAG}, message));
  EXPECT_FALSE(Matcher::matches({4, MPI_ANY_SOURCE, 8}, message));
}

TEST(Matcher, AgreesWithANaiveList) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    // Few tags: long chains. Many: different buckets that collide now and then.
    const int tags = seed % 2 != 0 ? 3 : 1000;
    std::deque<ReceiveRequest> receives;
    std::deque<Message> messages;
    Matcher matcher;
    Naive naive;
    for (int step = 0; step < 5000; ++step) {
      const Envelope exact{4 + static_cast<std::uint64_t>(pick(2)), pick(4), pick(tags)};
      if (pick(2) == 0) {
        ReceiveRequest* const expected = naive.take_receive(exact);
        ASSERT_EQ(matcher.take_receive(exact), expected) << "step " << step;
        if (expected != nullptr) continue;
        messages.emplace_back().envelope = exact;
        matcher.add_unexpected(messages.back());
        naive.unexpected.push_back(&messages.back());
      } else {
        Envelope wanted = exact;
        if (pick(4) == 0) wanted.source = MPI_ANY_SOURCE;
        if (pick(4) == 0) wanted.tag = MPI_ANY_TAG;
        Message* const expected = naive.find_unexpected(wanted);
        ASSERT_EQ(matcher.find_unexpected(wanted), expected) << "step " << step;
        if (expected != nullptr) {
          matcher.remove(*expected);
          std::erase(naive.unexpected, expected);
          continue;
        }
        receives.emplace_back().envelope = wanted;
        matcher.post(receives.back(), receives.back().envelope);
        naive.posted.push_back(&receives.back());
        if (pick(5) == 0) { // cancelled
          ReceiveRequest* const gone =
              naive.posted[static_cast<std::size_t>(pick(static_cast<int>(naive.posted.size())))];
          matcher.remove(*gone);
          std::erase(naive.posted, gone);
        }
      }
      ASSERT_EQ(matcher.any_unexpected(), !naive.unexpected.empty());
      ASSERT_EQ(matcher.wildcards(),
                static_cast<std::uint64_t>(std::ranges::count_if(
                    naive.posted, [](auto* r) { return Matcher::wildcard(r->envelope); })));
    }
    for (ReceiveRequest* receive : naive.posted)
      matcher.remove(*receive);
    while (!naive.unexpected.empty()) {
      matcher.remove(*naive.unexpected.back());
      naive.unexpected.pop_back();
    }
  }
}

} // namespace
} // namespace macadam::engine
