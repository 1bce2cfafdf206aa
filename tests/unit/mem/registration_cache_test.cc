// SPDX-License-Identifier: BSD-3-Clause
#include "mem/registration_cache.h"

#include "base/error.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>
#include <vector>

namespace macadam::mem {
namespace {

constexpr std::size_t page = 4096;

void* at(std::size_t pages, std::size_t offset = 0) {
  return reinterpret_cast<void*>(0x10000000 + pages * page + offset);
}

// A device without hardware: what it has pinned, and whether it refuses.
class Pins final : public Registrar, public InvalidationSource {
 public:
  [[nodiscard]] const std::string& name() const override { return name_; }
  std::unique_ptr<MemoryRegion> register_memory(void* memory, std::size_t bytes, Access) override {
    ++asked;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    const Range range{begin, begin + bytes};
    pinned_unwatched += last_watched != range;
    if (live.size() >= most || bytes > longest)
      base::fail(MPI_ERR_NO_MEM, "{} bytes are refused", bytes);
    return std::make_unique<Pin>(*this, range);
  }
  bool take(Range& gone) override {
    if (events.empty()) return false;
    gone = events.front();
    events.pop_front();
    return true;
  }
  bool watch(const Range& range) override {
    last_watched = range;
    return range.end <= watchable_end;
  }

  void free_memory(std::size_t first_page, std::size_t pages) {
    const auto begin = reinterpret_cast<std::uintptr_t>(at(first_page));
    events.push_back({begin, begin + pages * page});
  }

  struct Pin final : MemoryRegion {
    Pin(Pins& of, const Range& its_range) : pins(of), range(its_range) {
      remote_key = local_key = ++pins.last_key;
      pins.live.insert(this);
    }
    ~Pin() override { pins.live.erase(this); }
    Pins& pins;
    Range range;
  };
  std::set<Pin*> live;
  std::size_t most = 1000;
  std::size_t longest = 1u << 30;
  unsigned asked = 0;
  unsigned pinned_unwatched = 0;
  std::uint32_t last_key = 0;
  std::deque<Range> events;
  Range last_watched;
  std::uintptr_t watchable_end = UINTPTR_MAX;

 private:
  const std::string name_ = "pins";
};

bool covers(const Registration& registration, const void* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  return registration.range.begin <= begin && registration.range.end >= begin + bytes;
}

struct Cache : testing::Test {
  Pins pins;
  RegistrationCache cache{pins, &pins, 8, 64 * page};

