// SPDX-License-Identifier: BSD-3-Clause
#include "boot/pmi2/connection.h"

#include "base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace macadam::boot::pmi2 {
namespace {

constexpr std::size_t length_bytes = 6;

[[noreturn]] void fail(std::string_view what, std::string_view found) {
  base::fail(MPI_ERR_OTHER,
             "the PMI-2 server that has started this program does not serve it: {}: {}; start it "
             "anew, or with Macadam's mpiexec",
             what, found);
}

} // namespace

Fields parse_fields(std::string_view text) {
  Fields fields;
  while (!text.empty()) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) break;
    std::string value;
    std::size_t at = equals + 1;
    for (; at < text.size(); ++at) {
      if (text[at] == ';' && (at + 1 == text.size() || text[++at] != ';')) break;
      value += text[at];
    }
    fields.emplace(text.substr(0, equals), std::move(value));
    text.remove_prefix(std::min(at, text.size()));
  }
  return fields;
}

// The first line of either side is as in PMI-1, without a length.
void Connection::greet() {
  write_all("cmd=init pmi_version=2 pmi_subversion=0\n");
  std::string line;
  while (line.empty() || line.back() != '\n')
    line += read_exactly(1);
  line.pop_back();
  if (line.find(" rc=0") == std::string::npos || line.find(" pmi_version=2") == std::string::npos)
    fail("asked for version 2 of PMI", line);
}

Fields Connection::ask(std::string_view command, Pairs pairs) {
  send(command, pairs);
  return receive(command);
}

void Connection::send(std::string_view command, Pairs pairs) {
  std::string text = fmt::format("cmd={};", command);
  for (const auto& [key, value] : pairs)
    text += fmt::format("{}={};", key, value);
  write_all(fmt::format("{:6}{}", text.size(), text));
}

bool Connection::has_answer() const {
  pollfd polled{fd_, POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

Fields Connection::receive(std::string_view command) {
  Fields fields = receive();
  check(command, fields);
  return fields;
}

void Connection::check(std::string_view command, Fields& answer) {
  if (answer["cmd"] != fmt::format("{}-response", command) || answer["rc"] != "0")
    fail(command, fmt::format("its answer is {}, rc {}", answer["cmd"], answer["rc"]));
}

Fields Connection::receive() {
  const std::string length = read_exactly(length_bytes); // spaces before the number or behind it
  std::size_t bytes = 0;
  const std::size_t begin = std::min(length.find_first_not_of(' '), length.size());
  const char* const end = length.data() + length.size();
  const auto number = std::from_chars(length.data() + begin, end, bytes);
  if (number.ec != std::errc() ||
      std::string_view(number.ptr, end).find_first_not_of(' ') != std::string_view::npos)
    fail("reading from it", "\"" + length + "\" is no length of an answer");
  return parse_fields(read_exactly(bytes));
}

void Connection::write_all(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("writing to it", std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string Connection::read_exactly(std::size_t bytes) const {
  std::string text(bytes, 0);
  for (std::size_t got = 0; got < bytes;) {
    const ssize_t read = ::read(fd_, text.data() + got, bytes - got);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) fail("reading from it", std::strerror(errno));
    if (read == 0) fail("reading from it", "it has ended the connection");
    got += static_cast<std::size_t>(read);
  }
  return text;
}

} // namespace macadam::boot::pmi2
