// SPDX-License-Identifier: BSD-3-Clause
#include "boot/job_memory.h"

#include "base/error.h"
#include "boot/futex.h"
#include "boot/limits.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace macadam::boot {
namespace {

constexpr std::uint64_t magic_word = 0x6d61636164616d31; // "macadam1"

std::byte* map(int fd, std::uint64_t bytes) {
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (base == MAP_FAILED)
    base::fail(MPI_ERR_OTHER, "mapping {} bytes of the job's memory failed: {}", bytes,
               std::strerror(errno));
  return static_cast<std::byte*>(base);
}

bool read_header(int fd, JobHeader& header) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
         pread(fd, &header, sizeof header, 0) == ssize_t{sizeof header} &&
         header.magic == magic_word;
}

// The file of a job's memory, with a descriptor where programs do not expect their own.
int make_file(const JobLayout& layout) {
  const int low = make_memfd(job_memory_name, layout.end);
  const int fd = fcntl(low, F_DUPFD_CLOEXEC, first_job_descriptor);
  const int error = errno;
  close(low);
  if (fd < 0)
    base::fail(
        MPI_ERR_OTHER, "{}", // EINVAL: the limit is lower
        explain_failure("taking a file descriptor from 64 on", error == EINVAL ? EMFILE : error));
  return fd;
}

// The bytes of the file that are locked: by mpiexec, and by others that use the memory.
constexpr off_t held_byte = 0, used_byte = 1;

struct flock lock_on(off_t byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

std::uint32_t count_ranks(const std::vector<Node>& nodes) {
  std::uint32_t sum = 0;
  for (const Node& node : nodes)
    sum += node.ranks;
  return sum;
}

} // namespace

int make_memfd(const char* what, std::uint64_t bytes) {
  // Kernels before 6.3 do not know MFD_NOEXEC_SEAL; later ones may insist on it.
  int fd = memfd_create(what, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = memfd_create(what, MFD_CLOEXEC);
  if (fd < 0)
    base::fail(MPI_ERR_OTHER, "{}",
               explain_failure(fmt::format("memfd_create for {}", what).c_str(), errno));
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
    close(fd);
    base::fail(MPI_ERR_OTHER,
               "the file size limit of {} bytes forbids the sparse memory file of {}; lift it with "
               "\"ulimit -f unlimited\" (only pages that are used take memory)",
               limit.rlim_cur, what);
  }
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    close(fd);
    base::fail(MPI_ERR_OTHER, "giving {} its size of {} bytes failed: {}", what, bytes,
               std::strerror(error));
  }
  return fd;
}

JobMemory::JobMemory(int fd, const JobLayout& layout)
    : fd_(fd), layout_(layout), base_(map(fd, layout.mapped)) {
  remember_file();
}

