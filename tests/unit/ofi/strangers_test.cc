// SPDX-License-Identifier: BSD-3-Clause
// Whoever reaches the endpoint can send it something; only the job's processes are heard.
#include "world.h"

#include "net/ofi/token.h"

#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>
#include <unistd.h>

namespace macadam::test {
namespace {

TEST(OfiToken, IsSipHash) {
  // The test vector of SipHash's paper, appendix A, is of 15 bytes; those of its authors' code for
  // 16 bytes: key 00 to 0f, message 00 to 0f.
  boot::Secret key;
  for (std::size_t i = 0; i < key.size(); ++i)
    key[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(sip_hash(key, 0x0706050403020100, 0x0f0e0d0c0b0a0908), 0x3f2acc7f57c29bdbu);
}

TEST(OfiToken, DependsOnSecretAndBothEnds) {
  const boot::Secret secret = {1}, other = {2};
  const boot::ProcessName a = {5, 1}, b = {5, 2};
  const auto token = token_of(secret, a, b);
  EXPECT_NE(token, token_of(other, a, b));
  EXPECT_NE(token, token_of(secret, b, a));
  EXPECT_NE(token, token_of(secret, a, {6, 2}));
}

TEST(OfiStrangers, MessagesWithoutTheSecretAreDropped) {
  World world(2);
  World strangers(2, false);
  make_stranger(strangers, world[0].transport->endpoint());
  World::Process& stranger = strangers[1];
  unsigned sent = 0;
  const auto both = [&] {
    stranger.transport->poll(stranger);
    give_itself_credit(stranger, sent);
    if (sent < 2000 && stranger.try_send(0, long_message(sent)) == Posted::done) ++sent;
    return sent == 2000 && world[0].counter("ofi_strangers") >= 2000;
  };
  ASSERT_TRUE(world.until(both));
  EXPECT_TRUE(world[0].received.empty());
  ASSERT_TRUE(world.send(1, 0, "of the job"));
  ASSERT_TRUE(world.until([&] { return world[0].received[1].size() == 1; }));
}

// The socket of the TCP provider.
std::optional<sockaddr_in> socket_of(const wire::Endpoint& endpoint) {
  sockaddr_in address;
  if (endpoint.bytes != sizeof address) return std::nullopt;
  std::memcpy(&address, endpoint.address.data(), sizeof address);
  if (address.sin_family != AF_INET) return std::nullopt;
  return address;
}

TEST(OfiStrangers, ListensOnLoopbackForAJobOfOneMachine) {
  World world(1);
  const auto address = socket_of(world[0].transport->endpoint());
  if (!address) GTEST_SKIP() << "the provider has no sockets";
  EXPECT_EQ(address->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}

// Connections that say nothing, nonsense, or the beginning of sense, all the time.
TEST(OfiStrangers, AFloodOfConnectionsDoesNotStopTheJob) {
  World world(2);
  const auto address = socket_of(world[0].transport->endpoint());
  if (!address) GTEST_SKIP() << "the provider has no sockets";
  std::mt19937 random(1);
  std::vector<int> silent;
  unsigned connected = 0;
  const auto flood = [&] {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    const int result = connect(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
    if (result == 0 || errno == EINPROGRESS) ++connected;
    std::array<unsigned char, 200> noise;
    for (unsigned char& byte : noise)
      byte = static_cast<unsigned char>(random());
    if (connected % 3 != 0) {
      [[maybe_unused]] const ssize_t written = write(fd, noise.data(), 1 + random() % noise.size());
    }
    if (connected % 2 != 0 || silent.size() > 200)
      close(fd);
    else
      silent.push_back(fd);
  };
  for (int i = 0; i < 100; ++i)
    flood();
  unsigned sent = 0;
  ASSERT_TRUE(world.until(
      [&] {
        if (connected < 1000) flood();
        if (sent < 1000 && world[1].try_send(0, long_message(sent)) == Posted::done) ++sent;
        return world[0].received[1].size() == 1000 && connected >= 1000;
      },
      40));
  for (unsigned n = 0; n < 1000; ++n)
    ASSERT_EQ(world[0].received[1][n], long_message(n));
  for (const int fd : silent)
    close(fd);
}

} // namespace
} // namespace macadam::test
