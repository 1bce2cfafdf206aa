// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
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

  // Nothing more is done with it. The system may find only now that data cannot be kept.
  void close();

  // Of atomic mode: from its begin to its end no other access through a lock of this kind, in
  // whatever process or thread, meets this one. The file system must have such locks.
  enum class Sharing : bool { shared, exclusive };
  class Locked {
   public:
    Locked(const DiskFile& file, Sharing how, std::int64_t begin, std::int64_t end);
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    ~Locked();

   private:
    const DiskFile& file_;
    const std::unique_lock<std::mutex> here_; // the system's locks know openings, not threads
    const std::int64_t begin_, end_;
  };

 private:
  std::string path_;
  int descriptor_;
  mutable std::mutex atomic_;
};

void remove_file(const std::string& path);

} // namespace macadam::io
