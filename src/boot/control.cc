// SPDX-License-Identifier: BSD-3-Clause
#include "boot/control.h"

#include "base/error.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace macadam::boot {
namespace {

constexpr std::string_view port_prefix = "macadam-port";
constexpr std::string_view socket_prefix = "macadam-";
constexpr int backlog = 128;

std::string show_hex(std::span<const std::uint8_t> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

struct Address {
  explicit Address(std::string_view name) {
    address.sun_family = AF_UNIX;
    const std::size_t used = std::min(name.size(), sizeof address.sun_path - 1);
    std::copy_n(name.data(), used, address.sun_path + 1); // behind a zero: abstract
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + used);
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address = {};
  socklen_t bytes;
};

std::uint64_t hash(std::string_view text, std::uint64_t start) {
  for (const char byte : text)
    start = (start ^ static_cast<std::uint8_t>(byte)) * 0x100000001b3u;
  return start;
}

template <std::size_t N>
void put(std::string_view text, std::array<char, N>& into) {
  std::copy_n(text.data(), std::min(text.size(), N - 1), into.data());
}

} // namespace

JobTicket make_ticket(const Secret& job, std::string_view socket, std::string_view host) {
  Ticket content;
  content.job = job;
  put(socket, content.socket);
  put(host, content.host);
  return show_ticket(content);
}

JobTicket show_ticket(const Ticket& content) {
  JobTicket ticket{};
  static_assert(sizeof content <= sizeof ticket);
  std::memcpy(ticket.data(), &content, sizeof content);
  return ticket;
}

Ticket read_ticket(const JobTicket& ticket) {
  Ticket content;
  std::memcpy(&content, ticket.data(), sizeof content);
  if (content.magic != control_magic)
    base::fail(MPI_ERR_OTHER, "what the other process has sent is no ticket of a job of Macadam");
  content.host.back() = content.socket.back() = 0;
  if (content.version != control_version)
    base::fail(MPI_ERR_OTHER,
               "a job on host {} speaks version {} of the control protocol, this one version {}; "
               "use one Macadam for both",
               content.host.data(), content.version, control_version);
  return content;
}

std::string show_port(const Port& port) {
  return fmt::format("{}:{}:{}:{}:{}", port_prefix, control_version, port.host, port.socket,
                     show_hex(port.key));
}

Port read_port(std::string_view text) {
  const auto next = [&] {
    const std::size_t end = std::min(text.find(':'), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  };
  const auto refuse = [name = text](std::string_view what) {
    base::fail(MPI_ERR_PORT,
               "\"{:.80}\" is no port's name: {}; needed is what MPI_Open_port has given", name,
               what);
  };
  if (next() != port_prefix) refuse("it does not begin with macadam-port");
  if (const std::string_view version = next(); version != std::to_string(control_version))
    base::fail(MPI_ERR_PORT,
               "the port was opened by another version of Macadam (protocol {}, this one has {}); "
               "use one for both",
               version, control_version);
  if (std::ranges::count(text, ':') != 2) refuse("it was cut or has more");
  Port port;
  port.host = next();
  if (port.host.empty() || port.host.size() > longest_host_name) refuse("it names no host");
  port.socket = next();
  if (port.socket.empty() || port.socket.size() > longest_socket_name)
    refuse("its launcher is not named");
  const std::string_view key = next();
  const auto digit = [](char c) {
    constexpr std::string_view digits = "0123456789abcdef";
    return digits.find(c);
  };
  if (key.size() != 2 * port.key.size()) refuse("it was cut or has more");
  for (std::size_t i = 0; i < port.key.size(); ++i) {
    const std::size_t high = digit(key[2 * i]);
    const std::size_t low = digit(key[2 * i + 1]);
    if (high > 15 || low > 15) refuse("its key is damaged");
    port.key[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return port;
}

Secret random_secret() {
  Secret secret;
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    base::fail(MPI_ERR_OTHER, "getrandom for a secret failed: {}", std::strerror(errno));
  return secret;
}

std::uint32_t random_meeting() {
  std::uint32_t number = 0;
  const Secret random = random_secret();
  std::memcpy(&number, random.data(), sizeof number);
  return number;
}

std::string random_socket_name() {
  return std::string(socket_prefix) + show_hex(random_secret());
}

std::string part_of(std::string_view mpiexec, std::uint32_t machine) {
  return fmt::format("{}-{}", mpiexec, machine);
}

Part read_part(std::string_view socket) {
  const std::size_t dash = socket.find('-', std::min(socket.size(), socket_prefix.size()));
  Part part{std::string(socket.substr(0, dash))};
  if (dash != std::string_view::npos)
    std::from_chars(socket.data() + dash + 1, socket.data() + socket.size(), part.machine);
  return part;
}

std::string socket_name_of(std::string_view service) {
  return fmt::format("macadam-{}-{:016x}{:016x}", geteuid(), hash(service, 0xcbf29ce484222325u),
                     hash(service, 0x9ae16a3b2f90404fu));
}

int make_socket() {
  return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int listen_at(std::string_view name) {
  const int made = make_socket();
  if (made < 0) return -1;
  const Address address(name);
  if (bind(made, address.get(), address.bytes) == 0 && listen(made, backlog) == 0) return made;
  const int error = errno;
  close(made);
  errno = error;
  return -1;
}

int connect_to(int socket, std::string_view name) {
  const Address address(name);
  return connect(socket, address.get(), address.bytes);
}

std::optional<uid_t> user_of(int socket) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return std::nullopt;
  return credentials.uid;
}

bool send_packet(int socket, const std::vector<std::byte>& bytes, int descriptor) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptor)> space = {};
  if (descriptor >= 0) {
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

std::optional<Packet> receive_packet(int socket) {
  const auto look = [socket] {
    return recv(socket, nullptr, 0, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC);
  };
  ssize_t length = look();
  // Linux looks for a packet first and for the end afterwards: what comes in between, and is the
  // last, is hidden by the end that follows it. After the end nothing comes.
  if (length == 0) length = look();
  if (length < 0) return std::nullopt;
  Packet packet;
  packet.bytes.resize(std::min(static_cast<std::size_t>(length), longest_packet));
  iovec part{packet.bytes.data(), packet.bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space = {};
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return std::nullopt;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= head->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, reinterpret_cast<std::byte*>(head) + at, sizeof descriptor);
      if (packet.descriptor < 0)
        packet.descriptor = descriptor;
      else
        close(descriptor);
    }
  }
  // No side sends an empty packet; one that is too long is none of ours.
  if (got > 0 && (message.msg_flags & MSG_TRUNC) == 0) return packet;
  if (packet.descriptor >= 0) close(packet.descriptor);
  errno = 0;
  return std::nullopt;
}

} // namespace macadam::boot
