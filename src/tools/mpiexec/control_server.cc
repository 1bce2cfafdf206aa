// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/control_server.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace macadam::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto longest_silence = 5s;
constexpr auto rest = 100ms; // until descriptors may be free again
constexpr int most_at_once = 64;
constexpr std::size_t most_connections = 1024;

// Half of the descriptors that mpiexec may have: the rest is for ranks.
std::size_t bound_on_connections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return most_connections;
  return std::clamp<std::size_t>(limit.rlim_cur / 2, 1, most_connections);
}

} // namespace

ControlServer::ControlServer(Desk& desk, std::string name)
    : desk_(desk), most_(bound_on_connections()) {
  if (name.empty()) name = boot::random_socket_name();
  if (listen(name)) name_ = std::move(name);
}

ControlServer::~ControlServer() {
  for (const auto& [name, socket] : listeners_)
    close(socket);
  while (!connections_.empty())
    drop(connections_.begin()->first);
}

bool ControlServer::listen(const std::string& name) {
  const int socket = boot::listen_at(name);
  if (socket < 0) return false;
  listeners_.emplace(name, socket);
  return true;
}

void ControlServer::stop_listening(const std::string& name) {
  const auto found = listeners_.find(name);
  if (found == listeners_.end()) return;
  close(found->second);
  listeners_.erase(found);
}

void ControlServer::list(std::vector<pollfd>& polled) {
  listed_listeners_.clear();
  listed_connections_.clear();
  const bool accepts = connections_.size() < most_ && !rests_until_;
  for (const auto& [name, socket] : listeners_) {
    polled.push_back({accepts ? socket : -1, POLLIN, 0});
    listed_listeners_.push_back(socket);
  }
  for (const auto& [id, connection] : connections_) {
    polled.push_back({connection.socket, POLLIN, 0});
    listed_connections_.push_back(id);
  }
}

// Those that a request has ended meanwhile, by another's answer for instance, are passed over. So
// are listeners: a new one may have the number of one that was closed, which does no harm.
void ControlServer::take(const pollfd* first) {
  const auto now = Clock::now();
  if (rests_until_ && now >= *rests_until_) rests_until_.reset();
  for (const int listener : listed_listeners_)
    if ((first++)->revents != 0) accept_all(listener);
  for (const Id id : listed_connections_)
    if ((first++)->revents != 0) receive(id);
  std::vector<Id> silent;
  for (const auto& [id, connection] : connections_)
    if (connection.stage == Stage::silent && now >= connection.until) silent.push_back(id);
  for (const Id id : silent)
    drop(id);
}

std::optional<ControlServer::Clock::time_point> ControlServer::must_look_at() const {
  std::optional<Clock::time_point> first = rests_until_;
  for (const auto& [id, connection] : connections_)
    if (connection.stage == Stage::silent && (!first || connection.until < *first))
      first = connection.until;
  return first;
}

void ControlServer::accept_all(int listener) {
  for (int i = 0; i < most_at_once && connections_.size() < most_; ++i) {
    const int socket = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        rests_until_ = Clock::now() + rest;
      return;
    }
    if (boot::user_of(socket) != geteuid()) {
      close(socket);
      continue;
    }
    connections_.emplace(++last_id_,
                         Connection{socket, {}, Stage::silent, Clock::now() + longest_silence, -1});
  }
}

void ControlServer::receive(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  std::optional<boot::Packet> packet = boot::receive_packet(found->second.socket);
  if (packet) return on_packet(id, std::move(*packet));
  if (errno != EAGAIN && errno != EINTR) send_away(id);
}

void ControlServer::on_packet(Id id, boot::Packet packet) {
  Connection& connection = connections_.at(id);
  if (connection.descriptor >= 0) close(connection.descriptor);
  connection.descriptor = packet.descriptor;
  if (connection.stage == Stage::answered) {
    drop(id);
    return desk_.on_confirmed(id);
  }
  if (connection.stage != Stage::silent) return send_away(id); // no client says more
  read_request(id, std::move(packet.bytes));
}

