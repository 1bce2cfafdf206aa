// SPDX-License-Identifier: BSD-3-Clause
// Wrong calls of partitioned communication: each has its error class, and the round that it was
// made in goes on as if it had not been.
#include "errors/text.h"
#include "partitioned/ring.h"

namespace {

constexpr int parts = 4, bytes = 4 * 512;
unsigned char out[bytes], in[bytes];

void return_errors() {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
}

void names(int code, const char* word) {
  if (!check::is_macadam()) return;
  if (check::error_text(code).find(word) == std::string::npos)
    check::fail(__FILE__, __LINE__, check::error_text(code) + " does not name " + word);
}

void arguments() {
  return_errors();
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Request request = MPI_REQUEST_NULL;
  const auto send = [&](int partitions, MPI_Count count, MPI_Datatype type, int dest, int tag,
                        MPI_Comm comm) {
    return MPI_Psend_init(out, partitions, count, type, dest, tag, comm, MPI_INFO_NULL, &request);
  };
  const auto receive = [&](int partitions, MPI_Count count, MPI_Datatype type, int source, int tag,
                           MPI_Comm comm) {
    return MPI_Precv_init(in, partitions, count, type, source, tag, comm, MPI_INFO_NULL, &request);
  };
  FAILS(MPI_ERR_COUNT, send(parts, -1, MPI_BYTE, 0, 0, world));
  FAILS(MPI_ERR_TYPE, send(parts, 1, MPI_DATATYPE_NULL, 0, 0, world));
  FAILS(MPI_ERR_RANK, send(parts, 1, MPI_BYTE, check::size, 0, world));
  FAILS(MPI_ERR_TAG, send(parts, 1, MPI_BYTE, 0, -1, world));
  FAILS(MPI_ERR_COMM, send(parts, 1, MPI_BYTE, 0, 0, MPI_COMM_NULL));
  FAILS(MPI_ERR_COUNT, receive(parts, -1, MPI_BYTE, 0, 0, world));
  FAILS(MPI_ERR_TYPE, receive(parts, 1, MPI_DATATYPE_NULL, 0, 0, world));
  FAILS(MPI_ERR_RANK, receive(parts, 1, MPI_BYTE, check::size, 0, world));
  FAILS(MPI_ERR_COMM, receive(parts, 1, MPI_BYTE, 0, 0, MPI_COMM_NULL));
  if (!check::is_macadam()) return; // MPICH 5.0 accepts these, or crashes
  FAILS(MPI_ERR_ARG, send(-1, 1, MPI_BYTE, 0, 0, world));
  FAILS(MPI_ERR_COUNT, send(parts, INT64_MAX / 2, MPI_BYTE, 0, 0, world));
  FAILS(MPI_ERR_ARG, receive(-1, 1, MPI_BYTE, 0, 0, world));
  // Wildcards are not for partitioned receives.
  FAILS(MPI_ERR_RANK, receive(parts, 1, MPI_BYTE, MPI_ANY_SOURCE, 0, world));
  FAILS(MPI_ERR_TAG, receive(parts, 1, MPI_BYTE, 0, MPI_ANY_TAG, world));
  FAILS(MPI_ERR_BUFFER,
        MPI_Psend_init(nullptr, 1, 1, MPI_BYTE, 0, 0, world, MPI_INFO_NULL, &request));
  CHECK(request == MPI_REQUEST_NULL);
}

void calls_out_of_place() {
  if (!check::is_macadam()) return;
  return_errors();
  MPI_Request send, receive, other;
  OK(MPI_Psend_init(out, parts, bytes / parts, MPI_BYTE, next(), 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &send));
  OK(MPI_Precv_init(in, parts, bytes / parts, MPI_BYTE, previous(), 1, MPI_COMM_WORLD,
                    MPI_INFO_NULL, &receive));
  int flag = 0;
  // Before the start.
  int code = MPI_Pready(0, send);
  FAILS(MPI_ERR_REQUEST, code);
  names(code, "MPI_Start");
  OK(MPI_Parrived(receive, 0, &flag));
  CHECK_EQUAL(flag, 1);
  OK(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag));
  CHECK_EQUAL(flag, 1);
  FAILS(MPI_ERR_REQUEST, MPI_Pready(0, MPI_REQUEST_NULL));
  for (int round = 0; round < 3; ++round) {
    check::fill(out, bytes, static_cast<std::uint64_t>(check::rank + round));
    OK(MPI_Start(&send));
    OK(MPI_Start(&receive));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&send));
    code = MPI_Pready(parts, send);
    FAILS(MPI_ERR_ARG, code);
    names(code, "4 partitions");
    FAILS(MPI_ERR_ARG, MPI_Pready(-1, send));
    FAILS(MPI_ERR_ARG, MPI_Pready_range(2, 1, send));
    FAILS(MPI_ERR_ARG, MPI_Pready_range(2, parts, send));
    FAILS(MPI_ERR_ARG, MPI_Pready_range(-1, 2, send));
    const int list[] = {0, parts};
    FAILS(MPI_ERR_ARG, MPI_Pready_list(2, list, send)); // none is ready by it
    FAILS(MPI_ERR_ARG, MPI_Pready_list(-1, list, send));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, receive));
    FAILS(MPI_ERR_REQUEST, MPI_Parrived(send, 0, &flag));
    FAILS(MPI_ERR_ARG, MPI_Parrived(receive, parts, &flag));
    FAILS(MPI_ERR_ARG, MPI_Parrived(receive, 0, nullptr));
    OK(MPI_Pready(0, send));
    code = MPI_Pready(0, send);
    FAILS(MPI_ERR_ARG, code);
    names(code, "ready already");
    FAILS(MPI_ERR_ARG, MPI_Pready_range(0, 1, send)); // 1 is ready by it
    FAILS(MPI_ERR_REQUEST, MPI_Cancel(&send));
    other = send;
    FAILS(MPI_ERR_REQUEST, MPI_Request_free(&other));
    other = receive;
    FAILS(MPI_ERR_REQUEST, MPI_Request_free(&other));
    OK(MPI_Pready_range(2, 3, send));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    HOLDS(in, bytes, previous() + round);
    FAILS(MPI_ERR_REQUEST, MPI_Pready(1, send));
  }
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
  // Other requests.
  OK(MPI_Irecv(in, 1, MPI_BYTE, previous(), 7, MPI_COMM_WORLD, &other));
  FAILS(MPI_ERR_REQUEST, MPI_Pready(0, other));
  FAILS(MPI_ERR_REQUEST, MPI_Parrived(other, 0, &flag));
  OK(MPI_Send(out, 1, MPI_BYTE, next(), 7, MPI_COMM_WORLD));
  OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
}

