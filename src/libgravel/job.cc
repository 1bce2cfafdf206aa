// SPDX-License-Identifier: BSD-3-Clause
#include "libgravel/job.h"

#include "boot/job_memory.h"
#include "boot/machine.h"
#include "gravel/error.h"

#include <fcntl.h>
#include <sys/stat.h>
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

namespace {

// By which a process holds its segment: it ends with the process, and forked children do not
// inherit it.
struct flock hold() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_len = 1;
  return lock;
}

} // namespace

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
    : rank_(rank), size_(size), own_(boot::make_memfd("gravel", capacity)) {
  struct flock lock = hold();
  if (fcntl(own_.get(), F_SETLK, &lock) != 0)
    fail(Code::system, "shared memory: locking the segment: {}", std::strerror(errno));
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

base::Descriptor Job::open_segment(int rank, const Greeting& peer) {
  const std::string path = fmt::format("/proc/{}/fd/{}", peer.process, peer.segment);
  base::Descriptor segment(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!segment.is_open())
    fail(Code::system,
         "shared memory of rank {}: {}: {}; ranks must run as one user, not set-uid, and their "
         "container must show /proc; or set MACADAM_NETWORK=rdma",
         rank, path, std::strerror(errno));
  struct stat status {};
  if (fstat(segment.get(), &status) != 0 || status.st_dev != peer.device ||
      status.st_ino != peer.file)
    fail(Code::system,
         "shared memory of rank {}: {} is another file; is /proc that of another "
         "process namespace? Set MACADAM_NETWORK=rdma",
         rank, path);
  return segment;
}

void Job::open_segments() {
  for (const int peer : neighbours_)
    if (peer != rank()) opened_.emplace(peer, open_segment(peer, greetings_[at(peer)]));
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

// Who has left is failed to those who still want something of it, as nobody waits for all at the
// end.
boot::Life Job::life(int rank) const {
  const auto known = opened_.find(rank);
  if (known == opened_.end()) return boot::Life::unknown;
  struct flock lock = hold();
  const bool held = fcntl(known->second.get(), F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
  return held ? boot::Life::running : boot::Life::failed;
}

unsigned Job::failures() const {
  return static_cast<unsigned>(std::ranges::count_if(
      opened_, [this](const auto& row) { return life(row.first) == boot::Life::failed; }));
}

int Job::cores() const {
  return static_cast<int>(boot::usable_cores());
}

} // namespace macadam::libgravel
