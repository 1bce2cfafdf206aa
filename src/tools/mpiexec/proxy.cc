// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/proxy.h"

#include "tools/mpiexec/frames.h"
#include "tools/mpiexec/head.h"
#include "tools/mpiexec/proxy_order.h"
#include "tools/mpiexec/supervisor.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <string_view>
#include <unistd.h>

namespace macadam::tools {
namespace {

// Variables that tell of a machine or of a login there: ranks have those of their own machine.
constexpr std::array own_variables = {"HOSTNAME=", "HOST=", "SSH_",
                                      "XDG_RUNTIME_DIR=", "XDG_SESSION_"};

bool is_own(std::string_view entry) {
  for (const char* name : own_variables)
    if (entry.starts_with(name)) return true;
  return false;
}

// Nothing if the other side has ended before.
std::optional<ProxyOrder> receive_order(FrameStream& stream) {
  for (;;) {
    std::vector<pollfd> polled;
    stream.list(polled);
    poll(polled.data(), polled.size(), static_cast<int>(Silence::interval.count()));
    stream.write_some();
    const bool goes_on = polled[0].revents == 0 || stream.read_some();
    while (std::optional<Frame> frame = stream.next())
      if (frame->kind == FrameKind::start) return read_order(frame->body);
    if (!goes_on) return std::nullopt;
  }
}

void become_part_of(ProxyOrder& order) {
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (is_own(*entry)) order.environment.emplace_back(*entry);
  static std::vector<char*> pointers; // as long as the process
  for (std::string& entry : order.environment)
    pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  environ = pointers.data();
  if (chdir(order.folder.c_str()) != 0)
    throw std::runtime_error(fmt::format("cannot enter the folder {}: {}; folders and programs "
                                         "have the same paths on all machines of a job, or -wdir "
                                         "names one that all have",
                                         order.folder, std::strerror(errno)));
}

} // namespace

std::vector<std::string> environment_of_ranks() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!is_own(*entry)) entries.emplace_back(*entry);
  return entries;
}

int run_proxy() {
  FrameStream stream(take_stream(0), take_stream(1));
  boot::PacketWriter hello;
  write(hello, own_hello());
  stream.send(FrameKind::hello, hello);
  Head head(stream);
  try {
    std::optional<ProxyOrder> order = receive_order(stream);
    if (!order) return 1;
    head.expect(order->options.silence_seconds);
    become_part_of(*order);
    boot::set_needs(needs_of(order->options.ranks(), true));
    boot::JobMemory memory = boot::JobMemory::create(order->nodes, order->own, boot::usable_cores(),
                                                     order->sets, order->machines);
    memory.header().secret = order->secret;
    number_programs(memory, order->counts);
    Supervisor(order->options, std::move(memory), &head, boot::part_of(order->mpiexec, order->own))
        .run();
    return 0;
  } catch (const std::exception& error) {
    head.refuse(error.what());
    return 2;
  }
}

} // namespace macadam::tools