MPI_Info freed_info = MPI_INFO_NULL;
MPI_Datatype uncommitted = MPI_DATATYPE_NULL;
const char* const null = "a null pointer";

// The text says function, parameter, value and what to do.
void texts_of_init() {
  if (!check::is_macadam()) return;
  text::return_errors(MPI_COMM_WORLD);
  static MPI_Request none;
  static const std::string beyond = std::to_string(check::size);
  MPI_Info info = MPI_INFO_NULL;
  OK(MPI_Info_create(&info));
  freed_info = info;
  OK(MPI_Info_free(&info));
  OK(MPI_Type_contiguous(3, MPI_BYTE, &uncommitted));
  struct Init {
    void* buf = out;
    int partitions = parts;
    MPI_Count count = 1;
    MPI_Datatype type = MPI_BYTE;
    int peer = 0, tag = 0;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Request* request = &none;
  };
  none = MPI_REQUEST_NULL;
  const auto both = [](const char* parameter, const char* peer, const char* found,
                       const char* remedy, int error, void (*spoil)(Init&)) {
    Init a;
    spoil(a);
    text::refused({"MPI_Psend_init", parameter, found, remedy, error, [&] {
                     return MPI_Psend_init(a.buf, a.partitions, a.count, a.type, a.peer, a.tag,
                                           a.comm, a.info, a.request);
                   }});
    text::refused({"MPI_Precv_init", peer, found, remedy, error, [&] {
                     return MPI_Precv_init(a.buf, a.partitions, a.count, a.type, a.peer, a.tag,
                                           a.comm, a.info, a.request);
                   }});
    CHECK(none == MPI_REQUEST_NULL);
  };
  const auto each = [&](const char* parameter, const char* found, const char* remedy, int error,
                        void (*spoil)(Init&)) {
    both(parameter, parameter, found, remedy, error, spoil);
  };
  each("buf", null, text::give_data, MPI_ERR_BUFFER, [](Init& a) { a.buf = nullptr; });
  each("buf", "MPI_IN_PLACE", text::give_memory, MPI_ERR_BUFFER,
       [](Init& a) { a.buf = MPI_IN_PLACE; });
  each("partitions", "-1", "at least 0", MPI_ERR_ARG, [](Init& a) { a.partitions = -1; });
  each("count", "-1", "must not be negative", MPI_ERR_COUNT, [](Init& a) { a.count = -1; });
  each("count", "4611686018427387903", "give fewer", MPI_ERR_COUNT,
       [](Init& a) { a.count = INT64_MAX / 2; });
  each("datatype", "MPI_DATATYPE_NULL", text::give_valid, MPI_ERR_TYPE,
       [](Init& a) { a.type = MPI_DATATYPE_NULL; });
  each("datatype", "not committed", "MPI_Type_commit", MPI_ERR_TYPE,
       [](Init& a) { a.type = uncommitted; });
  both("dest", "source", beyond.c_str(), "ranks 0 to", MPI_ERR_RANK,
       [](Init& a) { a.peer = check::size; });
  // A wildcard is for other receives.
  static const std::string any_source = std::to_string(MPI_ANY_SOURCE),
                           any_tag = std::to_string(MPI_ANY_TAG);
  both("dest", "source", any_source.c_str(), "ranks 0 to", MPI_ERR_RANK,
       [](Init& a) { a.peer = MPI_ANY_SOURCE; });
  each("tag", "-7", "tags are 0 to", MPI_ERR_TAG, [](Init& a) { a.tag = -7; });
  each("tag", any_tag.c_str(), "tags are 0 to", MPI_ERR_TAG, [](Init& a) { a.tag = MPI_ANY_TAG; });
  each("comm", "MPI_COMM_NULL", text::give_valid, MPI_ERR_COMM,
       [](Init& a) { a.comm = MPI_COMM_NULL; });
  each("info", "0x", text::give_valid, MPI_ERR_INFO, [](Init& a) { a.info = freed_info; });
  each("request", null, text::give_memory, MPI_ERR_ARG, [](Init& a) { a.request = nullptr; });
  OK(MPI_Type_free(&uncommitted));
  text::nothing_lost(MPI_COMM_WORLD);
}