  void nothing_is_watched_from(std::size_t first_page) {
    pins.watchable_end = reinterpret_cast<std::uintptr_t>(at(first_page));
  }
};

TEST_F(Cache, memory_stays_registered_after_its_use) {
  Registration* const first = cache.acquire(at(0, 100), 50);
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(covers(*first, at(0), page)); // whole pages
  const std::uint64_t key = first->packed_key();
  cache.release(*first);
  EXPECT_EQ(cache.find_key(key), nullptr); // not in use
  Registration* const again = cache.acquire(at(0, 3000), 500);
  EXPECT_EQ(again->packed_key(), key);
  EXPECT_EQ(cache.find_key(key), again);
  EXPECT_EQ(cache.counters().registrations, 1u);
  EXPECT_EQ(cache.counters().hits, 1u);
  cache.release(*again);
}

TEST_F(Cache, what_nobody_uses_is_given_back_for_others) {
  Registration* const used = cache.acquire(at(0), page);
  for (const std::size_t pages : {2, 4, 6})
    cache.release(*cache.acquire(at(pages), page));
  pins.free_memory(2, 1);
  Registration* const found = cache.find(at(4), page); // what has gone is in the dead list now
  EXPECT_TRUE(cache.give_back_unused());
  EXPECT_EQ(pins.live.size(), 2u);
  EXPECT_FALSE(cache.give_back_unused());
  cache.release(*found);
  cache.release(*used);
  EXPECT_TRUE(cache.give_back_unused());
  EXPECT_TRUE(pins.live.empty());
}

TEST_F(Cache, without_a_source_of_invalidation_nothing_stays) {
  RegistrationCache blind(pins, nullptr, 8, 64 * page);
  Registration* const first = blind.acquire(at(0), 10);
  Registration* const second = blind.acquire(at(0), 10);
  EXPECT_EQ(first, second); // in use, it is shared
  blind.release(*first);
  blind.release(*second);
  blind.collect();
  EXPECT_TRUE(pins.live.empty());
  EXPECT_EQ(blind.find(at(0), 10), nullptr);
}

TEST_F(Cache, parts_of_what_is_registered_need_no_registration) {
  RegistrationCache blind(pins, nullptr, 8, 64 * page);
  // Two arrays that meet in the middle of a page.
  Registration* const one = blind.register_range(at(0, 100), 2 * page);
  Registration* const two = blind.register_range(at(2, 100), 2 * page);
  ASSERT_NE(one, two);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(blind.find(at(0, 100), 8), one);
    EXPECT_EQ(blind.acquire(at(2, 90), 10), one);
    EXPECT_EQ(blind.acquire(at(3), page), two);
  }
  EXPECT_EQ(pins.asked, 2u);
  for (int i = 0; i < 3; ++i) {
    blind.release(*one);
    blind.release(*one);
    blind.release(*two);
  }
  blind.deregister(*one);
  EXPECT_EQ(blind.find(at(0, 100), 8), nullptr);
  blind.deregister(*two);
  blind.collect();
  EXPECT_TRUE(pins.live.empty());
}

// Else one that is registered for a part would hold the rest for longer than the program keeps it.
TEST_F(Cache, a_part_has_a_name_of_its_own) {
  RegistrationCache blind(pins, nullptr, 8, 64 * page);
  Registration* const whole = blind.register_range(at(0), 4 * page);
  Registration* const part = blind.register_range(at(1), page);
  EXPECT_NE(part, whole);
  blind.deregister(*whole);
  EXPECT_EQ(blind.find(at(3), 8), nullptr);
  EXPECT_EQ(blind.find(at(1), 8), part);
  blind.release(*part);
  blind.deregister(*part);
}

TEST_F(Cache, what_cannot_be_watched_does_not_stay) {
  nothing_is_watched_from(4);
  Registration* const first = cache.acquire(at(4), 2 * page);
  EXPECT_EQ(cache.acquire(at(4, 8), 2 * page - 8), first); // for the same pages it is shared
  // For a part of them it is not: that use may be the longer one, and the rest go away.
  Registration* const part = cache.acquire(at(5), 1);
  EXPECT_NE(part, first);
  cache.release(*first);
  cache.release(*first);
  cache.release(*part);
  cache.collect();
  EXPECT_TRUE(pins.live.empty());
}

TEST_F(Cache, watched_and_unwatched_memory_do_not_mix) {
  Registration* const watched = cache.acquire(at(2), 2 * page);
  nothing_is_watched_from(4);
  Registration* const across = cache.acquire(at(3), 2 * page);
  EXPECT_EQ(across->range.begin, reinterpret_cast<std::uintptr_t>(at(3)));
  cache.release(*watched);
  cache.release(*across);
  cache.collect();
  EXPECT_TRUE(pins.live.empty());
}

TEST_F(Cache, memory_that_went_away_is_registered_anew) {
  Registration* const old = cache.acquire(at(4), 3 * page);
  const std::uint64_t old_key = old->packed_key();
  cache.release(*old);
  pins.free_memory(5, 1); // one page in the middle
  Registration* const fresh = cache.acquire(at(4), 3 * page);
  EXPECT_NE(fresh->packed_key(), old_key);
  EXPECT_EQ(cache.find_key(old_key), nullptr);
  EXPECT_EQ(cache.counters().invalidated, 1u);
  EXPECT_EQ(pins.live.size(), 1u);
  cache.release(*fresh);
}

TEST_F(Cache, memory_that_goes_away_in_use_lives_until_the_use_ends) {
  Registration* const old = cache.acquire(at(4), page);
  pins.free_memory(4, 1);
  Registration* const fresh = cache.acquire(at(4), page);
  EXPECT_NE(fresh, old);
  EXPECT_EQ(pins.live.size(), 2u);
  EXPECT_EQ(cache.find_key(old->packed_key()), old);
  cache.release(*old);
  cache.collect();
  EXPECT_EQ(pins.live.size(), 1u);
  EXPECT_EQ(cache.find(at(4), page), fresh);
  cache.release(*fresh);
  cache.release(*fresh);
}

TEST_F(Cache, a_neighbour_is_not_touched) {
  Registration* const left = cache.acquire(at(0), page);
  Registration* const right = cache.acquire(at(2), page);
  const std::uint64_t key = right->packed_key();
  cache.release(*left);
  cache.release(*right);
  pins.free_memory(0, 2);
  EXPECT_EQ(cache.find(at(0), 1), nullptr);
  Registration* const still = cache.find(at(2), 1);
  ASSERT_NE(still, nullptr);
  EXPECT_EQ(still->packed_key(), key);
  cache.release(*still);
}

TEST_F(Cache, one_across_several_takes_their_place) {
  Registration* const one = cache.acquire(at(0), 2 * page);
  Registration* const two = cache.acquire(at(4), 2 * page);
  Registration* const all = cache.acquire(at(1), 4 * page);
  EXPECT_TRUE(covers(*all, at(0), 6 * page));
  cache.release(*one);
  cache.release(*two);
  cache.collect();
  EXPECT_EQ(pins.live.size(), 1u);
  Registration* const inside = cache.find(at(5), page);
  EXPECT_EQ(inside, all);
  cache.release(*inside);
  cache.release(*all);
}

TEST_F(Cache, what_lies_around_may_be_gone) {
  Registration* const wide = cache.acquire(at(0), 4 * page);
  pins.longest = 2 * page; // the rest is no memory any more, and nobody said so
  Registration* const narrow = cache.acquire(at(3), 2 * page);
  ASSERT_NE(narrow, nullptr);
  EXPECT_TRUE(covers(*narrow, at(3), 2 * page));
  cache.release(*wide);
  cache.release(*narrow);
}

TEST_F(Cache, the_least_recently_used_is_let_go) {
  for (std::size_t i = 0; i < 8; ++i)
    cache.release(*cache.acquire(at(2 * i), 1));
  cache.release(*cache.acquire(at(0), 1)); // used again
  cache.release(*cache.acquire(at(100), 1));
  EXPECT_EQ(pins.live.size(), 8u);
  EXPECT_EQ(cache.counters().evictions, 1u);
  EXPECT_EQ(cache.find(at(2), 1), nullptr);
  Registration* const first = cache.find(at(0), 1);
  ASSERT_NE(first, nullptr);
  cache.release(*first);
}

TEST_F(Cache, bytes_are_capped) {
  for (std::size_t i = 0; i < 4; ++i)
    cache.release(*cache.acquire(at(100 * i), 30 * page));
  EXPECT_LE(cache.pinned_bytes(), 64 * page);
  // Longer than the cap: registered for its use, not kept.
  Registration* const huge = cache.acquire(at(1000), 100 * page);
  ASSERT_NE(huge, nullptr);
  cache.release(*huge);
  cache.collect();
  EXPECT_LE(cache.pinned_bytes(), 64 * page);
}

TEST_F(Cache, a_device_that_refuses_gets_unused_ones_back_first) {
  pins.most = 3;
  Registration* const used = cache.acquire(at(0), 1);
  cache.release(*cache.acquire(at(2), 1));
  cache.release(*cache.acquire(at(4), 1));
  Registration* const more = cache.acquire(at(6), 1);
  ASSERT_NE(more, nullptr);
  Registration* const other = cache.acquire(at(8), 1);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(cache.acquire(at(10), 1), nullptr); // all are in use
  cache.release(*used);
  Registration* const last = cache.acquire(at(10), 1);
  ASSERT_NE(last, nullptr);
  cache.release(*more);
  cache.release(*other);
  cache.release(*last);
}

TEST_F(Cache, memory_is_watched_before_it_is_pinned) {
  Registration* const one = cache.acquire(at(0), 2 * page);
  EXPECT_EQ(pins.pinned_unwatched, 0u);
  Registration* const two = cache.acquire(at(1), 4 * page); // over a part of the first
  EXPECT_EQ(pins.pinned_unwatched, 0u);
  cache.release(*one);
  cache.release(*two);
}

// Against a plain model: memory of 64 pages, each with the number of times it was mapped anew. A
// registration must hold pages as they are now.
TEST(Random, registrations_hold_what_the_program_sees) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t bound) { return random() % bound; };
    Pins pins;
    RegistrationCache cache(pins, &pins, 6, 40 * page);
    std::vector<unsigned> mapped(64);
    struct Seen {
      Registration* registration;
      std::size_t first;
      std::size_t pages;
    };
    std::vector<Seen> used;
    std::map<std::uint64_t, std::vector<unsigned>> pinned_when; // by key: all pages' numbers
    for (int step = 0; step < 400; ++step) {
      const std::size_t first = below(60);
      const std::size_t pages = 1 + below(4);
      switch (below(4)) {
      case 0: // mapped anew
        for (std::size_t i = first; i < first + pages; ++i)
          ++mapped[i];
        pins.free_memory(first, pages);
        break;
      case 1:
        if (used.empty()) break;
        std::swap(used[below(used.size())], used.back());
        cache.release(*used.back().registration);
        used.pop_back();
        break;
      default: {
        if (used.size() >= 5) break;
        Registration* const got = cache.acquire(at(first, below(page)), (pages - 1) * page + 1);
        ASSERT_NE(got, nullptr);
        auto [when, is_new] = pinned_when.try_emplace(got->region->remote_key, mapped);
        for (std::size_t i = first; i < first + pages; ++i)
          ASSERT_EQ(when->second[i], mapped[i]) << "stale page " << i << ", seed " << seed;
        used.push_back({got, first, pages});
      }
      }
      for (const Seen& one : used)
        ASSERT_TRUE(pins.live.contains(static_cast<Pins::Pin*>(one.registration->region.get())));
    }
    for (const Seen& one : used)
      cache.release(*one.registration);
    cache.collect();
    EXPECT_LE(pins.live.size(), 6u);
  }
}

} // namespace
} // namespace macadam::mem
