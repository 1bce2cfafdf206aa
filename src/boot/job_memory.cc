// SPDX-License-Identifier: BSD-3-Clause
#include "boot/job_memory.h"

#include "base/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
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
constexpr std::uint32_t layout_version = 1;

std::byte* map(int fd, std::size_t bytes) {
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (base == MAP_FAILED)
    base::fail(MPI_ERR_OTHER, "mapping {} bytes of the job's memory failed: {}", bytes,
               std::strerror(errno));
  return static_cast<std::byte*>(base);
}

void fill_header(JobHeader& header, std::uint32_t size, std::uint32_t cores,
                 std::string_view host) {
  header.magic = magic_word;
  header.version = layout_version;
  header.size = size;
  header.cores = cores;
  std::copy_n(host.data(), std::min(host.size(), header.host.size() - 1), header.host.data());
}

} // namespace

int make_memfd(const char* what, std::uint64_t bytes) {
  // Kernels before 6.3 do not know MFD_NOEXEC_SEAL; later ones may insist on it.
  int fd = memfd_create(what, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = memfd_create(what, MFD_CLOEXEC);
  if (fd < 0)
    base::fail(MPI_ERR_OTHER, "memfd_create for {} failed: {}", what, std::strerror(errno));
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

JobMemory JobMemory::create(std::uint32_t size, std::uint32_t cores, std::string_view host) {
  const int low = make_memfd("macadam-job", segments_offset(size) + size * segment_capacity);
  const int fd = fcntl(low, F_DUPFD_CLOEXEC, 64); // shells' scripts use low ones for redirections
  if (fd < 0) base::fail(MPI_ERR_OTHER, "no file descriptor above 64: {}", std::strerror(errno));
  close(low);
  const std::size_t bytes = reports_offset(size) + size * sizeof(ReportArea);
  JobMemory memory(fd, map(fd, bytes), bytes);
  JobHeader& header = memory.header();
  fill_header(header, size, cores, host);
  header.launcher = getpid();
  if (getrandom(header.secret.data(), header.secret.size(), 0) !=
      static_cast<ssize_t>(header.secret.size()))
    base::fail(MPI_ERR_OTHER, "getrandom for the job's secret failed: {}", std::strerror(errno));
  return memory;
}

JobMemory JobMemory::alone(std::uint32_t cores, std::string_view host) {
  const std::size_t bytes = reports_offset(1) + sizeof(ReportArea);
  JobMemory memory(-1, map(-1, bytes), bytes);
  fill_header(memory.header(), 1, cores, host);
  return memory;
}

JobMemory JobMemory::attach(int fd) {
  struct stat status {};
  JobHeader header{};
  const bool is_job = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                      pread(fd, &header, sizeof header, 0) == ssize_t{sizeof header} &&
                      header.magic == magic_word;
  if (!is_job)
    base::fail(
        MPI_ERR_OTHER,
        "file descriptor {}, which mpiexec left open for this program, is closed or something "
        "else now; a program between them (a wrapper, sudo, Python's subprocess) must "
        "pass it on (subprocess: pass_fds), or unset MACADAM_JOB to run this program alone",
        fd);
  if (header.version != layout_version)
    base::fail(MPI_ERR_OTHER,
               "mpiexec speaks version {} of the start-up format, this library version {}; use the "
               "mpiexec that was installed with the library",
               header.version, layout_version);
  const std::size_t bytes = reports_offset(header.size) + header.size * sizeof(ReportArea);
  std::byte* base = map(fd, bytes);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return {fd, base, bytes};
}

JobMemory::JobMemory(JobMemory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_) {}

JobMemory::~JobMemory() {
  if (base_) munmap(base_, bytes_);
  if (fd_ >= 0) close(fd_);
}

} // namespace macadam::boot