// The four that take a request, each with what is no request for it.
void texts_of_requests() {
  if (!check::is_macadam()) return;
  text::return_errors(MPI_COMM_WORLD);
  static MPI_Request send, receive, plain, pair[2];
  static int flag, list[] = {0, parts}, first[] = {0};
  OK(MPI_Psend_init(out, parts, bytes / parts, MPI_BYTE, next(), 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &send));
  OK(MPI_Precv_init(in, parts, bytes / parts, MPI_BYTE, previous(), 3, MPI_COMM_WORLD,
                    MPI_INFO_NULL, &receive));
  OK(MPI_Recv_init(in, 1, MPI_BYTE, previous(), 4, MPI_COMM_WORLD, &plain));
  struct Marking {
    const char* function;
    int (*call)(MPI_Request request);
  };
  for (const Marking& marking :
       {Marking{"MPI_Pready", [](MPI_Request request) { return MPI_Pready(0, request); }},
        Marking{"MPI_Pready_range",
                [](MPI_Request request) { return MPI_Pready_range(0, 1, request); }},
        Marking{"MPI_Pready_list",
                [](MPI_Request request) { return MPI_Pready_list(1, first, request); }}}) {
    const auto refused = [&](const char* found, const char* remedy, MPI_Request request) {
      text::refused({marking.function, "request", found, remedy, MPI_ERR_REQUEST,
                     [&] { return marking.call(request); }});
    };
    refused("MPI_REQUEST_NULL", "MPI_Psend_init", MPI_REQUEST_NULL);
    refused("0x", "MPI_Psend_init", receive);
    refused("0x", "MPI_Psend_init", plain);
    refused("not active", "call MPI_Start", send);
  }
  OK(MPI_Start(&send));
  OK(MPI_Start(&receive));
  OK(MPI_Pready(1, send));
  pair[0] = receive, pair[1] = send;
  for (const text::Wrong& wrong : std::vector<text::Wrong>{
           {"MPI_Start", "request", "active already", "complete it first", MPI_ERR_REQUEST,
            [] { return MPI_Start(&send); }},
           {"MPI_Start", "request", "active already", "complete it first", MPI_ERR_REQUEST,
            [] { return MPI_Start(&receive); }},
           {"MPI_Startall", "request", "active already", "complete it first", MPI_ERR_REQUEST,
            [] { return MPI_Startall(2, pair); }},
           {"MPI_Pready", "partition", "-1", "give one", MPI_ERR_ARG,
            [] { return MPI_Pready(-1, send); }},
           {"MPI_Pready", "partition", "4", "give one", MPI_ERR_ARG,
            [] { return MPI_Pready(parts, send); }},
           {"MPI_Pready", "partition", "1", "mark each once", MPI_ERR_ARG,
            [] { return MPI_Pready(1, send); }},
           {"MPI_Pready_range", "partition_low", "-1", "give one", MPI_ERR_ARG,
            [] { return MPI_Pready_range(-1, 1, send); }},
           {"MPI_Pready_range", "partition_low", "4", "give one", MPI_ERR_ARG,
            [] { return MPI_Pready_range(parts, parts, send); }},
           {"MPI_Pready_range", "partition_high", "-1", "give one", MPI_ERR_ARG,
            [] { return MPI_Pready_range(0, -1, send); }},
           {"MPI_Pready_range", "partition_high", "4", "give one", MPI_ERR_ARG,
            [] { return MPI_Pready_range(1, parts, send); }},
           {"MPI_Pready_range", "partition_low", "2", "not less", MPI_ERR_ARG,
            [] { return MPI_Pready_range(2, 1, send); }},
           {"MPI_Pready_range", "partition", "1", "mark each once", MPI_ERR_ARG,
            [] { return MPI_Pready_range(1, 1, send); }},
           {"MPI_Pready_list", "length", "-1", "must not be negative", MPI_ERR_ARG,
            [] { return MPI_Pready_list(-1, list, send); }},
           {"MPI_Pready_list", "array_of_partitions", null, text::give_memory, MPI_ERR_ARG,
            [] { return MPI_Pready_list(1, nullptr, send); }},
           {"MPI_Pready_list", "array_of_partitions[1]", "4", "give one", MPI_ERR_ARG,
            [] { return MPI_Pready_list(2, list, send); }},
           {"MPI_Parrived", "request", "0x", "MPI_Precv_init", MPI_ERR_REQUEST,
            [] { return MPI_Parrived(send, 0, &flag); }},
           {"MPI_Parrived", "request", "0x", "MPI_Precv_init", MPI_ERR_REQUEST,
            [] { return MPI_Parrived(plain, 0, &flag); }},
           {"MPI_Parrived", "partition", "-1", "give one", MPI_ERR_ARG,
            [] { return MPI_Parrived(receive, -1, &flag); }},
           {"MPI_Parrived", "partition", "4", "give one", MPI_ERR_ARG,
            [] { return MPI_Parrived(receive, parts, &flag); }},
           {"MPI_Parrived", "flag", null, text::give_memory, MPI_ERR_ARG,
            [] { return MPI_Parrived(receive, 0, nullptr); }},
       })
    text::refused(wrong);
  // None of these has marked a partition.
  OK(MPI_Pready(0, send));
  OK(MPI_Pready_range(2, 3, send));
  OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
  OK(MPI_Request_free(&plain));
  text::nothing_lost(MPI_COMM_WORLD);
}

