// SPDX-License-Identifier: BSD-3-Clause
// Every send mode in its blocking, nonblocking and persistent form, at every size around a
// threshold, with the sender early, the receiver early, and both at the same time.
#include "check.h"

namespace {

enum class Mode { standard, synchronous, buffered, ready };
enum class Form { blocking, nonblocking, persistent };
enum class Early { sender, receiver, both };

constexpr int tag = 17;

int send_blocking(Mode mode, const void* data, int bytes) {
  switch (mode) {
  case Mode::standard:
    return MPI_Send(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
  case Mode::synchronous:
    return MPI_Ssend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
  case Mode::buffered:
    return MPI_Bsend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
  case Mode::ready:
    return MPI_Rsend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
  }
  return MPI_ERR_OTHER;
}

int send_nonblocking(Mode mode, const void* data, int bytes, MPI_Request* request) {
  switch (mode) {
  case Mode::standard:
    return MPI_Isend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, request);
  case Mode::synchronous:
    return MPI_Issend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, request);
  case Mode::buffered:
    return MPI_Ibsend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, request);
  case Mode::ready:
    return MPI_Irsend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, request);
  }
  return MPI_ERR_OTHER;
}

int send_init(Mode mode, const void* data, int bytes, MPI_Request* request) {
  switch (mode) {
  case Mode::standard:
    return MPI_Send_init(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, request);
  case Mode::synchronous:
    return MPI_Ssend_init(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, request);
  case Mode::buffered:
    return MPI_Bsend_init(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, request);
  case Mode::ready:
    return MPI_Rsend_init(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, request);
  }
  return MPI_ERR_OTHER;
}

void send(Mode mode, Form form, Early early, int bytes, std::uint64_t seed) {
  std::vector<unsigned char> data = check::message(static_cast<std::size_t>(bytes), seed);
  if (early == Early::receiver || mode == Mode::ready) check::token_recv(1);
  if (form == Form::blocking) {
    OK(send_blocking(mode, data.data(), bytes));
    return;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const int starts = form == Form::persistent ? 2 : 1;
  if (form == Form::persistent) OK(send_init(mode, data.data(), bytes, &request));
  for (int start = 0; start < starts; ++start) {
    if (start > 0) {
      if (early == Early::receiver || mode == Mode::ready) check::token_recv(1);
      check::fill(data.data(), data.size(), seed + 1);
    }
    if (form == Form::persistent)
      OK(MPI_Start(&request));
    else
      OK(send_nonblocking(mode, data.data(), bytes, &request));
    if (early == Early::sender && mode != Mode::ready) check::token_send(1);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  if (form == Form::persistent) OK(MPI_Request_free(&request));
}

void receive(Mode mode, Form form, Early early, int bytes, std::uint64_t seed) {
  const int starts = form == Form::persistent ? 2 : 1;
  std::vector<unsigned char> buffer(static_cast<std::size_t>(bytes) + 16);
  for (int start = 0; start < starts; ++start) {
    std::memset(buffer.data(), 0xEE, buffer.size());
    if (early == Early::sender && form != Form::blocking && mode != Mode::ready)
      check::token_recv(0);
    MPI_Request request;
    OK(MPI_Irecv(buffer.data(), bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request));
    if (early == Early::receiver || mode == Mode::ready) check::token_send(0);
    MPI_Status status;
    OK(MPI_Wait(&request, &status));
    int count = -1;
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK_EQUAL(count, bytes);
    CHECK_EQUAL(status.MPI_SOURCE, 0);
    CHECK_EQUAL(status.MPI_TAG, tag);
    HOLDS(buffer.data(), bytes, seed + static_cast<std::uint64_t>(start));
    UNTOUCHED(buffer.data() + bytes, 16, 0xEE);
  }
}

void every_size(Mode mode) {
  std::vector<char> attached(3 * (4194307 + MPI_BSEND_OVERHEAD));
  const bool attach = mode == Mode::buffered && check::rank == 0;
  if (attach) OK(MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size())));
  std::uint64_t seed = 0;
  for (Form form : {Form::blocking, Form::nonblocking, Form::persistent})
    for (Early early : {Early::both, Early::sender, Early::receiver})
      for (int bytes : check::message_sizes()) {
        seed += 2;
        if (check::rank == 0) {
          send(mode, form, early, bytes, seed);
          if (attach) OK(MPI_Buffer_flush()); // the sender must not run ahead of its buffer
        }
        if (check::rank == 1) receive(mode, form, early, bytes, seed);
      }
  if (attach) {
    void* address = nullptr;
    int length = 0;
    OK(MPI_Buffer_detach(&address, &length));
    CHECK_EQUAL(address, static_cast<void*>(attached.data()));
    CHECK_EQUAL(length, static_cast<int>(attached.size()));
  }
}

// A synchronous send must not complete before its receive has started.
void synchronous_waits() {
  for (int bytes : {0, 8, 4096, 65536, 1 << 20}) {
    std::vector<char> data(static_cast<std::size_t>(bytes));
    if (check::rank == 0) {
      MPI_Request request;
      OK(MPI_Issend(data.data(), bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request));
      for (int i = 0; i < 50; ++i) {
        int flag = 1;
        OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
      }
      check::token_send(1);
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (check::rank == 1) {
      check::token_recv(0);
      OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"standard", [] { every_size(Mode::standard); }},
                     {"synchronous", [] { every_size(Mode::synchronous); }},
                     {"buffered", [] { every_size(Mode::buffered); }},
                     {"ready", [] { every_size(Mode::ready); }},
                     {"synchronous_waits", synchronous_waits}});
}
