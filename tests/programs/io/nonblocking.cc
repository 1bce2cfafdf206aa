// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking reading and writing: every form, completed in every way, several at once and together
// with messages.
#include "io/file.h"

#include <optional>
#include <span>

namespace {

using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

constexpr int record = 3000; // bytes
constexpr int most = 8;      // operations at once

MPI_Offset place(int rank, int number) {
  return MPI_Offset{record} * (most * rank + number);
}
std::uint64_t seed(int rank, int number) {
  return static_cast<std::uint64_t>(100 * rank + number);
}

Bytes all_records() {
  Bytes all;
  for (int rank = 0; rank < check::size; ++rank)
    for (int i = 0; i < most; ++i) {
      const Bytes one = check::message(record, seed(rank, i));
      all.insert(all.end(), one.begin(), one.end());
    }
  return all;
}

struct Record {
  Bytes data = Bytes(record);
  MPI_Request request = MPI_REQUEST_NULL;
};

void complete(std::span<Record> records, int way) {
  MPI_Status status;
  const auto done = [&](MPI_Request request) {
    MOVED(status, MPI_BYTE, record);
    CHECK(request == MPI_REQUEST_NULL);
  };
  std::vector<MPI_Request> requests;
  for (Record& each : records)
    requests.push_back(each.request);
  const int count = static_cast<int>(requests.size());
  if (way == 0) {
    for (std::size_t i = requests.size(); i-- > 0;) {
      OK(MPI_Wait(&requests[i], &status));
      done(requests[i]);
    }
  } else if (way == 1) {
    for (MPI_Request& request : requests) {
      for (int flag = 0; flag == 0;)
        OK(MPI_Test(&request, &flag, &status));
      done(request);
    }
  } else if (way == 2) {
    for (int i = 0; i < count; ++i) {
      int index = MPI_UNDEFINED;
      OK(MPI_Waitany(count, requests.data(), &index, &status));
      CHECK(index != MPI_UNDEFINED);
      done(requests[static_cast<std::size_t>(index)]);
    }
  } else {
    std::vector<MPI_Status> statuses(requests.size());
    OK(MPI_Waitall(count, requests.data(), statuses.data()));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      status = statuses[i];
      done(requests[i]);
    }
  }
  for (Record& each : records)
    each.request = MPI_REQUEST_NULL;
}

enum class Form { at, at_all, pointer, pointer_all };

int start(MPI_File file, Form form, bool write, MPI_Offset offset, Record& it) {
  void* const data = it.data.data();
  const MPI_Datatype type = MPI_BYTE;
  switch (form) {
  case Form::at:
    return write ? MPI_File_iwrite_at(file, offset, data, record, type, &it.request)
                 : MPI_File_iread_at(file, offset, data, record, type, &it.request);
  case Form::at_all:
    return write ? MPI_File_iwrite_at_all(file, offset, data, record, type, &it.request)
                 : MPI_File_iread_at_all(file, offset, data, record, type, &it.request);
  case Form::pointer:
    return write ? MPI_File_iwrite(file, data, record, type, &it.request)
                 : MPI_File_iread(file, data, record, type, &it.request);
  default:
    return write ? MPI_File_iwrite_all(file, data, record, type, &it.request)
                 : MPI_File_iread_all(file, data, record, type, &it.request);
  }
}

int start_c(MPI_File file, Form form, bool write, MPI_Offset offset, Record& it) {
  void* const data = it.data.data();
  const MPI_Count count = record;
  const MPI_Datatype type = MPI_BYTE;
  switch (form) {
  case Form::at:
    return write ? MPI_File_iwrite_at_c(file, offset, data, count, type, &it.request)
                 : MPI_File_iread_at_c(file, offset, data, count, type, &it.request);
  case Form::at_all:
    return write ? MPI_File_iwrite_at_all_c(file, offset, data, count, type, &it.request)
                 : MPI_File_iread_at_all_c(file, offset, data, count, type, &it.request);
  case Form::pointer:
    return write ? MPI_File_iwrite_c(file, data, count, type, &it.request)
                 : MPI_File_iread_c(file, data, count, type, &it.request);
  default:
    return write ? MPI_File_iwrite_all_c(file, data, count, type, &it.request)
                 : MPI_File_iread_all_c(file, data, count, type, &it.request);
  }
}

void several(Form form) {
  Folder folder;
  const std::string path = folder("file");
  const auto begin = [form](MPI_File file, bool write, int rank, int i, Record& it) {
    OK(i % 2 == 0 ? start(file, form, write, place(rank, i), it)
                  : start_c(file, form, write, place(rank, i), it));
  };
  // MPICH 5.0 takes data of one collective operation for those of another.
  const bool one_by_one =
      !check::is_macadam() && (form == Form::at_all || form == Form::pointer_all);
  for (int way = 0; way < 4; ++way) {
    File file(MPI_COMM_WORLD, path, io::new_file);
    std::vector<Record> records(most);
    OK(MPI_File_seek(file, place(check::rank, 0), MPI_SEEK_SET));
    for (int i = 0; i < most; ++i) {
      Record& it = records[static_cast<std::size_t>(i)];
      check::fill(it.data.data(), record, seed(check::rank, i));
      begin(file, true, check::rank, i, it);
      if (one_by_one) complete({&it, 1}, way);
    }
    if (!one_by_one) complete(records, way);
    io::settle(file);
    OK(MPI_File_seek(file, place(io::right(), 0), MPI_SEEK_SET));
    for (int i = 0; i < most; ++i) {
      Record& it = records[static_cast<std::size_t>(i)];
      it.data.assign(record, 0);
      begin(file, false, io::right(), i, it);
      // A pointer has moved when the call returns.
      if (form == Form::pointer || form == Form::pointer_all)
        CHECK_EQUAL(io::position(file), place(io::right(), i + 1));
      if (one_by_one) complete({&it, 1}, way);
    }
    if (!one_by_one) complete(records, way);
    for (int i = 0; i < most; ++i)
      HOLDS(records[static_cast<std::size_t>(i)].data.data(), record, seed(io::right(), i));
    file.close();
    FILE_HOLDS(path, all_records());
    if (check::rank == 0) OK(MPI_File_delete(path.c_str(), MPI_INFO_NULL));
    io::barrier();
  }
}

