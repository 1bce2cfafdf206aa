// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace macadam::io {

// A file of the system, open. All of this layer's system calls are here. Offsets and sizes are in
// bytes. Several threads may use it at once. What the system refuses is thrown as base::Error, of
// the class that MPI has for it.
class DiskFile {
 public:
  // As of open(2); a file that is made gets the permissions `mode`, less the umask.
  DiskFile(const std::string& path, int flags, unsigned mode);
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  ~DiskFile();

  // Returns how much there was: less than `bytes` at the end of the file.
  std::size_t read(void* to, std::size_t bytes, std::int64_t offset) const;
  void write(const void* from, std::size_t bytes, std::int64_t offset) const;

  [[nodiscard]] std::int64_t size() const;
  void resize(std::int64_t bytes) const;
  // Room on the device for so many bytes; the file has at least this size afterwards.
  void preallocate(std::int64_t bytes) const;
  // What was written here has left for the device.
  void sync() const;

  // Of atomic mode: waits until no other opening of the file, in whatever process, has a lock that
  // forbids this one. The file system must have such locks.
  enum class Sharing : bool { shared, exclusive };
  void lock(Sharing how, std::int64_t begin, std::int64_t end) const;
  void unlock(std::int64_t begin, std::int64_t end) const noexcept;

 private:
  std::string path_;
  int descriptor_;
};

void remove_file(const std::string& path);

} // namespace macadam::io
