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

  // Of a request that has come from another machine: of which of this mpiexec, or over which link
  // to another one (links.h), and its id there.
  struct Origin {
    static constexpr std::uint32_t link_bit = std::uint32_t{1} << 31;
    [[nodiscard]] bool is_link() const { return (machine & link_bit) != 0; }
    std::uint32_t machine = 0;
    std::uint64_t id = 0;
    auto operator<=>(const Origin&) const = default;
  };
  enum class Then { close, await_confirmation, stay };

  // Where requests go.
  class Desk {
   public:
    // Answers now or later. What it throws is the answer.
    virtual void on_request(Id id, const boot::RequestHead& head, boot::PacketReader rest) = 0;
    // The client of an answer that is to be confirmed has it.
    virtual void on_confirmed(Id id) = 0;
    // The client has called off what is not answered, or not confirmed, or has ended.
    virtual void on_gone(Id id) = 0;
    // An answer for another machine.
    virtual void send(const Origin& origin, const std::vector<std::byte>& packet, Then then) = 0;

   protected:
    ~Desk() = default;
  };

  // `desk` outlives the server. Does without a socket if the system refuses one. Its name is random
  // if none is given.
  explicit ControlServer(Desk& desk, std::string name = {});
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
  // False if the client has gone; then it is not told of by on_gone(). One that is to stay does so
  // if there are not too many of them, until it goes.
  bool answer(Id id, const boot::PacketWriter& rest, int descriptor = -1, Then then = Then::close);
  bool refuse(Id id, const base::Error& error);
  // A client that waits for its answer, or stays, is told of another process. False if it has gone,
  // or has not listened to what it was told before.
  bool introduce(Id id, const boot::PacketWriter& rest, int descriptor);

  // What comes from another machine is a client, too; descriptors do not reach it.
  void receive(const Origin& origin, std::vector<std::byte> request);
  void confirm(const Origin& origin);
  void call_off(const Origin& origin);
  // All that has come from there.
  void call_off_all(std::uint32_t machine);
  // Where a client is, if it is on another machine.
  [[nodiscard]] std::optional<Origin> origin(Id id) const;
  // What came with a client's request, for the caller to close; -1: nothing.
  int take_descriptor(Id id);
  // Another machine's answer to a client's request.
  void pass_on(Id id, const std::vector<std::byte>& answer, Then then);

 private:
  enum class Stage { silent, asked, answered, staying };
  struct Connection {
    int socket = -1; // none for one of another machine
    std::optional<Origin> origin;
    Stage stage = Stage::silent;
    Clock::time_point until; // how long it may be silent
    int descriptor = -1;     // that came with its request
  };

  void accept_all(int listener);
  void receive(Id id);
  void on_packet(Id id, boot::Packet packet);
  void read_request(Id id, std::vector<std::byte> bytes);
  [[nodiscard]] Id find(const Origin& origin) const;
  bool send(Id id, const std::vector<std::byte>& packet, int descriptor, Then then);
  void let_stay(Connection& connection);
  // Forgets a connection.
  void drop(Id id);
  void send_away(Id id);

  Desk& desk_;
  std::string name_;
  std::map<std::string, int> listeners_; // by name
  std::map<Id, Connection> connections_;
  std::size_t staying_ = 0;
  Id last_id_ = 0;
  std::size_t most_;                             // connections at once
  std::optional<Clock::time_point> rests_until_; // for want of descriptors
  std::vector<int> listed_listeners_;
  std::vector<Id> listed_connections_;
};

} // namespace macadam::tools