// Which rank's record lies where is not known, but each is there once.
void by_the_shared_pointer() {
  Folder folder;
  const std::string path = folder("file");
  File file(MPI_COMM_WORLD, path, io::new_file);
  std::vector<Record> records(most);
  for (int i = 0; i < most; ++i) {
    Record& it = records[static_cast<std::size_t>(i)];
    check::fill(it.data.data(), record, seed(check::rank, i));
    OK(i % 2 == 0 ? MPI_File_iwrite_shared(file, it.data.data(), record, MPI_BYTE, &it.request)
                  : MPI_File_iwrite_shared_c(file, it.data.data(), record, MPI_BYTE, &it.request));
  }
  complete(records, 3);
  io::settle(file);
  CHECK_EQUAL(io::shared_position(file), place(check::size, 0));
  io::barrier();
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  std::vector<int> seen(static_cast<std::size_t>(100 * check::size));
  for (int i = 0; i < most; ++i) {
    Record& it = records[static_cast<std::size_t>(i)];
    OK(i % 2 != 0 ? MPI_File_iread_shared(file, it.data.data(), record, MPI_BYTE, &it.request)
                  : MPI_File_iread_shared_c(file, it.data.data(), record, MPI_BYTE, &it.request));
  }
  complete(records, 0);
  for (const Record& it : records)
    for (int rank = 0; rank < check::size; ++rank)
      for (int i = 0; i < most; ++i)
        if (it.data == check::message(record, seed(rank, i)))
          ++seen[static_cast<std::size_t>(seed(rank, i))];
  OK(MPI_Allreduce(MPI_IN_PLACE, seen.data(), static_cast<int>(seen.size()), MPI_INT, MPI_SUM,
                   MPI_COMM_WORLD));
  for (int rank = 0; rank < check::size; ++rank)
    for (int i = 0; i < most; ++i)
      CHECK_EQUAL(seen[static_cast<std::size_t>(seed(rank, i))], 1);
}

// Files and messages complete in one call; of either none needs the other.
void together_with_messages() {
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  for (int round = 0; round < check::times(20, 5); ++round) {
    const Bytes out = check::message(record, seed(check::rank, round));
    Bytes in(record);
    MPI_Request requests[4];
    MPI_Status statuses[4];
    OK(MPI_Irecv(in.data(), record, MPI_BYTE, io::left(), 4, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_File_iwrite_at(file, place(check::rank, 0), out.data(), record, MPI_BYTE, &requests[1]));
    OK(MPI_Isend(out.data(), record, MPI_BYTE, io::right(), 4, MPI_COMM_WORLD, &requests[2]));
    OK(MPI_File_iwrite_at_all(file, place(check::rank, 1), out.data(), record, MPI_BYTE,
                              &requests[3]));
    if (round % 2 == 0 || !check::is_macadam()) { // MPI_Testall of MPICH 5.0 frees some before all
      OK(MPI_Waitall(4, requests, statuses));
    } else {
      for (int flag = 0; flag == 0;)
        OK(MPI_Testall(4, requests, &flag, statuses));
    }
    for (const int i : {0, 1, 3})
      MOVED(statuses[i], MPI_BYTE, record);
    CHECK_EQUAL(statuses[0].MPI_SOURCE, io::left());
    HOLDS(in.data(), record, seed(io::left(), round));
    io::settle(file);
    Bytes back(record);
    OK(MPI_File_read_at(file, place(io::left(), 1), back.data(), record, MPI_BYTE,
                        MPI_STATUS_IGNORE));
    CHECK(back == in);
    io::barrier();
  }
}

// Derived types, which may be freed at once, and the end of the file.
void types_and_the_end() {
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  std::vector<int> out(100, -1), in(100, -1);
  for (std::size_t i = 0; i < 50; ++i)
    out[2 * i] = 1000 * check::rank + static_cast<int>(i);
  MPI_Request request;
  MPI_Status status;
  std::optional<Type> strided(io::every(check::size, MPI_INT)),
      spread(io::vector(50, 1, 2, MPI_INT));
  io::set_view(file, 4 * check::rank, MPI_INT, *strided);
  strided.reset();
  OK(MPI_File_iwrite_all(file, out.data(), 1, *spread, &request));
  if (check::is_macadam()) spread.reset(); // MPICH 5.0 uses it later
  OK(MPI_Wait(&request, &status));
  MOVED(status, MPI_INT, 50);
  io::settle(file);
  OK(MPI_File_iread_at_c(file, 20, in.data(), io::over_the_end(60, 30), MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  MOVED(status, MPI_INT, 30);
  for (std::size_t i = 0; i < in.size(); ++i)
    CHECK_EQUAL(in[i], i < 30 ? 1000 * check::rank + static_cast<int>(i) + 20 : -1);
  OK(MPI_File_iread(file, nullptr, 0, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  MOVED(status, MPI_INT, 0);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"at", [] { several(Form::at); }},
                     {"at_all", [] { several(Form::at_all); }},
                     {"pointer", [] { several(Form::pointer); }},
                     {"pointer_all", [] { several(Form::pointer_all); }},
                     {"by_the_shared_pointer", by_the_shared_pointer},
                     {"together_with_messages", together_with_messages},
                     {"types_and_the_end", types_and_the_end}});
}
