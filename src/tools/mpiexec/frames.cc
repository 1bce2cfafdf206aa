// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/frames.h"

#include "boot/job_memory.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace macadam::tools {
namespace {

constexpr std::string_view greeting = "\nmacadam mpiexec proxy, version ";
constexpr int frames_version = 4;
constexpr std::size_t longest_noise = 64 << 10; // before the greeting
constexpr std::uint32_t longest_frame = 256 << 20;

struct Head {
  std::uint32_t bytes; // of the body
  FrameKind kind;
};

std::string own_version() {
  return fmt::format("{} ({}.{})", MACADAM_VERSION, boot::job_memory_version, frames_version);
}

} // namespace

int take_stream(int fd) {
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (own < 0 || nothing < 0)
    throw std::runtime_error(std::string("taking mpiexec's streams: ") + std::strerror(errno));
  dup2(nothing, fd);
  close(nothing);
  return own;
}

FrameStream::FrameStream(int in, int out, std::string first)
    : in_(in), out_(out), out_bytes_(std::move(first)) {
  for (const int fd : {in_, out_}) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  out_bytes_ += std::string(greeting) + own_version() + "\n";
}

FrameStream::~FrameStream() {
  close(in_);
  close(out_);
}

void FrameStream::send(FrameKind kind, const boot::PacketWriter& body) {
  if (is_broken_) return;
  Head head{};
  head.bytes = static_cast<std::uint32_t>(body.bytes().size());
  head.kind = kind;
  out_bytes_.append(reinterpret_cast<const char*>(&head), sizeof head);
  out_bytes_.append(body.view());
}

void FrameStream::write_some() {
  std::size_t done = 0;
  while (done < out_bytes_.size()) {
    const ssize_t written = write(out_, out_bytes_.data() + done, out_bytes_.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      is_broken_ = true; // the end of the other direction tells why
      done = out_bytes_.size();
    }
  }
  out_bytes_.erase(0, done);
}

bool FrameStream::read_some() {
  in_bytes_.erase(0, std::exchange(taken_, 0));
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t bytes = read(in_, buffer.data(), buffer.size());
    if (bytes > 0)
      in_bytes_.append(buffer.data(), static_cast<std::size_t>(bytes));
    else if (bytes == 0 || (errno != EAGAIN && errno != EINTR))
      return false;
    if (bytes < static_cast<ssize_t>(buffer.size())) return true;
  }
}

// False as long as the greeting has not come whole.
bool FrameStream::take_preamble() {
  const std::size_t at = in_bytes_.find(greeting);
  if (at == std::string::npos) {
    if (in_bytes_.size() > longest_noise)
      throw Misunderstood("prints other things than mpiexec's answer");
    return false;
  }
  const std::size_t begin = at + greeting.size();
  const std::size_t end = in_bytes_.find('\n', begin);
  if (end == std::string::npos) return false;
  const std::string version = in_bytes_.substr(begin, end - begin);
  taken_ = end + 1;
  if (version != own_version())
    throw Misunderstood(fmt::format("has version {} of Macadam, this machine {}: install the same "
                                    "version on all machines",
                                    version, own_version()));
  greeted_ = true;
  return true;
}

std::optional<Frame> FrameStream::next() {
  if (!greeted_ && !take_preamble()) return std::nullopt;
  Head head{};
  const std::size_t left = in_bytes_.size() - taken_;
  const char* const first = in_bytes_.data() + taken_;
  if (left < sizeof head) return std::nullopt;
  std::memcpy(&head, first, sizeof head);
  if (head.bytes > longest_frame || head.kind > FrameKind::unlinked)
    throw Misunderstood("mixes other output into what mpiexec says");
  if (left < sizeof head + head.bytes) return std::nullopt;
  std::vector<std::byte> body(head.bytes);
  std::memcpy(body.data(), first + sizeof head, head.bytes);
  taken_ += sizeof head + head.bytes;
  return Frame{head.kind, boot::PacketReader(std::move(body))};
}

void FrameStream::list(std::vector<pollfd>& polled) const {
  polled.push_back({in_, POLLIN, 0});
  polled.push_back({has_pending() ? out_ : -1, POLLOUT, 0});
}

} // namespace macadam::tools