void JobMemory::remember_file() {
  struct stat status {};
  if (fd_ < 0 || fstat(fd_, &status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

bool JobMemory::is_memory(int fd) const {
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

int JobMemory::fd() const {
  if (fd_ < 0 || is_memory(fd_)) return fd_;
  const std::string path = fmt::format("/proc/{}/fd/{}", header().launcher, header().file);
  const int low = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const int error = errno;
  const bool found = low >= 0 && is_memory(low);
  const int fd = found ? fcntl(low, F_DUPFD_CLOEXEC, first_job_descriptor) : -1;
  if (low >= 0) close(low);
  if (fd < 0)
    base::fail(MPI_ERR_OTHER,
               "file descriptor {}, which mpiexec passed to this program, was closed by it, or is "
               "something else now, and {}, which would do instead, {}; a program must not close "
               "descriptors that it did not open, or do so before MPI_Init",
               fd_, path,
               low >= 0 ? "is another file"
                        : fmt::format("cannot be opened: {}", std::strerror(error)));
  fd_ = fd;
  return fd_;
}

std::uint64_t JobMemory::resident() const {
  struct stat status {};
  if (fd_ < 0 || fstat(fd(), &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

void JobMemory::describe(const std::vector<Node>& nodes, std::uint32_t own, std::uint32_t cores,
                         const std::vector<NamedRanks>& sets,
                         const std::vector<std::uint32_t>& machines) {
  JobHeader& header = this->header();
  header.magic = magic_word;
  header.version = job_memory_version;
  header.nodes = static_cast<std::uint32_t>(nodes.size());
  header.node = own;
  header.cores = cores;
  auto* row = reinterpret_cast<NodeRow*>(base_ + layout_.nodes);
  for (const Node& node : nodes) {
    row->first = header.size;
    row->ranks = node.ranks;
    node.host.copy(row->host.data(), row->host.size() - 1);
    header.size += node.ranks;
    ++row;
  }
  header.sets = static_cast<std::uint32_t>(sets.size());
  auto* set = reinterpret_cast<SetRow*>(base_ + layout_.sets);
  for (const NamedRanks& named : sets) {
    set->first = named.first;
    set->ranks = named.ranks;
    named.set.copy(set->name.data(), longest_set_name);
    ++set;
  }
  place(machines);
}

void JobMemory::place(const std::vector<std::uint32_t>& machines) {
  auto* const members = reinterpret_cast<std::uint32_t*>(base_ + layout_.members);
  std::vector<std::uint32_t> placed(header().nodes); // ranks, by machine
  std::uint32_t machine = 0;
  for (std::uint32_t rank = 0; rank < header().size; ++rank) {
    if (!machines.empty())
      machine = machines[rank];
    else
      while (placed[machine] == node(machine).ranks)
        ++machine;
    RankRow& row = this->row(static_cast<int>(rank));
    row.node = machine;
    row.place = placed[machine]++;
    members[node(machine).first + row.place] = rank;
  }
}

JobMemory JobMemory::create(const std::vector<Node>& nodes, std::uint32_t own, std::uint32_t cores,
                            const std::vector<NamedRanks>& sets,
                            const std::vector<std::uint32_t>& machines) {
  const JobLayout layout =
      job_layout(static_cast<std::uint32_t>(nodes.size()), static_cast<std::uint32_t>(sets.size()),
                 count_ranks(nodes), nodes.at(own).ranks);
  const int fd = make_file(layout);
  JobMemory memory(fd, layout);
  memory.describe(nodes, own, cores, sets, machines);
  JobHeader& header = memory.header();
  header.launcher = getpid();
  header.file = fd;
  header.secret = random_secret();
  return memory;
}

JobMemory JobMemory::alone(std::uint32_t cores, const std::string& host) {
  JobMemory memory(-1, job_layout(1, 0, 1, 1));
  memory.describe({{host, 1}}, 0, cores, {}, {});
  memory.header().secret = random_secret();
  return memory;
}

void JobMemory::share() {
  if (shared()) return;
  const int fd = make_file(layout_);
  // All but the reports, which nobody has asked for.
  const ssize_t used = static_cast<ssize_t>(layout_.reports);
  if (pwrite(fd, base_, layout_.reports, 0) != used ||
      mmap(base_, layout_.mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
          MAP_FAILED) {
    const int error = errno;
    close(fd);
    base::fail(MPI_ERR_OTHER, "the memory of this job cannot be shared: {}", std::strerror(error));
  }
  fd_ = fd;
  remember_file();
}

JobMemory JobMemory::attach(int fd) {
  JobHeader header{};
  if (!read_header(fd, header))
    base::fail(
        MPI_ERR_OTHER,
        "file descriptor {}, which mpiexec left open for this program, is closed or something "
        "else now; a program between them (a wrapper, sudo, Python's subprocess) must "
        "pass it on (subprocess: pass_fds), or set MACADAM_JOB=alone to run this program alone",
        fd);
  if (header.version != job_memory_version)
    base::fail(MPI_ERR_OTHER,
               "mpiexec speaks version {} of the start-up format, this library version {}; use the "
               "mpiexec that was installed with the library",
               header.version, job_memory_version);
  const auto where =
      static_cast<off_t>(job_layout(0, 0, 0, 0).nodes + header.node * sizeof(NodeRow));
  NodeRow own{};
  if (header.node >= header.nodes || pread(fd, &own, sizeof own, where) != ssize_t{sizeof own})
    base::fail(MPI_ERR_OTHER, "the job's memory is damaged: it names node {} of {}", header.node,
               header.nodes);
  JobMemory memory(fd, job_layout(header.nodes, header.sets, header.size, own.ranks));
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return memory;
}

std::vector<JobMemory> JobMemory::inherited() {
  std::vector<JobMemory> jobs;
  JobHeader header{};
  for (int fd = first_job_descriptor; fd < first_job_descriptor + job_descriptors; ++fd)
    if (read_header(fd, header)) jobs.push_back(attach(fd));
  return jobs;
}

JobMemory receive_memory(int low) {
  // Away from the low ones, which shells and programs use, and those that children look for.
  const int fd = fcntl(low, F_DUPFD_CLOEXEC, first_job_descriptor + job_descriptors);
  const int error = errno;
  if (low >= 0) close(low);
  if (fd < 0)
    base::fail(MPI_ERR_OTHER, "no file descriptor for the memory of a job: {}",
               std::strerror(error));
  try {
    return JobMemory::attach(fd);
  } catch (...) {
    close(fd);
    throw;
  }
}

JobMemory::JobMemory(JobMemory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), device_(other.device_), inode_(other.inode_),
      layout_(other.layout_), base_(std::exchange(other.base_, nullptr)) {}

std::optional<std::span<const std::byte>> JobMemory::fetch(int rank,
                                                           std::uint32_t generation) const {
  const RankRow& row = this->row(rank);
  if (row.published.load(std::memory_order_acquire) < generation) return std::nullopt;
  return std::span(row.address.endpoint.data(), row.endpoint_used.load(std::memory_order_acquire));
}

std::optional<Agreement> JobMemory::agreement_of(int rank, std::uint32_t generation) const {
  if (!fetch(rank, generation)) return std::nullopt;
  return row(rank).address.agreement;
}

Life JobMemory::life(int rank, std::uint32_t generation) const {
  const RankRow& row = this->row(rank);
  switch (row.state.load(std::memory_order_acquire)) {
  case RankState::starting:
  case RankState::running:
  case RankState::finalized: // it may come, or come back
    return row.given_up.load() == generation + 1 ? Life::failed : Life::running;
  case RankState::gone:
    return Life::over;
  case RankState::aborted:
  case RankState::dead:
    return Life::failed;
  }
  return Life::unknown;
}

// Addresses of other machines' ranks come when the first rank here asks for them.
void JobMemory::want(int rank) const {
  const auto index = static_cast<unsigned>(rank);
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  std::atomic<std::uint64_t>& word = wanted()[index / 64];
  if ((word.load(std::memory_order_relaxed) & bit) != 0) return;
  if ((word.fetch_or(bit, std::memory_order_release) & bit) == 0) tell_launcher();
}

void JobMemory::tell_launcher() const {
  if (const pid_t launcher = header().launcher.load(); launcher > 0) kill(launcher, SIGCHLD);
}

// A lock of a process ends with it, and forked children do not inherit it.
void JobMemory::hold() const {
  struct flock lock = lock_on(held_byte, F_WRLCK);
  fcntl(fd(), F_SETLK, &lock);
}

bool JobMemory::is_held() const {
  struct flock lock = lock_on(held_byte, F_WRLCK);
  return fcntl(fd(), F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

// A lock of an open file, which others of this process do not touch: it is opened for that.
int JobMemory::use() const {
  const std::string path = fmt::format("/proc/self/fd/{}", fd());
  const int low = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const int own =
      low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, first_job_descriptor + job_descriptors);
  const int error = errno;
  if (low >= 0) close(low);
  struct flock lock = lock_on(used_byte, F_RDLCK);
  if (own >= 0 && fcntl(own, F_OFD_SETLK, &lock) == 0) return own;
  if (own >= 0) close(own);
  base::fail(MPI_ERR_OTHER, "the memory of a job on another machine cannot be kept: opening {}: {}",
             path, std::strerror(error));
}

bool JobMemory::is_used() const {
  struct flock lock = lock_on(used_byte, F_WRLCK);
  return fcntl(fd(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void JobMemory::open_barrier() const {
  header().barrier_arrived.store(0, std::memory_order_relaxed);
  header().barrier_round.fetch_add(1, std::memory_order_release);
  futex_wake_all(header().barrier_round);
}

JobMemory::~JobMemory() {
  if (base_) munmap(base_, layout_.mapped);
  if (fd_ >= 0 && is_memory(fd_)) close(fd_);
}

} // namespace macadam::boot
