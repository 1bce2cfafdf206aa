// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/output.h"

#include "boot/limits.h"
#include "tools/mpiexec/head.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <fcntl.h>
#include <stdexcept>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace macadam::tools {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t longest_line = 1 << 20;
constexpr auto time_to_end_line = 100ms; // prompts have no end

[[noreturn]] void end_by_broken_pipe() {
  sigset_t pipe; // is pending: it was blocked for the sake of rank 0's input
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigprocmask(SIG_UNBLOCK, &pipe, nullptr);
  _exit(128 + SIGPIPE);
}

bool is_file(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

} // namespace

// A pipe that is writable has room for PIPE_BUF bytes. The descriptor could be made nonblocking
// instead, but that would be seen by whoever else has it: the ranks, mpiexec's shell.
Outlet::Outlet(int fd) : fd_(fd), piece_(is_file(fd) ? bound : PIPE_BUF) {}

void Outlet::append(std::string_view text) {
  pending_ += text;
  write_some();
}

void Outlet::write_to_head() {
  while (std::size_t bytes = std::min(head_->room(fd_), pending_.size())) {
    if (bytes < pending_.size()) { // lines of several machines should not mix
      const std::size_t line_end = pending_.rfind('\n', bytes - 1);
      if (line_end != std::string::npos)
        bytes = line_end + 1;
      else if (bytes < Head::output_window)
        return;
    }
    head_->write(fd_, std::string_view(pending_).substr(0, bytes));
    pending_.erase(0, bytes);
  }
}

void Outlet::write_some() {
  if (head_ != nullptr) return write_to_head();
  std::size_t done = 0;
  while (done < pending_.size()) {
    pollfd ready{fd_, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) break;
    const ssize_t written =
        write(fd_, pending_.data() + done, std::min(piece_, pending_.size() - done));
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno == EPIPE) {
      end_by_broken_pipe();
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      if (error_ == 0) error_ = errno;
      done = pending_.size();
    }
  }
  pending_.erase(0, done);
}

RankOutput::~RankOutput() {
  for (const Pipe& pipe : pipes_)
    if (pipe.fd >= 0) close(pipe.fd);
}

void RankOutput::add(const std::string& label, Streams& streams) {
  for (int target : {1, 2}) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw std::runtime_error(boot::explain_failure("making a pipe for a rank's output", errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pipes_.push_back(
        {ends[0], target == 1 ? &out_ : &error_, label.empty() ? "" : "[" + label + "] ", {}});
    (target == 1 ? streams.out : streams.error) = ends[1];
  }
}

void RankOutput::list(std::vector<pollfd>& polled) const {
  for (const Pipe& pipe : pipes_)
    polled.push_back({pipe.target->is_full() ? -1 : pipe.fd, POLLIN, 0});
}

void RankOutput::take(const pollfd* first) {
  for (Pipe& pipe : pipes_)
    if ((first++)->revents != 0)
      read_some(pipe);
    else if (due(pipe) && Clock::now() >= *due(pipe) && !pipe.target->is_full())
      pipe.target->append(std::exchange(pipe.line, {}));
  std::erase_if(pipes_, [](const Pipe& pipe) { return pipe.fd < 0 && pipe.line.empty(); });
}

// When the beginning of a line goes as it is.
std::optional<RankOutput::Clock::time_point> RankOutput::due(const Pipe& pipe) {
  if (!pipe.label.empty() || pipe.line.empty()) return std::nullopt;
  return pipe.read + time_to_end_line;
}

std::optional<RankOutput::Clock::time_point> RankOutput::due() const {
  std::optional<Clock::time_point> first;
  for (const Pipe& pipe : pipes_)
    if (const auto each = due(pipe); each && !pipe.target->is_full())
      first = std::min(first.value_or(*each), *each);
  return first;
}

void RankOutput::drain() {
  for (Pipe& pipe : pipes_) {
    while (read_some(pipe)) {
    }
    if (!pipe.line.empty())
      pipe.target->append(pipe.label.empty() ? pipe.line : pipe.label + pipe.line + "\n");
    pipe.line.clear();
  }
}

bool RankOutput::read_some(Pipe& pipe) {
  if (pipe.fd < 0) return false;
  std::array<char, 1 << 16> buffer;
  const ssize_t bytes = read(pipe.fd, buffer.data(), buffer.size());
  if (bytes < 0) return errno == EINTR;
  if (bytes == 0) {
    close(pipe.fd);
    pipe.fd = -1;
    return false;
  }
  pipe.read = Clock::now();
  std::string whole_lines;
  std::string_view rest(buffer.data(), static_cast<std::size_t>(bytes));
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    pipe.line += rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (end == std::string_view::npos && pipe.line.size() < longest_line) break;
    whole_lines += pipe.label + pipe.line;
    if (end != std::string_view::npos || !pipe.label.empty()) whole_lines += '\n';
    pipe.line.clear();
  }
  if (!whole_lines.empty()) pipe.target->append(whole_lines);
  return true;
}

} // namespace macadam::tools
