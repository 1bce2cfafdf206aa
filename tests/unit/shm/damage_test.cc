// SPDX-License-Identifier: BSD-3-Clause
// What stands in shared memory is damaged: whoever reads it says so, and follows no index, offset
// or length that leads elsewhere.
#include "endpoint.h"

#include <gtest/gtest.h>

namespace macadam::net::shm::test {
namespace {

// What rank 0 says about a message of rank 1; empty if nothing.
constexpr std::uint32_t own = ~std::uint32_t{0} - 1; // its own seat
std::string complaint(Kind kind, const MessageBody& body, std::uint32_t source = own,
                      std::uint16_t bytes = 0) {
  Job job(2);
  Job::View views[] = {{job, 0}, {job, 1}};
  Endpoint self(views[0], {}), peer(views[1], {});
  const Mapping front = map_front(views[1], 0);
  const CircularBuffer buffer(front.at(front.header().queue_offset), front.header().queue_lines);
  const std::uint32_t seat = take_seat(front.base(), {views[1].number(), 1}).value();
  SharedQueueWriter writer(front.header(), buffer, seats_in(front.base(), seat + 1)[seat]);
  EXPECT_TRUE(writer.write(kind, source == own ? seat : source, body));
  if (bytes > 0) buffer.at(0).bytes = bytes;
  self.transport().poll(self);
  if (!self.failure) return {};
  EXPECT_EQ(self.failure->error_class, MPI_ERR_INTERN);
  return self.failure->text;
}

template <class Body>
bool is_refused(Kind kind, const Body& body) {
  const std::string text = complaint(kind, only(body));
  return text.find("rank 1 has written is damaged") != std::string::npos;
}

TEST(Damage, OfTheLengthOfALine) {
  EXPECT_EQ(complaint(Kind::message, {"text", 5, nullptr, 0}), "");
  EXPECT_NE(complaint(Kind::message, {"text", 5, nullptr, 0}, 1, 60'000), "");
  // It would end behind the last line of the circular buffer.
  std::array<Line, 128> lines{};
  const CircularBuffer buffer(lines.data(), lines.size());
  lines[0].bytes = longest_inline;
  EXPECT_TRUE(buffer.holds(0, lines[0]));
  EXPECT_TRUE(buffer.holds(128 - lines_for(longest_inline), lines[0]));
  EXPECT_FALSE(buffer.holds(129 - lines_for(longest_inline), lines[0]));
  lines[0].bytes = longest_inline + 1;
  EXPECT_FALSE(buffer.holds(0, lines[0]));
}

TEST(Damage, OfTheSender) {
  EXPECT_NE(complaint(Kind::message, {"text", 5, nullptr, 0}, 2), "");
  EXPECT_NE(complaint(Kind::message, {"text", 5, nullptr, 0}, ~Rank{0}), "");
}

TEST(Damage, OfTheKind) {
  EXPECT_NE(complaint(static_cast<Kind>(200), {}), "");
  for (const Kind kind : {Kind::fragment, Kind::grant, Kind::put_fragment, Kind::get_request,
                          Kind::get_done, Kind::notified_put, Kind::notification})
    EXPECT_NE(complaint(kind, {"text", 5, nullptr, 0}), "") << static_cast<int>(kind);
}

// A whole message of 100 bytes in the first chunk of its sender.
Fragment sound_fragment() {
  return {.all = 100, .left = 0, .bytes = 100, .chunk = 0, .senders = true};
}

TEST(Damage, OfACell) {
  EXPECT_FALSE(is_refused(Kind::fragment, sound_fragment()));
  Fragment fragment = sound_fragment();
  fragment.chunk = 200;
  EXPECT_TRUE(is_refused(Kind::fragment, fragment));
  EXPECT_TRUE(is_refused(Kind::put_fragment, PutFragment{fragment, 0, 0, 0}));
  fragment = sound_fragment();
  fragment.all = fragment.bytes = 1 << 30;
  EXPECT_TRUE(is_refused(Kind::fragment, fragment));
  EXPECT_TRUE(is_refused(Kind::put_fragment, PutFragment{fragment, 0, 0, 0}));
  fragment = sound_fragment();
  EXPECT_TRUE(is_refused(Kind::put_fragment, PutFragment{fragment, 0, 99, 0})); // a shorter tail
  EXPECT_TRUE(is_refused(Kind::put_fragment, PutFragment{fragment, 0, 1 << 30, 0}));
  fragment.left = 1; // more than all
  EXPECT_TRUE(is_refused(Kind::fragment, fragment));
  fragment = sound_fragment();
  fragment.bytes = 50; // not the first one, which has not come
  EXPECT_TRUE(is_refused(Kind::fragment, fragment));
  fragment = sound_fragment();
  fragment.all = std::uint64_t{1} << 40;
  fragment.left = fragment.all - 100; // longer than a chunk
  EXPECT_TRUE(is_refused(Kind::fragment, fragment));
}

TEST(Damage, OfARing) {
  const Extent arena{16 * Extent::grain, 16 * Extent::grain};
  const auto at = [&](std::uint64_t address) { return engine::RemoteMemory{address, arena.key()}; };
  const engine::RemoteMemory none{};
  const auto is_refused_grant = [&](std::uint32_t lines, engine::RemoteMemory ring,
                                    engine::RemoteMemory mailbox) {
    return is_refused(Kind::grant, Grant{lines, ring, mailbox});
  };
  const engine::RemoteMemory sound = at(arena.offset);
  EXPECT_FALSE(is_refused_grant(512, sound, none));
  EXPECT_TRUE(is_refused_grant(512, at(std::uint64_t{1} << 40), none));
  EXPECT_TRUE(is_refused_grant(512, at(arena.offset + 8), none));
  EXPECT_TRUE(is_refused_grant(512, at(arena.end() - 64), none));
  EXPECT_TRUE(is_refused_grant(500, sound, none));
  EXPECT_TRUE(is_refused_grant(0, sound, none));
  EXPECT_TRUE(is_refused_grant(4, sound, none));
  EXPECT_TRUE(is_refused_grant(std::uint32_t{1} << 31, sound, none));
  EXPECT_TRUE(is_refused_grant(512, sound, at(~std::uint64_t{63})));
}

TEST(Damage, OfAClaim) {
  GetRequest get{};
  get.claim = SegmentHeader::claims;
  EXPECT_TRUE(is_refused(Kind::get_request, get));
}

TEST(Damage, OfAHeader) {
  const auto is_refused_with = [](const std::function<void(SegmentHeader&)>& damage) {
    Job job(2);
    Job::View views[] = {{job, 0}, {job, 1}};
    Endpoint self(views[0], {}), peer(views[1], {});
    damage(map_front(views[1], 1).header());
    try {
      self.link(1);
    } catch (const base::Error& error) {
      return error.text.find("rank 1 has written is damaged") != std::string::npos;
    }
    return false;
  };
  EXPECT_FALSE(is_refused_with([](SegmentHeader&) {}));
  EXPECT_TRUE(is_refused_with([](SegmentHeader& header) { header.queue_lines = 1000; }));
  EXPECT_TRUE(is_refused_with([](SegmentHeader& header) { header.queue_lines = 2; }));
  EXPECT_TRUE(
      is_refused_with([](SegmentHeader& header) { header.queue_lines = std::uint64_t{1} << 60; }));
  EXPECT_TRUE(
      is_refused_with([](SegmentHeader& header) { header.queue_offset = std::uint64_t{1} << 50; }));
  EXPECT_TRUE(is_refused_with([](SegmentHeader& header) { header.chunk_count = 100; }));
  EXPECT_TRUE(is_refused_with([](SegmentHeader& header) { header.chunk_bytes = 1 << 31; }));
  EXPECT_TRUE(is_refused_with([](SegmentHeader& header) { header.chunks_offset = ~0ull; }));
  EXPECT_TRUE(is_refused_with([](SegmentHeader& header) { header.front_bytes = 100; }));
  EXPECT_TRUE(
      is_refused_with([](SegmentHeader& header) { header.front_bytes = std::uint64_t{1} << 50; }));
}

} // namespace
} // namespace macadam::net::shm::test
