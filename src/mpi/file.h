// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "base/object.h"
#include "base/slab.h"
#include "coll/collective.h"
#include "io/access.h"
#include "io/disk_file.h"
#include "io/two_phase.h"
#include "io/view.h"
#include "io/worker.h"
#include "mpi/request.h"

#include <mpi.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace macadam::mpi {

class Process;
struct Communicator;
struct Errhandler;
struct Window;

// A file that a communicator has open. Positions are counted in etypes of its view.
struct File : base::Object, base::ListNode<> {
  // `comm` is a communicator of its own, whose reference it takes over.
  File(Communicator& comm, std::string path, int amode);

  [[nodiscard]] MPI_File handle() const {
    return reinterpret_cast<MPI_File>(const_cast<File*>(this));
  }

  Communicator* comm;
  const std::string path;
  const int amode; // MPI_MODE_*
  std::optional<io::DiskFile> disk;
  std::shared_ptr<const io::View> view; // what is under way keeps the one it began with
  MPI_Offset position = 0;              // of this process's own pointer
  // The pointer that all ranks share: in memory of rank 0, which the others reach by one-sided
  // operations; alone, here.
  Window* shared_window = nullptr;
  MPI_Offset shared_alone = 0;
  bool atomic = false;
  io::Buffering buffering;
  int under_way = 0; // nonblocking operations

  // Of the split collective that has begun, if any.
  struct Split {
    const char* name = nullptr; // "MPI_File_read_all", whose end is missing
    MPI_Request request = MPI_REQUEST_NULL;
    const void* buffer = nullptr;
  };
  Split split;

  Errhandler* errhandler = nullptr;
  std::vector<std::pair<std::string, std::string>> hints;
};

// An access that its caller does not wait for: what it needs, as long as it lasts.
struct FileRequest : LayerRequest {
  FileRequest(Process& self, File& of, bool writing, MPI_Offset position, const io::Data& user,
              const RequestClass& how);

  Process& process;
  File& file;
  const bool writes;
  const std::shared_ptr<const io::View> view;
  const datatype::TypeRef type;
  const std::size_t bytes; // of the user's data
  io::Converted data;
  io::Access access;
};

// ... of this rank alone, by the thread of io::Worker.
struct LoneFileRequest final : FileRequest {
  LoneFileRequest(Process& self, File& of, bool writing, MPI_Offset position, const io::Data& user);
  struct LoneJob : io::Job {
    LoneFileRequest* request = nullptr;
  };
  LoneJob job;
};

// ... of all ranks of the file.
struct CollectiveFileRequest final : FileRequest {
  CollectiveFileRequest(Process& self, File& of, bool writing, MPI_Offset position,
                        const io::Data& user);
  io::CollectiveAccess what;
  coll::Arguments arguments;
  coll::Collective operation;
};

// What files of a process have in common.
struct Files {
  Files();

  // Completes the requests whose accesses the worker has made.
  void collect(Process& self) {
    if (worker.under_way() != 0) [[unlikely]]
      collect_done(self);
  }

  base::Slab<File> all;
  base::List<File> live;
  base::Slab<LoneFileRequest> lone;
  base::Slab<CollectiveFileRequest> collective;
  std::map<std::string, std::shared_ptr<const io::Representation>, std::less<>> representations;
  io::Worker worker;
  io::BufferingCounters buffering;

 private:
  void collect_done(Process& self);
};

// What is read or written, and where: an offset from the view's begin in etypes.
struct FileMove {
  bool writes;
  MPI_Offset offset;
  io::Data user;
};

// Whether the file may be read or written so. Throws MPI_ERR_ACCESS, MPI_ERR_READ_ONLY or
// MPI_ERR_TYPE.
void check_move(Process& self, const File& file, bool writes, const io::Data& user);
// Of a file that is not opened for sequential access. Throws MPI_ERR_UNSUPPORTED_OPERATION.
void check_random(const File& file);
// Etypes that so much data are.
[[nodiscard]] MPI_Offset etypes_of(Process& self, const File& file, const io::Data& user);

// By this rank alone or by all together, with and without waiting. Arguments are checked. Those
// that wait return how many etypes there were, less than asked for at the end of the file.
MPI_Offset move_alone(Process& self, File& file, const FileMove& move, MPI_Status* status);
void begin_alone(Process& self, File& file, const FileMove& move, MPI_Request* request);
MPI_Offset move_together(Process& self, File& file, const FileMove& move, MPI_Status* status);
void begin_together(Process& self, File& file, const FileMove& move, MPI_Request* request);

// Split collectives, which are one at a time on a file.
void begin_split(Process& self, File& file, const char* name, const FileMove& move);
void end_split(Process& self, File& file, const char* name, const void* buffer, MPI_Status* status);
void check_no_split(const File& file);

// Positions of a view: of the end of the file, or the first etype behind it.
[[nodiscard]] MPI_Offset end_of(const File& file);
// What MPI_File_seek and its like mean: throws MPI_ERR_ARG if it is before the begin.
[[nodiscard]] MPI_Offset sought(const File& file, MPI_Offset offset, int whence,
                                MPI_Offset current);

// The shared pointer (files_shared.cc).
void make_shared_pointer(Process& self, File& file);
void free_shared_pointer(Process& self, File& file);
void set_shared_pointer(Process& self, File& file, MPI_Offset position); // collective

} // namespace macadam::mpi
