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

InputPipe::~InputPipe() {
  forget_reading_end();
  close_writing_end();
}

void InputPipe::open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(boot::explain_failure("making a pipe for rank 0's input", errno));
  reading_end_ = ends[0];
  writing_end_ = ends[1];
  fcntl(writing_end_, F_SETFL, O_NONBLOCK);
}

void InputPipe::forget_reading_end() {
  if (reading_end_ >= 0) close(reading_end_);
  reading_end_ = -1;
}

void InputPipe::close_writing_end() {
  if (writing_end_ >= 0) close(writing_end_);
  writing_end_ = -1;
}

void InputPipe::end() {
  ends_ = true;
  if (!has_pending()) close_writing_end();
}

std::size_t InputPipe::write_some() {
  if (!has_pending()) return 0;
  std::size_t done = pending_.size();
  if (is_open()) {
    const ssize_t written = write(writing_end_, pending_.data(), pending_.size());
    if (written >= 0)
      done = static_cast<std::size_t>(written);
    else if (errno == EAGAIN || errno == EINTR)
      return 0;
    else // rank 0 reads no more
      close_writing_end();
  }
  pending_.erase(0, done);
  if (ends_ && !has_pending()) close_writing_end();
  return done;
}

TerminalInput::TerminalInput() {
  if (isatty(0)) pipe_.open();
}

bool TerminalInput::in_foreground() {
  return tcgetpgrp(0) == getpgrp();
}

void TerminalInput::list(std::vector<pollfd>& polled) const {
  if (pipe_.has_pending())
    polled.push_back(pipe_.polled());
  else
    polled.push_back({pipe_.is_open() && in_foreground() ? 0 : -1, POLLIN, 0});
}

void TerminalInput::take(const pollfd& polled) {
  if (polled.revents == 0) return;
  if (!pipe_.has_pending()) {
    std::array<char, 4096> buffer;
    const ssize_t bytes = read(0, buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) return;
    if (bytes <= 0) return pipe_.end();
    pipe_.append({buffer.data(), static_cast<std::size_t>(bytes)});
  }
  pipe_.write_some();
}

} // namespace macadam::tools
