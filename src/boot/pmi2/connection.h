// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace macadam::boot::pmi2 {

// What an answer has, by key.
using Fields = std::map<std::string, std::string, std::less<>>;

// Reads "cmd=kvs-get-response;rc=0;found=TRUE;value=v;". A ';' within a value is written twice.
Fields parse_fields(std::string_view text);

// The connection with a PMI-2 server, over a descriptor that the launcher has left to this process
// (PMI_FD). Each command and each answer has its length in front, six characters of decimal. One
// command at a time.
class Connection {
 public:
  // `fd` stays the caller's.
  explicit Connection(int fd) : fd_(fd) {}

  // Agrees on the protocol. Throws MPI_ERR_OTHER, as all below do when the server fails.
  void greet();
  using Pairs = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  // Sends a command and waits for its answer.
  Fields ask(std::string_view command, Pairs pairs);
  void send(std::string_view command, Pairs pairs);
  // Whether receive() would not wait.
  [[nodiscard]] bool has_answer() const;
  Fields receive(std::string_view command);
  // The next answer, whatever it says.
  Fields receive();
  // That it is one to the command, and good.
  static void check(std::string_view command, Fields& answer);

 private:
  void write_all(std::string_view text) const;
  [[nodiscard]] std::string read_exactly(std::size_t bytes) const;

  int fd_;
};

} // namespace macadam::boot::pmi2
