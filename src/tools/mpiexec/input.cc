// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/input.h"

#include "boot/limits.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <stdexcept>
#include <system_error>
#include <unistd.h>

namespace macadam::tools {

TerminalInput::TerminalInput() {
  if (!isatty(0)) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(boot::explain_failure("making a pipe for rank 0's input", errno));
  reading_end_ = ends[0];
  writing_end_ = ends[1];
  fcntl(writing_end_, F_SETFL, O_NONBLOCK);
}

TerminalInput::~TerminalInput() {
  forget_reading_end();
  close_writing_end();
}

void TerminalInput::forget_reading_end() {
  if (reading_end_ >= 0) close(reading_end_);
  reading_end_ = -1;
}

void TerminalInput::close_writing_end() {
  if (writing_end_ >= 0) close(writing_end_);
  writing_end_ = -1;
}

bool TerminalInput::in_foreground() {
  return tcgetpgrp(0) == getpgrp();
}

void TerminalInput::list(std::vector<pollfd>& polled) const {
  if (!pending_.empty())
    polled.push_back({writing_end_, POLLOUT, 0});
  else
    polled.push_back({writing_end_ >= 0 && in_foreground() ? 0 : -1, POLLIN, 0});
}

void TerminalInput::take(const pollfd& polled) {
  if (polled.revents == 0) return;
  if (pending_.empty()) {
    std::array<char, 4096> buffer;
    const ssize_t bytes = read(0, buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) return;
    if (bytes <= 0) return close_writing_end();
    pending_.assign(buffer.data(), static_cast<std::size_t>(bytes));
  }
  const ssize_t written = write(writing_end_, pending_.data(), pending_.size());
  if (written >= 0)
    pending_.erase(0, static_cast<std::size_t>(written));
  else if (errno != EAGAIN && errno != EINTR) {
    pending_.clear(); // rank 0 reads no more
    close_writing_end();
  }
}

} // namespace macadam::tools