// The two sides disagree about the amount of data: too much is an error on both, nothing is
// written; too little leaves the rest alone.
void other_amounts() {
  if (!check::is_macadam()) return;
  return_errors();
  for (const int sent : {bytes, bytes / 2}) {
    std::memset(in, 0xee, bytes);
    check::fill(out, bytes, 4);
    const int room = sent == bytes ? bytes / 4 * 3 : bytes / 4 * 3;
    MPI_Request send, receive;
    OK(MPI_Psend_init(out, 4, sent / 4, MPI_BYTE, next(), 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, 3, room / 3, MPI_BYTE, previous(), 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &receive));
    for (int round = 0; round < 2; ++round) {
      OK(MPI_Start(&receive));
      OK(MPI_Start(&send));
      OK(MPI_Pready_range(0, 3, send));
      MPI_Status status;
      const int sender = MPI_Wait(&send, MPI_STATUS_IGNORE);
      const int receiver = MPI_Wait(&receive, &status);
      if (sent > room) {
        FAILS(MPI_ERR_TRUNCATE, sender);
        FAILS(MPI_ERR_TRUNCATE, receiver);
        names(receiver, "4 partitions of 512 bytes");
        UNTOUCHED(in, bytes, 0xee);
      } else {
        OK(sender);
        OK(receiver);
        int count = 0;
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK_EQUAL(count, sent);
        HOLDS(in, sent, 4);
        UNTOUCHED(in + sent, bytes - sent, 0xee);
      }
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
  }
}

// A send without partitions into a receive that has some moves nothing, and takes nothing away from
// another one when it is freed.
void none_sent() {
  if (!check::is_macadam()) return;
  const auto init = [](int sent, int received, int tag, MPI_Request pair[2]) {
    OK(MPI_Psend_init(out, sent, 64, MPI_BYTE, next(), tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &pair[0]));
    OK(MPI_Precv_init(in, received, 64, MPI_BYTE, previous(), tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &pair[1]));
  };
  const auto round = [](int sent, MPI_Request pair[2]) {
    OK(MPI_Startall(2, pair));
    if (sent > 0) OK(MPI_Pready_range(0, sent - 1, pair[0]));
    OK(MPI_Waitall(2, pair, MPI_STATUSES_IGNORE));
  };
  const auto free = [](MPI_Request pair[2]) {
    OK(MPI_Request_free(&pair[0]));
    OK(MPI_Request_free(&pair[1]));
  };
  MPI_Request some[2], none[2];
  init(parts, parts, 5, some);
  round(parts, some);
  std::memset(in, 0xee, bytes);
  init(0, parts, 6, none);
  round(0, none);
  UNTOUCHED(in, bytes, 0xee);
  free(none);
  check::fill(out, bytes, static_cast<std::uint64_t>(check::rank));
  round(parts, some);
  HOLDS(in, parts * 64, previous());
  free(some);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"arguments", arguments},
                     {"calls_out_of_place", calls_out_of_place},
                     {"texts_of_init", texts_of_init},
                     {"texts_of_requests", texts_of_requests},
                     {"other_amounts", other_amounts},
                     {"none_sent", none_sent}});
}
