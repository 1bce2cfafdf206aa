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
#include "mpi/agree.h"
#include "mpi/hints.h"
#include "mpi/request.h"

#include <mpi.h>

#include <cstdint>
#include <functional>
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
struct Info;
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
  std::shared_ptr<const io::Buffering> buffering; // the same
  int under_way = 0;                              // nonblocking operations

  // Of the split collective that has begun, if any.
  struct Split {
    const char* name = nullptr; // "MPI_File_read_all", whose end is missing
    MPI_Request request = MPI_REQUEST_NULL;
    const void* buffer = nullptr;
  };
  Split split;

  Errhandler* errhandler = nullptr;
  Hints hints;
};

// What is read or written, and where.
struct FileMove {
  bool writes;
  std::shared_ptr<const io::View> view;
  MPI_Count position; // in the view's stream
  MPI_Count etypes;
  io::Data user;
};

// An access that its caller does not wait for: what it needs, as long as it lasts.
struct FileRequest : LayerRequest {
  FileRequest(Process& self, File& of, const FileMove& what, io::Converted&& converted,
              const RequestClass& how);

  [[nodiscard]] io::Access access() const;

  Process& process;
  File& file;
  const FileMove move;
  const datatype::TypeRef type;
  io::Converted data;
};

// ... of this rank alone, by the thread of io::Worker.
struct LoneFileRequest final : FileRequest {
  LoneFileRequest(Process& self, File& of, const FileMove& what, io::Converted&& converted);
  struct LoneJob : io::Job {
    LoneFileRequest* request = nullptr;
  };
  LoneJob job;
};

// ... of all ranks of the file.
struct CollectiveFileRequest final : FileRequest {
  CollectiveFileRequest(Process& self, File& of, const FileMove& what, io::Converted&& converted);
  io::CollectiveAccess what;
  coll::Arguments arguments;
  coll::Collective operation;
};

// What files of a process have in common.
struct Files {
  Files();

  // Completes the requests whose accesses the worker has made.
  void collect() {
    if (worker.under_way() != 0) [[unlikely]]
      collect_done();
  }

  base::Slab<File> all;
  base::List<File> live;
  base::Slab<LoneFileRequest> lone;
  base::Slab<CollectiveFileRequest> collective;
  std::map<std::string, std::shared_ptr<const io::Representation>, std::less<>> representations;
  io::Worker worker;
  io::Counters counters;

 private:
  void collect_done();
};

// Throws MPI_ERR_UNSUPPORTED_OPERATION if the file is open for sequential access.
void check_random(const File& file);
// Throws MPI_ERR_OTHER while a split collective is under way.
void check_no_split(const File& file);
// Etypes that so much data are. Throws MPI_ERR_ACCESS or MPI_ERR_READ_ONLY if the file is not
// opened for that, MPI_ERR_TYPE if they are no whole number.
[[nodiscard]] MPI_Count etypes_of(Process& self, const File& file, bool writes,
                                  const io::Data& user);
// Throws MPI_ERR_ARG if the offset, in etypes, is negative or it goes beyond what a file can have.
[[nodiscard]] FileMove move_at(const File& file, bool writes, MPI_Offset offset, MPI_Count etypes,
                               const io::Data& user);

// By this rank alone. What is waited for returns how many etypes were missing at the end of the
// file.
MPI_Count move_alone(Process& self, File& file, const FileMove& move, MPI_Status* status);
void begin_alone(Process& self, File& file, const FileMove& move, MPI_Request* request);

// By all ranks together. `make` looks at the arguments; if it throws, this rank takes part with no
// data, so that the others do not wait for it, and then the error is thrown.
using MakeMove = std::function<FileMove()>;
MPI_Count move_together(Process& self, File& file, bool writes, const MakeMove& make,
                        MPI_Status* status);
void begin_together(Process& self, File& file, bool writes, const MakeMove& make,
                    MPI_Request* request);

// Split collectives, of which one at a time is under way on a file.
void begin_split(Process& self, File& file, const char* name, bool writes, const MakeMove& make,
                 const void* buffer);
void end_split(Process& self, File& file, const char* name, const void* buffer, MPI_Status* status);

// Positions of a view: of the end of the file, or the first etype behind it.
[[nodiscard]] MPI_Offset end_of(const File& file);
// What MPI_File_seek and its like mean: throws MPI_ERR_ARG if it is before the begin.
[[nodiscard]] MPI_Offset sought(const File& file, MPI_Offset offset, int whence,
                                MPI_Offset current);

// The shared pointer (file_shared.cc). All are collective.
void make_shared_pointer(Process& self, File& file);
void free_shared_pointer(Process& self, File& file);
// Where it is when all have come, and stays until all know.
[[nodiscard]] MPI_Offset shared_position(Process& self, File& file);
// After an exchange for which all have come, so that nobody uses it.
void set_shared_pointer(Process& self, File& file, MPI_Offset position);
// Throws nothing that one rank alone sees.
void agree_on_buffering(Process& self, File& file, const Info* info);
// Throws MPI_ERR_NOT_SAME on all ranks if one of them gives other arguments: "size is 5".
// Collective.
void check_same(Process& self, const File& file, const std::string& arguments);

} // namespace macadam::mpi
