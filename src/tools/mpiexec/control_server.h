// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "boot/control.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <poll.h>
#include <string>
#include <vector>

namespace macadam::tools {

// mpiexec's side of boot/control.h: sockets that processes of the same user connect to, each with
// one request. Waits for nobody: what a client does not send is not missed, and one that says
// nothing, something else or too much is sent away.
class ControlServer {
 public:
  using Clock = std::chrono::steady_clock;
  // Of a connection; none is used twice.
  using Id = std::uint64_t;

  // Where requests go.
  class Desk {
   public:
    // Answers now or later. What it throws is the answer.
    virtual void on_request(Id id, const boot::RequestHead& head, boot::PacketReader rest) = 0;
    // The client of an answer that is to be confirmed has it.
    virtual void on_confirmed(Id id) = 0;
    // The client has called off what is not answered, or not confirmed, or has ended.
    virtual void on_gone(Id id) = 0;

   protected:
    ~Desk() = default;
  };

  // `desk` outlives the server. Does without a socket if the system refuses one.
  explicit ControlServer(Desk& desk);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();

  // Of the socket; empty: there is none.
  [[nodiscard]] const std::string& name() const { return name_; }

  // Listens at another name besides. False with errno.
  bool listen(const std::string& name);
  void stop_listening(const std::string& name);

  // Appends what to poll, and takes the answer: as many entries from `first` on. To be called when
  // must_look_at() has come, too.
  void list(std::vector<pollfd>& polled);
  void take(const pollfd* first);
  [[nodiscard]] std::optional<Clock::time_point> must_look_at() const;

  // Whether the client is still there.
  [[nodiscard]] bool is_there(Id id) const;
  enum class Then { close, await_confirmation };
  // False if the client has gone; then it is not told of by on_gone().
  bool answer(Id id, const boot::PacketWriter& rest, int descriptor = -1, Then then = Then::close);
  bool refuse(Id id, const base::Error& error);

 private:
  enum class Stage { silent, asked, answered };
  struct Connection {
    int socket = -1;
    Stage stage = Stage::silent;
    Clock::time_point until; // how long it may be silent
  };

  void accept_all(int listener);
  void receive(Id id);
  void on_packet(Id id, boot::Packet packet);
  bool send(Id id, const boot::PacketWriter& packet, int descriptor, Then then);
  // Forgets a connection.
  void drop(Id id);
  void send_away(Id id);

  Desk& desk_;
  std::string name_;
  std::map<std::string, int> listeners_; // by name
  std::map<Id, Connection> connections_;
  Id last_id_ = 0;
  std::size_t most_;                             // connections at once
  std::optional<Clock::time_point> rests_until_; // for want of descriptors
  std::vector<int> listed_listeners_;
  std::vector<Id> listed_connections_;
};

} // namespace macadam::tools
