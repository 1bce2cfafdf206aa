// SPDX-License-Identifier: BSD-3-Clause
// What head and proxies of a job on several machines say to each other, as bytes.
#include "base/error.h"
#include "tools/mpiexec/frames.h"
#include "tools/mpiexec/proxy_order.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>

namespace macadam::tools {
namespace {

// A stream that a test feeds, and one whose bytes it sees.
class Frames : public ::testing::Test {
 protected:
  struct Side {
    int from_test, to_test;
    FrameStream stream;
  };
  static std::unique_ptr<Side> make() {
    int in[2], out[2];
    EXPECT_EQ(pipe(in) | pipe(out), 0);
    return std::unique_ptr<Side>(new Side{in[1], out[0], FrameStream(in[0], out[1])});
  }
  static void feed(Side& side, std::string_view bytes) {
    ASSERT_EQ(::write(side.from_test, bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_TRUE(side.stream.read_some());
  }
  // All that a side says when it sends these frames.
  static std::string said(const std::vector<std::pair<FrameKind, std::string>>& frames) {
    const auto side = make();
    for (const auto& [kind, text] : frames) {
      boot::PacketWriter body;
      body.text(text);
      side->stream.send(kind, body);
    }
    side->stream.write_some();
    std::string bytes(1 << 16, 0);
    bytes.resize(static_cast<std::size_t>(read(side->to_test, bytes.data(), bytes.size())));
    return bytes;
  }
};

TEST_F(Frames, ComeWholeHoweverTheirBytesCome) {
  const std::string bytes = said({{FrameKind::output, "one"}, {FrameKind::report, ""}});
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const auto side = make();
    std::vector<std::pair<FrameKind, std::string>> found;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      feed(*side, std::string_view(bytes).substr(at, piece));
      while (std::optional<Frame> frame = side->stream.next())
        found.emplace_back(frame->kind, frame->body.text());
    }
    ASSERT_EQ(found.size(), 2u) << piece;
    EXPECT_EQ(found[0], (std::pair{FrameKind::output, std::string("one")}));
    EXPECT_EQ(found[1].first, FrameKind::report);
  }
}

TEST_F(Frames, AreFoundBehindAGreeting) {
  const auto side = make();
  feed(*side, "Welcome to b!\nmacadam mpiexec is installed here\n" + said({{FrameKind::end, "x"}}));
  const std::optional<Frame> frame = side->stream.next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->kind, FrameKind::end);
}

TEST_F(Frames, OfAnotherVersionAreRefused) {
  const auto side = make();
  feed(*side, "\nmacadam mpiexec proxy, version 0.0.1 (1.1)\n");
  EXPECT_THROW(side->stream.next(), Misunderstood);
}

TEST_F(Frames, ThatAreNoneAreRefused) {
  const std::string good = said({});
  for (const std::string& bad : {std::string(8, '\xff'), std::string("\0\0\0\0\xff\0\0\0", 8)}) {
    const auto side = make();
    feed(*side, good + bad);
    EXPECT_THROW(side->stream.next(), Misunderstood);
  }
  const auto side = make();
  for (int i = 0; i < 3; ++i)
    feed(*side, std::string(30'000, 'y'));
  EXPECT_THROW(side->stream.next(), Misunderstood) << "no greeting is so long";
}

TEST_F(Frames, EndWithTheirStream) {
  const auto side = make();
  close(side->from_test);
  EXPECT_FALSE(side->stream.read_some());
}

TEST_F(Frames, CarryWhatAProxyIsToDo) {
  ProxyOrder order;
  order.nodes = {{"a", 2}, {"b", 1}};
  order.own = 1;
  order.machines = {0, 1, 0};
  order.sets = {{"ocean", 0, 2}};
  order.secret[3] = 7;
  Program program;
  program.ranks = 1;
  program.command = {"./p", "", "a b"};
  program.environment = {{"A", "1"}};
  program.folder = "/f";
  order.options.programs = {program};
  order.options.environment = {{"B", ""}};
  order.options.label = true;
  order.options.binding = Binding::core;
  order.options.universe_size = 9;
  order.options.silence_seconds = 3;
  order.folder = "/g";
  order.environment = {"C=c"};
  boot::PacketWriter packet;
  write(packet, order);
  boot::PacketReader reader(packet.bytes());
  const ProxyOrder found = read_order(reader);
  boot::PacketWriter again;
  write(again, found);
  EXPECT_EQ(again.bytes(), packet.bytes());
  EXPECT_EQ(found.nodes[1].host, "b");
  EXPECT_EQ(found.machines, order.machines);
  EXPECT_EQ(found.options.programs.at(0).command, program.command);
  EXPECT_EQ(found.options.binding, Binding::core);
  EXPECT_EQ(found.environment, order.environment);
}

TEST_F(Frames, OfAnOrderThatIsCutThrow) {
  boot::PacketWriter packet;
  write(packet, ProxyOrder{});
  for (std::size_t size = 0; size < packet.bytes().size(); ++size) {
    boot::PacketReader reader(
        {packet.bytes().begin(), packet.bytes().begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_THROW(read_order(reader), base::Error) << size;
  }
}

} // namespace
} // namespace macadam::tools
