// SPDX-License-Identifier: BSD-3-Clause
// A ping-pong over a plain TCP connection, without MPI: what the network and the kernel themselves
// need. Half of the round trip in microseconds, for each size given in bytes:
//
//   plain_tcp listen ADDRESS PORT SIZE...     and then     plain_tcp connect ADDRESS PORT SIZE...
//
// Both sides block in read(). The listening side takes one connection and ends with it.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "plain_tcp: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void send_all(int socket, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, data, bytes, MSG_NOSIGNAL);
    if (sent <= 0) fail("send");
    data += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

void receive_all(int socket, char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, data, bytes, 0);
    if (got <= 0) fail("recv");
    data += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

int open_connection(bool listens, const char* address, int port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, address, &name.sin_addr) != 1) fail("address");
  const auto* const generic = reinterpret_cast<const sockaddr*>(&name);
  int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  if (listens) {
    const int listener = connection;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(listener, generic, sizeof name) != 0 || ::listen(listener, 1) != 0) fail("listen");
    connection = ::accept(listener, nullptr, nullptr);
    ::close(listener);
  } else {
    constexpr int attempts = 100; // the other side may not have come so far
    for (int i = 0; ::connect(connection, generic, sizeof name) != 0; ++i) {
      if (i == attempts) fail("connect");
      ::close(connection);
      ::usleep(50000);
      connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    }
  }
  if (connection < 0) fail("connection");
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return connection;
}

} // namespace

int main(int argc, char** argv) {
  const std::string manner = argc > 4 ? argv[1] : "";
  if (manner != "listen" && manner != "connect") {
    std::fputs("usage: plain_tcp listen|connect ADDRESS PORT SIZE...\n", stderr);
    return 1;
  }
  const bool listens = manner == "listen";
  const int connection = open_connection(listens, argv[2], std::atoi(argv[3]));
  for (int i = 4; i < argc; ++i) {
    const auto bytes = static_cast<std::size_t>(std::max(std::atoi(argv[i]), 1));
    std::vector<char> data(bytes);
    const int times = bytes > 65536 ? 200 : 3000;
    const int warm_up = times / 10;
    auto began = std::chrono::steady_clock::now();
    for (int k = -warm_up; k < times; ++k) {
      if (k == 0) began = std::chrono::steady_clock::now();
      if (!listens) send_all(connection, data.data(), bytes);
      receive_all(connection, data.data(), bytes);
      if (listens) send_all(connection, data.data(), bytes);
    }
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    if (!listens) std::printf("half_round_trip_us %zu %.4g\n", bytes, took.count() / times / 2);
  }
  ::close(connection);
}
