// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/afar.h"
#include "tools/mpiexec/connection.h"
#include "tools/mpiexec/control_server.h"
#include "tools/mpiexec/frames.h"
#include "tools/mpiexec/silence.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <poll.h>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::tools {

// mpiexec's one argument where another one has started it as the far end of a link.
inline constexpr const char* link_word = "--link";
// Connects standard input and output with the mpiexec of this machine whose socket the first line
// names. Returns the exit status.
int run_link();

// Links with other mpiexecs of this user, for jobs of ours and of theirs that meet. A link is made
// at the first request, by the remote shell, which starts an mpiexec there that connects to the
// other's socket (run_link()). So nothing listens to a network. There is one for two mpiexecs, over
// which both ask; it ends when neither has asked for anything that is not answered, and one request
// is not answered for long: that which watches a job (boot/control.h).
class Links {
 public:
  using Clock = std::chrono::steady_clock;
  struct Own {
    std::string host;
    double silence_seconds; // then the other side is gone
    sigset_t signal_mask;   // of processes that are started
  };
  // Whether this part of mpiexec has a link with that mpiexec now.
  using OnChange = std::function<void(const std::string& mpiexec, bool linked)>;

  // `server` outlives the object, and takes what others ask.
  Links(ControlServer& server, Own own, OnChange on_change);
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  // Lets the other sides know that it was the end, for a moment.
  ~Links();

  // `on_answer` is called later, in take() or tell_ended(). What cannot be asked is refused by it.
  std::uint64_t ask(const Place& place, std::string request, OnPacket on_answer);
  void call_off(std::uint64_t asked);
  // To a request that has come over a link.
  void answer(const ControlServer::Origin& origin, const std::vector<std::byte>& packet);
  // Why the last of those was lost that did not end as both sides wished; empty if none was.
  [[nodiscard]] const std::string& last_loss() const { return last_loss_; }
  // The other side has made a link; takes the descriptor over.
  void add(int stream);

  // Appends what to poll, and takes the answer: the entries from `first` on. To be called when
  // due(), too.
  void list(std::vector<pollfd>& polled);
  void take(const pollfd* first);
  [[nodiscard]] std::optional<Clock::time_point> due() const;
  // A process that has ended. False if it is none of a link.
  bool note_end(pid_t pid, int status);
  // This mpiexec stops, and says nothing then, or goes on.
  void tell_signal(int number);

 private:
  enum class Stage {
    greeting, // the other side has not answered yet
    open,
    asked,   // whether it may end
    leaving, // it ends; what is left is written
    gone,
  };
  struct Link {
    explicit Link(double silence_seconds) : silence(silence_seconds) {}

    std::uint32_t number = 0;          // no other has it
    Place place;                       // of the other side
    std::string mpiexec;               // the other's name; empty: it has not said yet
    std::unique_ptr<Connection> shell; // null: the other side has made the link
    std::unique_ptr<FrameStream> accepted;
    Clock::time_point since; // the first of these moments: made, idle
    Stage stage = Stage::greeting;
    std::set<std::uint64_t> serves; // requests of the other side
    Silence silence;
    bool stopped = false; // the other side is, and says nothing

    [[nodiscard]] FrameStream& stream() { return shell ? shell->stream() : *accepted; }
    void say(FrameKind kind, const boot::PacketWriter& body = {});
    [[nodiscard]] std::uint32_t machine() const { return number | ControlServer::Origin::link_bit; }
  };
  struct Asked {
    Link* link;
    Place place;
    std::string request;
    OnPacket on_answer;
  };

  Link* find(const std::string& mpiexec);
  Link& make(const Place& place);
  Link& open(std::unique_ptr<Link> link);
  void send(Link& link, std::uint64_t id, const std::string& request);
  void take(Link& link);
  void on_frame(Link& link, Frame frame);
  void on_hello(Link& link, boot::PacketReader& body);
  void on_request(Link& link, boot::PacketReader& body);
  void on_answer(boot::PacketReader& body);
  void on_wish_to_end(Link& link);
  void on_bye(Link& link);
  [[nodiscard]] bool is_idle(const Link& link) const;
  void on_beat();
  void beat(Link& link);
  void lose(Link& link, const std::string& why);
  [[nodiscard]] std::string explain(Link& link);
  void sweep();

  ControlServer& server_;
  const Own own_;
  const std::string mpiexec_; // this one's name
  const OnChange on_change_;
  std::string last_loss_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::pair<Link*, std::size_t>> listed_; // and its place in what is polled
  std::map<std::uint64_t, Asked> asked_;
  std::vector<std::pair<OnPacket, std::string>> refused_; // requests, and why
  std::uint64_t last_asked_ = 0;
  std::uint32_t last_number_ = 0;
  Clock::time_point beat_{};
};

} // namespace macadam::tools
