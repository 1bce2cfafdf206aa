// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/proxy_order.h"

#include "base/line.h"
#include "boot/machine.h"

namespace macadam::tools {
namespace {

using boot::PacketReader;
using boot::PacketWriter;

template <class Item, class Write>
void write_all(PacketWriter& packet, const std::vector<Item>& items, Write&& write) {
  packet.value(static_cast<std::uint32_t>(items.size()));
  for (const Item& item : items)
    write(item);
}

template <class Read>
auto read_all(PacketReader& packet, Read&& read) {
  std::vector<decltype(read())> items;
  for (auto left = packet.value<std::uint32_t>(); left > 0; --left)
    items.push_back(read());
  return items;
}

void write(PacketWriter& packet, const Program& program) {
  packet.value(program.ranks);
  write_all(packet, program.command, [&](const std::string& word) { packet.text(word); });
  tools::write(packet, program.environment);
  packet.text(program.folder);
  write_all(packet, program.path, [&](const std::string& folder) { packet.text(folder); });
}

Program read_program(PacketReader& packet) {
  Program program;
  program.ranks = packet.value<int>();
  program.command = read_all(packet, [&] { return packet.text(); });
  program.environment = read_variables(packet);
  program.folder = packet.text();
  program.path = read_all(packet, [&] { return packet.text(); });
  return program;
}

// The kernel's name for this run of it, so that two machines of one name differ.
std::string boot_id() {
  return base::read_line("/proc/sys/kernel/random/boot_id");
}

} // namespace

void write(PacketWriter& packet, const std::vector<Variable>& variables) {
  write_all(packet, variables, [&](const Variable& variable) {
    packet.text(variable.first);
    packet.text(variable.second);
  });
}

std::vector<Variable> read_variables(PacketReader& packet) {
  return read_all(packet, [&] {
    std::string name = packet.text();
    return Variable{std::move(name), packet.text()};
  });
}

ProxyHello own_hello() {
  const std::string host = boot::host_name();
  return {host, boot_id() + "/" + host, boot::usable_cores()};
}

void write(PacketWriter& packet, const ProxyHello& hello) {
  packet.text(hello.host);
  packet.text(hello.machine);
  packet.value(hello.cores);
}

ProxyHello read_hello(PacketReader& packet) {
  ProxyHello hello;
  hello.host = packet.text();
  hello.machine = packet.text();
  hello.cores = packet.value<std::uint32_t>();
  return hello;
}

void write(PacketWriter& packet, const ProxyOrder& order) {
  write_all(packet, order.nodes, [&](const boot::Node& node) {
    packet.text(node.host);
    packet.value(node.ranks);
  });
  packet.value(order.own);
  write_all(packet, order.machines, [&](std::uint32_t machine) { packet.value(machine); });
  write_all(packet, order.counts, [&](int count) { packet.value(count); });
  write_all(packet, order.sets, [&](const boot::NamedRanks& set) {
    packet.text(set.set);
    packet.value(set.first);
    packet.value(set.ranks);
  });
  packet.value(order.secret);
  packet.text(order.mpiexec);
  const Options& options = order.options;
  write_all(packet, options.programs, [&](const Program& program) { write(packet, program); });
  tools::write(packet, options.environment);
  packet.value(options.label);
  packet.value(options.binding);
  packet.value(options.report_bindings);
  packet.text(options.output_files.out);
  packet.text(options.output_files.error);
  packet.value(options.universe_size);
  packet.value(options.silence_seconds);
  packet.text(order.folder);
  write_all(packet, order.environment, [&](const std::string& entry) { packet.text(entry); });
}

ProxyOrder read_order(PacketReader& packet) {
  ProxyOrder order;
  order.nodes = read_all(packet, [&] {
    std::string host = packet.text();
    return boot::Node{std::move(host), packet.value<std::uint32_t>()};
  });
  order.own = packet.value<std::uint32_t>();
  order.machines = read_all(packet, [&] { return packet.value<std::uint32_t>(); });
  order.counts = read_all(packet, [&] { return packet.value<int>(); });
  order.sets = read_all(packet, [&] {
    boot::NamedRanks set;
    set.set = packet.text();
    set.first = packet.value<std::uint32_t>();
    set.ranks = packet.value<std::uint32_t>();
    return set;
  });
  order.secret = packet.value<boot::Secret>();
  order.mpiexec = packet.text();
  Options& options = order.options;
  options.programs = read_all(packet, [&] { return read_program(packet); });
  options.environment = read_variables(packet);
  options.label = packet.value<bool>();
  options.binding = packet.value<Binding>();
  options.report_bindings = packet.value<bool>();
  options.output_files.out = packet.text();
  options.output_files.error = packet.text();
  options.universe_size = packet.value<int>();
  options.silence_seconds = packet.value<double>();
  order.folder = packet.text();
  order.environment = read_all(packet, [&] { return packet.text(); });
  return order;
}

} // namespace macadam::tools
