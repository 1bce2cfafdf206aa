// SPDX-License-Identifier: BSD-3-Clause
#include "libgravel/neighbours.h"

#include "boot/machine.h"
#include "gravel/error.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

Neighbours::Neighbours() : own_(memfd_create("gravel", MFD_CLOEXEC)) {
  if (own_.get() < 0 || ftruncate(own_.get(), capacity) != 0)
    fail(Code::system, "shared memory: no segment (memfd_create): {}", std::strerror(errno));
}

void Neighbours::describe(Greeting& own) const {
  struct stat status {};
  if (fstat(own_.get(), &status) != 0)
    fail(Code::system, "shared memory: fstat: {}", std::strerror(errno));
  own.process = getpid();
  own.segment = own_.get();
  own.device = status.st_dev;
  own.file = status.st_ino;
}

Neighbours::Row Neighbours::open_row(net::shm::Rank rank, const Greeting& peer) {
  const std::string path = fmt::format("/proc/{}/fd/{}", peer.process, peer.segment);
  Row row{true, peer.process, Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC)), {}};
  if (row.segment.get() < 0)
    fail(Code::system,
         "shared memory of rank {}: {}: {}; ranks must run as one user, not set-uid, and their "
         "container must show /proc; or set MACADAM_NETWORK=rdma",
         rank, path, std::strerror(errno));
  struct stat status {};
  if (fstat(row.segment.get(), &status) != 0 || status.st_dev != peer.device ||
      status.st_ino != peer.file)
    fail(Code::system,
         "shared memory of rank {}: {} is another file; is /proc that of another "
         "process namespace? Set MACADAM_NETWORK=rdma",
         rank, path);
#ifdef SYS_pidfd_open
  row.life = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, peer.process, 0)));
#endif
  return row;
}

void Neighbours::meet(std::uint32_t rank, const std::vector<Greeting>& all) {
  rank_ = rank;
  rows_.resize(all.size());
  for (std::uint32_t peer = 0; peer < all.size(); ++peer) {
    if (all[peer].machine != all[rank].machine) continue;
    if (peer == rank) {
      rows_[peer].local = true;
      rows_[peer].process = getpid();
      local_index_ = local_size();
    } else {
      rows_[peer] = open_row(peer, all[peer]);
    }
    neighbours_.push_back(peer);
  }
}

bool Neighbours::has_ended(net::shm::Rank peer) const {
  pollfd life{rows_[peer].life.get(), POLLIN, 0};
  return life.fd >= 0 && poll(&life, 1, 0) == 1;
}

unsigned Neighbours::cores() const {
  return boot::usable_cores();
}

} // namespace macadam::libgravel
