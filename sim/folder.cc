// SPDX-License-Identifier: BSD-3-Clause
#include "sim/folder.h"

#include "base/error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace macadam::sim {
namespace {

constexpr int how = O_PATH | O_DIRECTORY | O_CLOEXEC;

// The simulator's own. Asked for first by the first rank that leaves it.
int home() {
  static const int descriptor = ::open(".", how);
  return descriptor;
}

void go(int folder) {
  if (::fchdir(folder) != 0)
    base::fail(MPI_ERR_OTHER, "the folder of a rank cannot be entered again: {}",
               std::strerror(errno));
}

} // namespace

Folder::~Folder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Folder::enter(const char* path) {
  if (home() < 0) return false;
  const int found = ::open(path, how);
  if (found < 0) return false;
  if (::fchdir(found) != 0) {
    const int error = errno;
    ::close(found);
    errno = error;
    return false;
  }
  if (const int left = std::exchange(descriptor_, found); left >= 0) ::close(left);
  return true;
}

void Folder::go_there() const {
  if (descriptor_ >= 0) go(descriptor_);
}

void Folder::go_back() const {
  if (descriptor_ >= 0) go(home());
}

} // namespace macadam::sim
