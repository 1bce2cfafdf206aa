// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/relay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace macadam::tools {
namespace {

using boot::PacketReader;
using boot::PacketWriter;

} // namespace

std::vector<std::string> Relay::hosts() const {
  std::vector<std::string> hosts;
  for (Machine machine = 0; machine < first_.header().nodes; ++machine)
    hosts.emplace_back(first_.node(machine).host.data());
  return hosts;
}

Relay::Machine Relay::find(std::string_view host, int error_class) const {
  for (Machine machine = 0; machine < first_.header().nodes; ++machine)
    if (first_.node(machine).host.data() == host) return machine;
  base::fail(
      error_class,
      "host {} is none of the machines that this mpiexec has ranks on ({}); name one of them", host,
      fmt::join(hosts(), ", "));
}

void Relay::send(Id id, Machine machine, std::string_view request, std::uint32_t number) {
  PacketWriter body;
  body.value(machine);
  body.value(std::uint64_t{id});
  body.value(number);
  body.text(request);
  head_.send(FrameKind::request, body);
}

void Relay::send_outside(Id id, const Place& place, std::string_view request) {
  PacketWriter body;
  body.value(std::uint64_t{id});
  body.text(boot::read_part(place.socket).mpiexec);
  body.text(place.host);
  body.text(request);
  head_.send(FrameKind::outside, body);
}

void Relay::pass_outside(Id client, const Place& place, const PacketWriter& request) {
  passed_on_[client] = any_machine;
  send_outside(client, place, request.view());
}

void Relay::pass_on(Id client, Machine machine, const PacketWriter& request, std::uint32_t number) {
  passed_on_[client] = machine;
  send(client, machine, request.view(), number);
}

std::uint64_t Relay::ask(Machine machine, const PacketWriter& request, OnPacket on_answer) {
  asked_[++last_asked_] = {machine, std::move(on_answer)};
  send(last_asked_, machine, request.view(), 0);
  return last_asked_;
}

std::uint64_t Relay::ask_outside(const Place& place, const PacketWriter& request,
                                 OnPacket on_answer) {
  asked_[++last_asked_] = {any_machine, std::move(on_answer)};
  send_outside(last_asked_, place, request.view());
  return last_asked_;
}

void Relay::call_off(std::uint64_t asked) {
  const auto found = asked_.find(asked);
  if (found == asked_.end()) return;
  send_end(asked, found->second.machine, FrameKind::called_off);
  asked_.erase(found);
}

void Relay::tell_linked(const std::string& mpiexec, bool linked) {
  PacketWriter body;
  body.text(mpiexec);
  head_.send(linked ? FrameKind::linked : FrameKind::unlinked, body);
}

void Relay::send_end(Id id, Machine machine, FrameKind how) {
  PacketWriter body;
  body.value(machine);
  body.value(std::uint64_t{id});
  head_.send(how, body);
}

bool Relay::end(Id client, FrameKind how) {
  const auto found = passed_on_.find(client);
  if (found == passed_on_.end()) return false;
  send_end(client, found->second, how);
  passed_on_.erase(found);
  return true;
}

void Relay::answer(const ControlServer::Origin& origin, const std::vector<std::byte>& packet,
                   ControlServer::Then then) {
  PacketWriter body;
  body.value(origin.machine);
  body.value(origin.id);
  body.value(then == ControlServer::Then::await_confirmation);
  body.text({reinterpret_cast<const char*>(packet.data()), packet.size()});
  head_.send(FrameKind::answer, body);
}

void Relay::tell_ended(const boot::Secret& job) {
  PacketWriter body;
  body.value(job);
  head_.send(FrameKind::ended, body);
}

void Relay::take(Frame frame, const std::function<void(const boot::Secret&)>& on_ended) {
  PacketReader& body = frame.body;
  const auto from = body.value<Machine>();
  if (frame.kind == FrameKind::ended) return on_ended(body.value<boot::Secret>());
  const auto id = body.value<std::uint64_t>();
  switch (frame.kind) {
  case FrameKind::request:
    number_ = body.value<std::uint32_t>();
    return server_.receive({from, id}, boot::as_bytes(body.text()));
  case FrameKind::answer: {
    const bool awaits = body.value<bool>();
    // Whom a job of any machine was asked from, and who answered.
    if (const auto found = passed_on_.find(id); found != passed_on_.end()) found->second = from;
    return on_answer(id, awaits, body.text());
  }
  case FrameKind::confirmed:
    return server_.confirm({from, id});
  default:
    return server_.call_off({from, id});
  }
}

void Relay::on_answer(std::uint64_t id, bool awaits, const std::string& packet) {
  if (const auto own = asked_.find(id); own != asked_.end()) {
    const OnPacket on_answer = std::move(own->second.on_answer);
    asked_.erase(own);
    return on_answer(boot::as_bytes(packet));
  }
  if (!passed_on_.contains(id)) return; // it has been called off meanwhile
  if (!awaits) passed_on_.erase(id);
  server_.pass_on(id, boot::as_bytes(packet),
                  awaits ? ControlServer::Then::await_confirmation : ControlServer::Then::close);
}

} // namespace macadam::tools
