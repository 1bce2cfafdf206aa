// SPDX-License-Identifier: BSD-3-Clause
// A rank of the tests of jobs that start and meet others: asks boot::Universe without MPI, as its
// arguments say, in order. An argument "N/action" is for rank N only. What fails is printed as
// "CLASS: sentence" and ends the program with status 3, unless the action is "fails=ACTION".
#include "base/error.h"
#include "boot/local_job.h"
#include "boot/universe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <arpa/inet.h>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace macadam;
using namespace std::chrono_literals;

std::optional<boot::LocalJob> job;
std::map<std::string, std::string> words; // port, ...
std::string program;
std::vector<boot::JobTicket> tickets; // of jobs that were spawned or met

boot::Universe& universe() {
  return *job->universe();
}

template <class Result>
Result wait(boot::PendingResult<Result> pending) {
  while (!pending->done())
    std::this_thread::sleep_for(200us);
  Result result = pending->take();
  pending->keep();
  return result;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// "COUNT[|COUNT...],PROGRAM,ARGUMENT,...[;key:value...]"; commands are separated by "&".
std::vector<boot::SpawnCommand> read_commands(const std::string& text) {
  std::vector<boot::SpawnCommand> commands;
  for (const std::string& part : split(text, '&')) {
    boot::SpawnCommand& command = commands.emplace_back();
    const std::vector<std::string> fields = split(part, ';');
    for (std::size_t i = 1; i < fields.size(); ++i) {
      const std::size_t colon = fields[i].find(':');
      command.info.emplace_back(fields[i].substr(0, colon), fields[i].substr(colon + 1));
    }
    std::vector<std::string> arguments = split(fields[0], ',');
    for (const std::string& count : split(arguments[0], '|'))
      command.counts.push_back(std::stoi(count));
    command.program = arguments.at(1);
    command.arguments.assign(arguments.begin() + 2, arguments.end());
  }
  return commands;
}

void print(const std::string& line) {
  std::cout << line << std::endl;
}

void print_met(const boot::Met& met) {
  tickets.push_back(met.job);
  const boot::Job* const other = wait(universe().meet(met.job));
  print(fmt::format("met rank {} of {}", met.rank, other->size()));
}

// Writes a word into its own memory, or reads what a rank of the other job has written there.
int& shared_word(const boot::SharedMemory& memory) {
  void* const at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd,
                        static_cast<off_t>(memory.offset));
  if (at == MAP_FAILED) throw std::runtime_error("a segment cannot be mapped");
  return *static_cast<int*>(at);
}

void spawn(const std::string& commands) {
  const boot::Spawned spawned = wait(universe().spawn(read_commands(commands)));
  tickets.push_back(spawned.job);
  print(fmt::format("spawned {}", fmt::join(spawned.ranks, "+")));
}

const boot::Job& last_met() {
  return *wait(universe().meet(tickets.at(tickets.size() - 1)));
}

int connected_socket(const std::string& port, bool listens) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (listens) {
    const int on = 1;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(made, any, sizeof address) != 0 || listen(made, 1) != 0) std::abort();
    return accept(made, nullptr, nullptr);
  }
  while (connect(made, any, sizeof address) != 0)
    std::this_thread::sleep_for(5ms);
  return made;
}

void join(int socket) {
  const int before = fcntl(socket, F_GETFL);
  print_met(wait(universe().join(socket)));
  print(fcntl(socket, F_GETFL) == before ? "flags are as before" : "flags were changed");
}

void act(const std::string& action);

void must_fail(const std::string& action) {
  try {
    act(action);
  } catch (const base::Error& error) {
    return print(fmt::format("{}: {}", error.error_class, error.text));
  }
  throw std::runtime_error(action + " has not failed");
}

