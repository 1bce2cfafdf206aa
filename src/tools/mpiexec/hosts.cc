// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/hosts.h"

#include "boot/machine.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <netdb.h>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace macadam::tools {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF"; // which some editors begin a file with

// A socket can be bound to an address of this machine only.
bool is_own(const addrinfo& address) {
  const int probe = socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool bound = bind(probe, address.ai_addr, address.ai_addrlen) == 0;
  close(probe);
  return bound;
}

bool is_this_machine(const std::string& name) {
  const std::string own = boot::host_name();
  if (name == "localhost" || name == own || name == own.substr(0, own.find('.'))) return true;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next)
    if (is_own(*each)) return true;
  return false;
}

int slot_count(std::string_view text, const std::string& where) {
  int count = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, count);
  if (read.ec != std::errc() || read.ptr != end || count < 1)
    throw std::runtime_error(where + ": \"" + std::string(text) +
                             "\" is no number of slots above 0");
  return count;
}

// `name` or `name:4`.
Host read_host(const std::string& word, const std::string& where) {
  const std::size_t colon = word.rfind(':');
  const bool has_slots = colon != std::string::npos && word.find(':') == colon; // no IPv6 address
  const std::string name = has_slots ? word.substr(0, colon) : word;
  if (name.empty()) throw std::runtime_error(where + ": the name of a host is empty");
  if (name.front() == '-') // which ssh would take for an option
    throw std::runtime_error(where + ": \"" + name + "\" is no name of a host");
  return {name, has_slots ? slot_count(std::string_view(word).substr(colon + 1), where) : 1};
}

// A line of a host file; there may be no host on it.
void add_line(std::vector<Host>& hosts, const std::string& line, const std::string& where) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string word;
  if (!(words >> word)) return;
  Host host = read_host(word, where);
  while (words >> word) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == std::string::npos || (key != "slots" && key != "max_slots" && key != "max-slots"))
      throw std::runtime_error(
          where + ": found \"" + word +
          "\" behind the host; slots=COUNT or max_slots=COUNT may stand there");
    const int count = slot_count(std::string_view(word).substr(equals + 1), where);
    if (key == "slots") host.slots = count; // no bound is kept, so max_slots= says nothing
  }
  add_host(hosts, host);
}

} // namespace

void add_host(std::vector<Host>& hosts, Host host) {
  if (is_this_machine(host.name)) host.name = boot::host_name();
  host.slots = std::min(host.slots, most_ranks_of_job); // more say nothing more
  const auto known = std::ranges::find(hosts, host.name, &Host::name);
  if (known == hosts.end())
    hosts.push_back(host);
  else
    known->slots = std::min(known->slots + host.slots, most_ranks_of_job);
}

void add_hosts(std::vector<Host>& hosts, const std::string& list) {
  bool any = false;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ','); any = true)
    add_host(hosts, read_host(name, "--host " + list));
  if (!any) throw std::runtime_error("--host: the list of hosts is empty");
}

void add_host_file(std::vector<Host>& hosts, const std::string& path) {
  std::ifstream file(path);
  const std::size_t before = hosts.size();
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    if (number == 0 && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
    add_line(hosts, line, path + ", line " + std::to_string(++number));
  }
  if (!file.is_open() || file.bad()) // a folder can be opened, but not read
    throw std::runtime_error("the host file " + path + " cannot be read: " + std::strerror(errno));
  if (hosts.size() == before) throw std::runtime_error("the host file " + path + " names no host");
}

} // namespace macadam::tools
