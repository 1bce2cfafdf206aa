// SPDX-License-Identifier: BSD-3-Clause
#include "boot/spawn_request.h"

#include "base/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/ranges.h>
#include <fstream>
#include <sys/stat.h>
#include <utility>

namespace macadam::boot {
namespace {

using Info = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t longest_file = 64 << 10; // bytes

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (const std::string_view word = trimmed(text.substr(begin, end - begin)); !word.empty())
      words.emplace_back(word);
    begin = end + 1;
  }
  return words;
}

// Lines of the form `key = value`; # begins a comment.
Info read_file(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0)
    base::fail(MPI_ERR_INFO_VALUE, "info key file: {} cannot be read: {}", path,
               std::strerror(errno));
  if (!S_ISREG(about.st_mode) || static_cast<std::size_t>(about.st_size) > longest_file)
    base::fail(MPI_ERR_INFO_VALUE,
               "info key file: {} is no regular file of at most {} bytes with lines key = value",
               path, longest_file);
  std::ifstream file(path);
  Info info;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::string_view text = trimmed(std::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos)
      base::fail(MPI_ERR_INFO_VALUE, "info key file: {}, line {}: found '{}', needed 'key = value'",
                 path, number, text);
    info.emplace_back(trimmed(text.substr(0, equals)), trimmed(text.substr(equals + 1)));
  }
  if (file.bad())
    base::fail(MPI_ERR_INFO_VALUE, "info key file: {} cannot be read: {}", path,
               std::strerror(errno));
  return info;
}

bool is_here(std::string_view name) {
  return name == "localhost" || name == "127.0.0.1" || name == "::1";
}

// Whether a user's name for a host means this one.
bool means(std::string_view name, std::string_view host) {
  return name == host || name == host.substr(0, host.find('.'));
}

SpawnProgram read_command(SpawnCommand command, std::string_view host,
                          const std::filesystem::path& here) {
  add_file(command.info);
  const auto find = [&](std::string_view key) -> const std::string* {
    const auto found = std::ranges::find(
        command.info, key, [](const auto& each) { return std::string_view(each.first); });
    return found == command.info.end() ? nullptr : &found->second;
  };
  SpawnProgram program;
  if (const std::string* const value = find("host"))
    for (std::string& name : split(*value, ','))
      program.hosts.push_back(is_here(name) ? std::string(host) : std::move(name));
  const std::string* const folder = find("wdir");
  program.folder = folder != nullptr ? (here / *folder).lexically_normal() : here;
  if (const std::string* const value = find("path"))
    for (const std::string& each : split(*value, ':'))
      program.path.push_back((here / each).lexically_normal());
  program.command.push_back(std::move(command.program));
  std::ranges::move(command.arguments, std::back_inserter(program.command));
  program.counts = std::move(command.counts);
  // The request would be long with what cannot be started anyway.
  while (program.counts.size() > 1 && program.counts.back() > most_ranks)
    program.counts.pop_back();
  return program;
}

} // namespace

void add_file(std::vector<std::pair<std::string, std::string>>& info) {
  const auto is = [](std::string_view key) {
    return [key](const auto& each) { return std::string_view(each.first) == key; };
  };
  const auto file = std::ranges::find_if(info, is("file"));
  if (file == info.end()) return;
  Info more = read_file(file->second);
  info.erase(file);
  for (auto& each : more)
    if (each.first != "file" && std::ranges::none_of(info, is(each.first)))
      info.push_back(std::move(each));
}

std::vector<SpawnProgram> read_commands(std::vector<SpawnCommand> commands, std::string_view host) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error)
    base::fail(MPI_ERR_SPAWN, "the folder that this process runs in cannot be named: {}",
               error.message());
  std::vector<SpawnProgram> programs;
  for (SpawnCommand& command : commands)
    programs.push_back(read_command(std::move(command), host, here));
  return programs;
}

std::string choose_host(const std::vector<SpawnProgram>& programs,
                        const std::vector<std::string>& hosts) {
  const auto is_on = [](const SpawnProgram& program, const std::string& host) {
    return program.hosts.empty() ||
           std::ranges::any_of(program.hosts, [&](const auto& name) { return means(name, host); });
  };
  if (std::ranges::all_of(programs, &std::vector<std::string>::empty, &SpawnProgram::hosts))
    return {};
  for (const std::string& host : hosts)
    if (std::ranges::all_of(programs, [&](const auto& each) { return is_on(each, host); }))
      return host;
  for (const SpawnProgram& program : programs)
    if (std::ranges::none_of(hosts, [&](const auto& host) { return is_on(program, host); }))
      base::fail(MPI_ERR_SPAWN,
                 "info key host: processes cannot be started on {}, as mpiexec starts them on the "
                 "machines of its own ranks only: {}",
                 fmt::join(program.hosts, ", "), fmt::join(hosts, ", "));
  base::fail(MPI_ERR_SPAWN,
             "info key host: the commands name different hosts; one spawn starts all "
             "of its processes on one machine: spawn once for each");
}

void write_commands(PacketWriter& packet, const std::vector<SpawnProgram>& programs) {
  const auto texts = [&](const std::vector<std::string>& all) {
    packet.value(static_cast<std::uint32_t>(all.size()));
    for (const std::string& each : all)
      packet.text(each);
  };
  packet.value(static_cast<std::uint32_t>(programs.size()));
  for (const SpawnProgram& program : programs) {
    texts(program.command);
    packet.value(static_cast<std::uint32_t>(program.counts.size()));
    for (const int count : program.counts)
      packet.value(count);
    packet.text(program.folder);
    texts(program.path);
    texts(program.hosts);
  }
}

std::vector<SpawnProgram> read_programs(PacketReader& packet) {
  const auto texts = [&] {
    std::vector<std::string> all;
    for (auto left = packet.value<std::uint32_t>(); left > 0; --left)
      all.push_back(packet.text());
    return all;
  };
  std::vector<SpawnProgram> programs;
  for (auto left = packet.value<std::uint32_t>(); left > 0; --left) {
    SpawnProgram program;
    program.command = texts();
    for (auto counts = packet.value<std::uint32_t>(); counts > 0; --counts)
      program.counts.push_back(packet.value<int>());
    program.folder = packet.text();
    program.path = texts();
    program.hosts = texts();
    const auto bad = [](int count) { return count < 0; };
    if (program.command.empty() || program.counts.empty() ||
        !std::ranges::is_sorted(program.counts) || std::ranges::any_of(program.counts, bad))
      base::fail(MPI_ERR_ARG, "a request to spawn names no program or no number of processes");
    programs.push_back(std::move(program));
  }
  if (programs.empty()) base::fail(MPI_ERR_ARG, "a request to spawn names no program");
  return programs;
}

void write_spawned(PacketWriter& packet, const Spawned& spawned) {
  packet.value(spawned.job);
  packet.value(static_cast<std::uint32_t>(spawned.ranks.size()));
  for (const int ranks : spawned.ranks)
    packet.value(ranks);
}

Spawned read_spawned(PacketReader& packet) {
  Spawned spawned;
  spawned.job = packet.value<JobTicket>();
  for (auto left = packet.value<std::uint32_t>(); left > 0; --left)
    spawned.ranks.push_back(packet.value<int>());
  return spawned;
}

} // namespace macadam::boot