void ControlServer::read_request(Id id, std::vector<std::byte> bytes) {
  connections_.at(id).stage = Stage::asked;
  try {
    boot::PacketReader reader(std::move(bytes));
    const auto head = reader.value<boot::RequestHead>();
    if (head.magic != boot::control_magic)
      base::fail(MPI_ERR_OTHER, "this is no request to an mpiexec of Macadam");
    if (head.version != boot::control_version)
      base::fail(MPI_ERR_OTHER,
                 "mpiexec speaks version {} of the control protocol, the other side version {}; "
                 "use one Macadam for both",
                 boot::control_version, head.version);
    desk_.on_request(id, head, std::move(reader));
    if (const int left = take_descriptor(id); left >= 0) close(left); // of no use here
  } catch (...) {
    refuse(id, base::caught("for a request to mpiexec"));
  }
}

bool ControlServer::is_there(Id id) const {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return false;
  if (found->second.origin) return true; // or it would have been called off
  pollfd polled{found->second.socket, POLLRDHUP, 0};
  return poll(&polled, 1, 0) == 0;
}

bool ControlServer::answer(Id id, const boot::PacketWriter& rest, int descriptor, Then then) {
  boot::PacketWriter packet;
  packet.value(boot::AnswerHead{});
  packet.append(rest);
  return send(id, packet.bytes(), descriptor, then);
}

bool ControlServer::refuse(Id id, const base::Error& error) {
  boot::PacketWriter packet;
  packet.value(boot::AnswerHead{.error_class = error.error_class});
  packet.text(error.text);
  return send(id, packet.bytes(), -1, Then::close);
}

bool ControlServer::introduce(Id id, const boot::PacketWriter& rest, int descriptor) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || found->second.origin) return false;
  boot::PacketWriter packet;
  packet.value(boot::AnswerHead{.error_class = boot::an_introduction});
  packet.append(rest);
  return boot::send_packet(found->second.socket, packet.bytes(), descriptor);
}

bool ControlServer::send(Id id, const std::vector<std::byte>& packet, int descriptor, Then then) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return false;
  const std::optional<Origin> origin = found->second.origin;
  if (origin) desk_.send(*origin, packet, then);
  const bool sent = origin || boot::send_packet(found->second.socket, packet, descriptor);
  if (sent && then == Then::await_confirmation)
    found->second.stage = Stage::answered;
  else if (sent && then == Then::stay && !origin && staying_ < most_ / 2)
    let_stay(found->second);
  else
    drop(id);
  return sent;
}

// What it is told waits in the socket, with a descriptor each: a few at most.
void ControlServer::let_stay(Connection& connection) {
  constexpr int room = 4096; // bytes
  setsockopt(connection.socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  connection.stage = Stage::staying;
  ++staying_;
}

void ControlServer::drop(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (!found->second.origin) close(found->second.socket);
  if (found->second.descriptor >= 0) close(found->second.descriptor);
  if (found->second.stage == Stage::staying) --staying_;
  connections_.erase(found);
}

void ControlServer::receive(const Origin& origin, std::vector<std::byte> request) {
  connections_.emplace(++last_id_, Connection{-1, origin, Stage::asked, {}, -1});
  read_request(last_id_, std::move(request));
}

// 0, which is none: it has been answered.
ControlServer::Id ControlServer::find(const Origin& origin) const {
  const auto found = std::ranges::find_if(
      connections_, [&](const auto& each) { return each.second.origin == origin; });
  return found == connections_.end() ? 0 : found->first;
}

void ControlServer::confirm(const Origin& origin) {
  const Id id = find(origin);
  if (id == 0) return;
  drop(id);
  desk_.on_confirmed(id);
}

void ControlServer::call_off(const Origin& origin) {
  if (const Id id = find(origin); id != 0) send_away(id);
}

void ControlServer::call_off_all(std::uint32_t machine) {
  std::vector<Id> gone;
  for (const auto& [id, connection] : connections_)
    if (connection.origin && connection.origin->machine == machine) gone.push_back(id);
  for (const Id id : gone)
    if (connections_.contains(id)) send_away(id);
}

std::optional<ControlServer::Origin> ControlServer::origin(Id id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? std::nullopt : found->second.origin;
}

int ControlServer::take_descriptor(Id id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? -1 : std::exchange(found->second.descriptor, -1);
}

void ControlServer::pass_on(Id id, const std::vector<std::byte>& answer, Then then) {
  send(id, answer, -1, then);
}

void ControlServer::send_away(Id id) {
  const bool known = connections_.at(id).stage != Stage::silent;
  drop(id);
  if (known) desk_.on_gone(id);
}

} // namespace macadam::tools
