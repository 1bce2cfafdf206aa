// SPDX-License-Identifier: BSD-3-Clause
#include "io/disk_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace macadam::io {
namespace {

// The longest that Linux moves at once.
constexpr std::size_t most_at_once = 0x7ffff000;

int class_of(int error) {
  switch (error) {
  case ENOENT:
    return MPI_ERR_NO_SUCH_FILE;
  case EEXIST:
    return MPI_ERR_FILE_EXISTS;
  case ENAMETOOLONG:
  case ENOTDIR:
  case EISDIR:
  case ELOOP:
    return MPI_ERR_BAD_FILE;
  case EACCES:
  case EPERM:
    return MPI_ERR_ACCESS;
  case EROFS:
    return MPI_ERR_READ_ONLY;
  case ENOSPC:
    return MPI_ERR_NO_SPACE;
  case EDQUOT:
    return MPI_ERR_QUOTA;
  case ETXTBSY:
  case EBUSY:
    return MPI_ERR_FILE_IN_USE;
  case EOPNOTSUPP:
  case ESPIPE:
    return MPI_ERR_UNSUPPORTED_OPERATION;
  case ENOMEM:
    return MPI_ERR_NO_MEM;
  default:
    return MPI_ERR_IO;
  }
}

// Throws what the system said last: `what` it was to do with the file.
[[noreturn]] void refuse(const std::string& path, const std::string& what, bool opens = false) {
  const int error = errno;
  const char* remedy = "";
  if (opens && class_of(error) == MPI_ERR_NO_SUCH_FILE)
    remedy = "; MPI_MODE_CREATE makes it, in a folder that exists";
  else if (opens && class_of(error) == MPI_ERR_FILE_EXISTS)
    remedy = "; without MPI_MODE_EXCL it is opened";
  else if (class_of(error) == MPI_ERR_NO_SPACE)
    remedy = "; make room on its file system";
  base::fail(class_of(error), "{} cannot be {}: {}{}", path, what, std::strerror(error), remedy);
}

} // namespace

DiskFile::DiskFile(const std::string& path, int flags, unsigned mode)
    : path_(path), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
  if (descriptor_ < 0) refuse(path_, "opened", true);
  struct stat facts {};
  if (::fstat(descriptor_, &facts) == 0 && S_ISDIR(facts.st_mode)) {
    ::close(descriptor_);
    base::fail(MPI_ERR_BAD_FILE, "{} is a folder", path_);
  }
}

DiskFile::~DiskFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void DiskFile::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) refuse(path_, "closed");
}

std::size_t DiskFile::read(void* to, std::size_t bytes, std::int64_t offset) const {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(descriptor_, static_cast<std::byte*>(to) + done,
                std::min(bytes - done, most_at_once), offset + static_cast<std::int64_t>(done));
    if (got == 0) break;
    if (got > 0)
      done += static_cast<std::size_t>(got);
    else if (errno != EINTR)
      refuse(path_, fmt::format("read at offset {}", offset));
  }
  return done;
}

void DiskFile::write(const void* from, std::size_t bytes, std::int64_t offset) const {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t put =
        ::pwrite(descriptor_, static_cast<const std::byte*>(from) + done,
                 std::min(bytes - done, most_at_once), offset + static_cast<std::int64_t>(done));
    if (put == 0) errno = EIO; // it would never end
    if (put > 0)
      done += static_cast<std::size_t>(put);
    else if (errno != EINTR)
      refuse(path_, fmt::format("written at offset {}", offset));
  }
}

std::int64_t DiskFile::size() const {
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0) refuse(path_, "asked for its size");
  return facts.st_size;
}

void DiskFile::resize(std::int64_t bytes) const {
  if (::ftruncate(descriptor_, bytes) != 0) refuse(path_, fmt::format("made {} bytes long", bytes));
}

void DiskFile::preallocate(std::int64_t bytes) const {
  if (bytes == 0) return;
  const int error = ::posix_fallocate(descriptor_, 0, bytes);
  if (error == 0) return;
  errno = error;
  refuse(path_, fmt::format("given room for {} bytes", bytes));
}

void DiskFile::sync() const {
  // EINVAL: a file that has nothing to write back, such as a pipe.
  if (::fsync(descriptor_) != 0 && errno != EINVAL) refuse(path_, "written back");
}

namespace {

struct flock range_of(int type, std::int64_t begin, std::int64_t end) {
  struct flock range {};
  range.l_type = static_cast<short>(type);
  range.l_whence = SEEK_SET;
  range.l_start = begin;
  range.l_len = end - begin;
  return range;
}

} // namespace

DiskFile::Locked::Locked(const DiskFile& file, Sharing how, std::int64_t begin, std::int64_t end)
    : file_(file), here_(file.atomic_), begin_(begin), end_(end) {
  struct flock range = range_of(how == Sharing::exclusive ? F_WRLCK : F_RDLCK, begin, end);
  while (::fcntl(file.descriptor_, F_OFD_SETLKW, &range) != 0)
    if (errno != EINTR) refuse(file.path_, "locked, which atomic mode needs");
}

DiskFile::Locked::~Locked() {
  struct flock range = range_of(F_UNLCK, begin_, end_);
  ::fcntl(file_.descriptor_, F_OFD_SETLK, &range);
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0) refuse(path, "deleted");
}

} // namespace macadam::io
