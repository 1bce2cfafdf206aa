// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/branch.h"

#include "tools/mpiexec/connection.h"
#include "tools/mpiexec/head.h"
#include "tools/mpiexec/proxy.h"

#include <csignal>
#include <exception>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <vector>

namespace macadam::tools {
namespace {

using boot::PacketReader;
using boot::PacketWriter;

class Branch {
 public:
  Branch() : head_(take_stream(0), take_stream(1)) {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE); // a write fails instead
    sigprocmask(SIG_BLOCK, &pipe, &original_mask_);
  }

  void run() {
    while (!head_is_gone_ && !(is_begun_ && are_over())) {
      std::vector<pollfd> polled;
      head_.list(polled);
      for (const Child& child : children_) {
        if (child.connection)
          child.connection->stream().list(polled);
        else
          polled.insert(polled.end(), 2, {-1, 0, 0});
      }
      poll(polled.data(), polled.size(), -1);
      if (polled[0].revents != 0) hear_head();
      for (std::size_t place = 0; 2 * place + 2 < polled.size(); ++place) {
        if (children_[place].connection) children_[place].connection->stream().write_some();
        if (polled[2 * place + 2].revents != 0) hear(place);
      }
      head_.write_some();
    }
    write_rest();
  }

 private:
  struct Child {
    std::unique_ptr<Connection> connection; // null: it is over
    bool answered = false;
  };

  [[nodiscard]] bool are_over() const {
    for (const Child& child : children_)
      if (child.connection) return false;
    return true;
  }

  void hear_head() {
    head_is_gone_ = !head_.read_some();
    while (std::optional<Frame> frame = head_.next()) {
      if (frame->kind == FrameKind::connect) {
        connect(frame->body);
      } else if (frame->kind == FrameKind::via) {
        const auto place = frame->body.value<std::uint32_t>();
        const auto kind = frame->body.value<FrameKind>();
        if (place >= children_.size() || !children_[place].connection) continue;
        PacketWriter body;
        body.raw(frame->body.rest());
        children_[place].connection->send(kind, body);
      }
    }
  }

  void connect(PacketReader& body) {
    is_begun_ = true;
    RemoteShell shell;
    shell.is_shell = body.value<bool>();
    for (auto left = body.value<std::uint32_t>(); left > 0; --left)
      shell.words.push_back(body.text());
    children_.resize(body.value<std::uint32_t>());
    for (std::size_t place = 0; place < children_.size(); ++place) {
      std::string host = body.text();
      try {
        children_[place].connection = std::make_unique<Connection>(
            std::move(host), Connection::Task{proxy_word, place == 0, {}, "ranks"}, shell,
            original_mask_);
      } catch (const std::exception& error) {
        tell_lost(place, error.what());
      }
    }
  }

  void hear(std::size_t place) {
    Child& child = children_[place];
    FrameStream& stream = child.connection->stream();
    const bool goes_on = stream.read_some();
    try {
      while (std::optional<Frame> frame = stream.next()) {
        child.answered = true;
        PacketWriter body;
        body.value(static_cast<std::uint32_t>(place));
        body.value(frame->kind);
        body.raw(frame->body.rest());
        head_.send(FrameKind::via, body);
      }
    } catch (const Misunderstood& error) {
      return tell_lost(place, "host " + child.connection->host() + " " + error.what());
    }
    if (!goes_on) tell_lost(place, child.connection->explain_loss(child.answered));
  }

  void tell_lost(std::size_t place, const std::string& why) {
    children_[place].connection.reset();
    PacketWriter body;
    body.value(static_cast<std::uint32_t>(place));
    body.text(why);
    head_.send(FrameKind::lost, body);
  }

  // That the last one is over the head may well know, and not read any more.
  void write_rest() {
    while (!head_is_gone_ && head_.has_pending()) {
      std::vector<pollfd> polled;
      head_.list(polled);
      poll(polled.data(), polled.size(), -1);
      if (polled[0].revents != 0) head_is_gone_ = !head_.read_some();
      head_.write_some();
    }
  }

  FrameStream head_;
  sigset_t original_mask_{};
  std::vector<Child> children_; // by place
  bool is_begun_ = false;
  bool head_is_gone_ = false;
};

} // namespace

int run_branch() {
  Branch().run();
  return 0;
}

} // namespace macadam::tools
