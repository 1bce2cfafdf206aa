// SPDX-License-Identifier: BSD-3-Clause
#include "libgravel/job.h"

#include "boot/machine.h"
#include "gravel/error.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace macadam::libgravel {

using gravel::Code;
using gravel::fail;

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Machine this_machine() {
  Machine machine;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(
      std::fopen("/proc/sys/kernel/random/boot_id", "re"), std::fclose);
  struct stat names {};
  if (!file || std::fgets(machine.boot.data(), machine.boot.size(), file.get()) == nullptr ||
      stat("/proc/self/ns/pid", &names) != 0)
    fail(Code::system, "/proc is needed and not there: {}; it tells which ranks are on one machine",
         std::strerror(errno));
  machine.process_namespace = names.st_ino;
  return machine;
}

Job::Job(std::uint32_t rank, std::uint32_t size)
    : rank_(rank), size_(size), own_(memfd_create("gravel", MFD_CLOEXEC)) {
  if (own_.get() < 0 || ftruncate(own_.get(), capacity) != 0)
    fail(Code::system, "shared memory: no segment (memfd_create): {}", std::strerror(errno));
}

void Job::describe(Greeting& own) const {
  struct stat status {};
  if (fstat(own_.get(), &status) != 0)
    fail(Code::system, "shared memory: fstat: {}", std::strerror(errno));
  own.process = getpid();
  own.segment = own_.get();
  own.device = status.st_dev;
  own.file = status.st_ino;
}

void Job::meet(std::vector<Greeting> all) {
  greetings_ = std::move(all);
  for (int peer = 0; peer < size(); ++peer) {
    if (!is_local(peer)) continue;
    if (peer == rank()) local_rank_ = local_size();
    neighbours_.push_back(peer);
  }
}

Job::Opened Job::open_process(int rank, const Greeting& peer) {
  const std::string path = fmt::format("/proc/{}/fd/{}", peer.process, peer.segment);
  Opened opened{Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC)), {}};
  if (opened.segment.get() < 0)
    fail(Code::system,
         "shared memory of rank {}: {}: {}; ranks must run as one user, not set-uid, and their "
         "container must show /proc; or set MACADAM_NETWORK=rdma",
         rank, path, std::strerror(errno));
  struct stat status {};
  if (fstat(opened.segment.get(), &status) != 0 || status.st_dev != peer.device ||
      status.st_ino != peer.file)
    fail(Code::system,
         "shared memory of rank {}: {} is another file; is /proc that of another "
         "process namespace? Set MACADAM_NETWORK=rdma",
         rank, path);
#ifdef SYS_pidfd_open
  opened.life = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, peer.process, 0)));
#endif
  return opened;
}

void Job::open_segments() {
  for (const int peer : neighbours_)
    if (peer != rank()) opened_.emplace(peer, open_process(peer, greetings_[at(peer)]));
}

void Job::publish(std::span<const std::byte> address) {
  own_endpoint_.bytes = std::min(address.size(), own_endpoint_.address.size());
  std::memcpy(own_endpoint_.address.data(), address.data(), own_endpoint_.bytes);
}

std::optional<std::span<const std::byte>> Job::fetch(int rank) const {
  if (endpoints_.empty()) return std::nullopt;
  const Published& its = endpoints_[at(rank)];
  return std::span(its.address).first(std::min<std::size_t>(its.bytes, its.address.size()));
}

boot::Life Job::life(int rank) const {
  const auto known = opened_.find(rank);
  if (known == opened_.end() || known->second.life.get() < 0) return boot::Life::unknown;
  pollfd life{known->second.life.get(), POLLIN, 0};
  return poll(&life, 1, 0) == 1 ? boot::Life::over : boot::Life::running;
}

int Job::cores() const {
  return static_cast<int>(boot::usable_cores());
}

} // namespace macadam::libgravel
