// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/request.h"
#include "io/disk_file.h"
#include "io/view.h"

#include <mpi.h>

#include <cstddef>
#include <memory>

namespace macadam::io {

using engine::Data;

// What is moved between a process and a file: a piece of the view's stream, from `position` on, and
// as many bytes in memory. File and view outlive it.
struct Access {
  const DiskFile* file;
  const View* view;
  MPI_Count position;
  Data memory;
  bool atomic = false; // no other access to the file is seen in part, nor sees this one so
  bool writes = false; // for move()

  [[nodiscard]] MPI_Count bytes() const {
    return view->has_data() ? static_cast<MPI_Count>(memory.bytes()) : 0;
  }
};

// By this process alone. Both return the bytes that were moved; reads end where the file does. They
// make system calls that may take long, and may be called by any thread.
std::size_t read(const Access& access);
std::size_t write(const Access& access);
// The one that the access says.
inline std::size_t move(const Access& access) {
  return access.writes ? write(access) : read(access);
}

// The user's data as they are in the stream: themselves, or a converted copy of them.
class Converted {
 public:
  // `byte` is MPI_BYTE.
  Converted(const View& view, const Data& user, const datatype::Type& byte);

  // Before they are written.
  void to_file();
  // After so many bytes of the stream were read. Returns bytes of the user's data, of which a basic
  // element that the file ends in has none.
  MPI_Count from_file(MPI_Count read);

  [[nodiscard]] const Data& stream() const { return stream_; }

 private:
  const Representation& representation_;
  Data user_;
  Data stream_;
  MPI_Count element_ = 0; // bytes of one in the file; 0: nothing is converted
  std::unique_ptr<std::byte[]> copy_;
};

} // namespace macadam::io