void act(const std::string& action) {
  const std::size_t equals = action.find('=');
  const std::string verb = action.substr(0, equals);
  std::string value = equals == std::string::npos ? "" : action.substr(equals + 1);
  if (const auto word = words.find(value); word != words.end()) value = word->second;
  if (verb == "fails") {
    must_fail(value);
  } else if (verb == "enter") {
    job->enter();
  } else if (verb == "leave") {
    job->leave();
    job->finalize();
  } else if (verb == "who") {
    const auto parent = universe().parent();
    print(fmt::format("rank {} of {}, app {}, {}", job->rank(), job->size(), job->app_number(),
                      parent ? fmt::format("spawned by rank {}", parent->rank) : "no parent"));
  } else if (verb == "parent") {
    print_met(*universe().parent());
  } else if (verb == "host") {
    print(std::string(job->host()));
  } else if (verb == "size") {
    print(fmt::format("universe {}", universe().size().value_or(-1)));
  } else if (verb == "spawn") {
    spawn(value);
  } else if (verb == "spawn_and_forget") { // called off at once
    auto pending = universe().spawn(read_commands(value));
    for (int i = 0; i < 3; ++i)
      static_cast<void>(pending->done());
  } else if (verb == "tree") { // each spawns two that do the same, so many levels deep
    print("tree " + value);
    const int left = std::stoi(value);
    if (left > 0)
      wait(universe().spawn({{program, {fmt::format("tree={}", left - 1), "wait=300"}, {2}, {}}}));
  } else if (verb == "meet") {
    print(fmt::format("met a job of {}", last_met().size()));
  } else if (verb == "write") {
    shared_word(job->own_memory()) = std::stoi(value);
    const std::byte address{7};
    job->agree_on({.rules = 5, .eager = 6, .check = 1});
    job->publish(std::span(&address, 1));
  } else if (verb == "read") { // of rank 0 of the last job
    const boot::Job& other = last_met();
    while (!other.fetch(0))
      std::this_thread::sleep_for(1ms);
    print(fmt::format("read {}", shared_word(other.memory_of(0))));
  } else if (verb == "address") { // of rank 0 of the last job
    const boot::Job& other = last_met();
    std::optional<std::span<const std::byte>> found;
    while (!(found = other.fetch(0)))
      std::this_thread::sleep_for(1ms);
    if (other.agreement_of(0) != boot::Agreement{.rules = 5, .eager = 6, .check = 1})
      print("what comes with it has changed");
    print(fmt::format("address {} of host {}, {}", std::to_integer<int>(found->front()),
                      other.host_of(0), other.is_local(0) ? "local" : "not local"));
  } else if (verb == "addresses") { // of all ranks of the last job
    const boot::Job& other = last_met();
    std::vector<std::string> hosts, local;
    for (int rank = 0; rank < other.size(); ++rank) {
      while (!other.fetch(rank))
        std::this_thread::sleep_for(1ms);
      hosts.emplace_back(other.host_of(rank));
      if (other.is_local(rank)) local.push_back(std::to_string(rank));
    }
    print(
        fmt::format("ranks on {}, {}", fmt::join(hosts, "+"),
                    local.empty() ? "none local" : fmt::format("local {}", fmt::join(local, "+"))));
  } else if (verb == "forget") { // the last job
    universe().forget(last_met());
    tickets.pop_back();
  } else if (verb == "give_ticket") { // of the last job, to other ranks: in a file of this name
    std::ofstream(value + ".new", std::ios::binary)
        .write(reinterpret_cast<const char*>(tickets.back().data()), sizeof(boot::JobTicket));
    std::filesystem::rename(value + ".new", value);
  } else if (verb == "take_ticket") {
    while (!std::filesystem::exists(value))
      std::this_thread::sleep_for(1ms);
    std::ifstream(value, std::ios::binary)
        .read(reinterpret_cast<char*>(tickets.emplace_back().data()), sizeof(boot::JobTicket));
  } else if (verb == "life") { // until rank 0 of the last job has ended
    const boot::Job& other = last_met();
    boot::Life life = boot::Life::running;
    while ((life = other.life(0)) == boot::Life::running)
      std::this_thread::sleep_for(1ms);
    print(life == boot::Life::failed ? "it has failed" : "it is over");
  } else if (verb == "open") {
    words["port"] = universe().open_port();
    print("port " + words["port"]);
  } else if (verb == "close") {
    universe().close_port(value);
  } else if (verb == "accept") {
    print_met(wait(universe().accept(value, 20.0)));
  } else if (verb == "accept_in_vain") {
    print_met(wait(universe().accept(value, 0.1)));
  } else if (verb == "connect") {
    print_met(wait(universe().connect(value, 20.0)));
  } else if (verb == "connect_in_vain") {
    print_met(wait(universe().connect(value, 0.1)));
  } else if (verb == "line") { // of standard input
    std::getline(std::cin, words[value]);
  } else if (verb == "publish") {
    wait(universe().publish(value, words["port"]));
    print("published");
  } else if (verb == "unpublish") {
    wait(universe().unpublish(value, words["port"]));
    print("unpublished");
  } else if (verb == "look_up") {
    words["port"] = wait(universe().look_up(value));
    print("port " + words["port"]);
  } else if (verb == "join_listening") {
    join(connected_socket(value, true));
  } else if (verb == "join_connecting") {
    join(connected_socket(value, false));
  } else if (verb == "join_socket") {
    join(std::stoi(value));
  } else if (verb == "print") {
    print(value);
  } else if (verb == "buffer") {
    std::printf("%s\n", value.c_str()); // to be flushed by somebody
  } else if (verb == "folder") {
    char folder[4096];
    print(getcwd(folder, sizeof folder));
  } else if (verb == "variable") {
    const char* const text = std::getenv(value.c_str());
    print(fmt::format("{}={}", value, text != nullptr ? text : ""));
  } else if (verb == "children") {
    print(system("cat /proc/$PPID/task/*/children | wc -w") == 0 ? "" : "?");
  } else if (verb == "wait") {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(value)));
  } else if (verb == "raise") {
    raise(std::stoi(value));
  } else if (verb == "abort") {
    job->abort(std::stoi(value), "called MPI_Abort");
  } else if (verb == "exit") {
    std::exit(std::stoi(value));
  } else {
    throw std::runtime_error("no such action: " + action);
  }
}

} // namespace

int main(int argc, char** argv) {
  program = argv[0];
  try {
    job.emplace(boot::LocalJob::join());
    job->enter();
    for (int i = 1; i < argc; ++i) {
      std::string action = argv[i];
      if (std::isdigit(static_cast<unsigned char>(action.front()))) {
        const std::size_t slash = action.find('/');
        if (std::stoi(action.substr(0, slash)) != job->rank()) continue;
        action = action.substr(slash + 1);
      }
      act(action);
    }
    job->leave();
    job->finalize();
    return 0;
  } catch (const base::Error& error) {
    std::cout << error.error_class << ": " << error.text << std::endl;
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "launch_universe: " << error.what() << std::endl;
    return 4;
  }
}
