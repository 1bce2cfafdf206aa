// SPDX-License-Identifier: BSD-3-Clause
// MACADAM_CHECK=1: a message whose datatypes are not those of its receive is told to the receiver,
// with both calls, and is received all the same.
#include "text.h"

namespace {

const MPI_Comm world = MPI_COMM_WORLD;
constexpr int tag = 7;
// One by the short path, ones for each protocol.
const std::vector<int> lengths = check::sizes({4, 3000, 40000, 400000});

std::vector<int> numbers(int length) {
  std::vector<int> all(static_cast<std::size_t>(length));
  for (int i = 0; i < length; ++i)
    all[static_cast<std::size_t>(i)] = i + 1;
  return all;
}

void says(int code, const std::vector<std::string>& words) {
  const std::string text = check::error_text(code);
  if (check::error_class(code) != MPI_ERR_TYPE) check::fail(__FILE__, __LINE__, text);
  for (const std::string& word : words)
    if (text.find(word) == std::string::npos)
      check::fail(__FILE__, __LINE__, text + " does not say '" + word + "'");
}

// The ways to send `length` ints, and to receive them as floats.
using Send = std::function<int(const int*, int)>;
using Receive = std::function<int(float*, int, MPI_Status*)>;

int wait_for(int code, MPI_Request& request, MPI_Status* status) {
  OK(code);
  return MPI_Wait(&request, status);
}

const std::vector<std::pair<std::string, Send>> sends = {
    {"MPI_Send", [](auto data, int n) { return MPI_Send(data, n, MPI_INT, 1, tag, world); }},
    {"MPI_Ssend", [](auto data, int n) { return MPI_Ssend(data, n, MPI_INT, 1, tag, world); }},
    {"MPI_Bsend", [](auto data, int n) { return MPI_Bsend(data, n, MPI_INT, 1, tag, world); }},
    {"MPI_Isend",
     [](auto data, int n) {
       MPI_Request request;
       return wait_for(MPI_Isend(data, n, MPI_INT, 1, tag, world, &request), request,
                       MPI_STATUS_IGNORE);
     }},
    {"MPI_Start",
     [](auto data, int n) {
       MPI_Request request;
       OK(MPI_Send_init(data, n, MPI_INT, 1, tag, world, &request));
       const int code = wait_for(MPI_Start(&request), request, MPI_STATUS_IGNORE);
       OK(MPI_Request_free(&request));
       return code;
     }},
    {"MPI_Sendrecv",
     [](auto data, int n) {
       return MPI_Sendrecv(data, n, MPI_INT, 1, tag, nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, world,
                           MPI_STATUS_IGNORE);
     }},
    {"MPI_Sendrecv_replace",
     [](auto data, int n) {
       std::vector<int> copy(data, data + n);
       return MPI_Sendrecv_replace(copy.data(), n, MPI_INT, 1, tag, MPI_PROC_NULL, 0, world,
                                   MPI_STATUS_IGNORE);
     }},
};

const std::vector<std::pair<std::string, Receive>> receives = {
    {"MPI_Recv", [](auto data, int n,
                    auto status) { return MPI_Recv(data, n, MPI_FLOAT, 0, tag, world, status); }},
    {"MPI_Recv",
     [](auto data, int n, auto status) {
       return MPI_Recv(data, n, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, status);
     }},
    {"MPI_Irecv",
     [](auto data, int n, auto status) {
       MPI_Request request;
       return wait_for(MPI_Irecv(data, n, MPI_FLOAT, 0, tag, world, &request), request, status);
     }},
    {"MPI_Start",
     [](auto data, int n, auto status) {
       MPI_Request request;
       OK(MPI_Recv_init(data, n, MPI_FLOAT, 0, tag, world, &request));
       const int code = wait_for(MPI_Start(&request), request, status);
       OK(MPI_Request_free(&request));
       return code;
     }},
    {"MPI_Sendrecv",
     [](auto data, int n, auto status) {
       return MPI_Sendrecv(nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, data, n, MPI_FLOAT, 0, tag, world,
                           status);
     }},
    {"MPI_Isendrecv",
     [](auto data, int n, auto status) {
       MPI_Request request;
       return wait_for(MPI_Isendrecv(nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, data, n, MPI_FLOAT, 0,
                                     tag, world, &request),
                       request, status);
     }},
    {"MPI_Mrecv",
     [](auto data, int n, auto status) {
       MPI_Message message;
       int count = 0;
       OK(MPI_Mprobe(0, tag, world, &message, status));
       OK(MPI_Get_count(status, MPI_FLOAT, &count));
       CHECK_EQUAL(count, n);
       return MPI_Mrecv(data, n, MPI_FLOAT, &message, status);
     }},
    {"MPI_Imrecv",
     [](auto data, int n, auto status) {
       MPI_Message message;
       MPI_Request request;
       OK(MPI_Probe(0, tag, world, status));
       OK(MPI_Mprobe(0, tag, world, &message, status));
       return wait_for(MPI_Imrecv(data, n, MPI_FLOAT, &message, &request), request, status);
     }},
};

void told(const std::string& by, const Send& send, const std::string& with, const Receive& receive,
          int length) {
  const std::vector<int> data = numbers(length);
  if (check::rank == 0) OK(send(data.data(), length));
  if (check::rank == 1) {
    std::vector<float> got(data.size());
    MPI_Status status;
    const std::string n = std::to_string(length);
    says(receive(got.data(), length, &status),
         {"rank 0 called " + by + " of " + n + " of MPI_INT",
          "rank 1 called " + with + " of " + n + " of MPI_FLOAT", "MPI_COMM_WORLD", "tag 7"});
    int count = 0;
    OK(MPI_Get_count(&status, MPI_FLOAT, &count));
    CHECK_EQUAL(count, length);
    CHECK_EQUAL(status.MPI_SOURCE, 0);
    CHECK_EQUAL(std::memcmp(got.data(), data.data(), data.size() * sizeof(int)), 0);
  }
  text::nothing_lost(world);
}

void every_way() {
  void* buffer = nullptr;
  int size = 0;
  OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
  for (const int length : lengths) {
    for (const auto& [by, send] : sends)
      told(by, send, receives[0].first, receives[0].second, length);
    for (const auto& [with, receive] : receives)
      told(sends[0].first, sends[0].second, with, receive, length);
  }
  OK(MPI_Buffer_detach(&buffer, &size));
}

// Sends `sent` of one type, and expects this class of a receive of up to `room` of another.
void expect(int error, int sent, MPI_Datatype as, int room, MPI_Datatype expected) {
  std::vector<unsigned char> memory(256);
  if (check::rank == 0) OK(MPI_Send(memory.data(), sent, as, 1, tag, world));
  if (check::rank == 1) {
    const int code = MPI_Recv(memory.data(), room, expected, 0, tag, world, MPI_STATUS_IGNORE);
    CHECK_EQUAL(check::error_class(code), error);
  }
}

void what_matches() {
  MPI_Datatype int_double, doubles, row;
  const int one[] = {1, 1};
  const MPI_Aint places[] = {0, 8};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  OK(MPI_Type_create_struct(2, one, places, types, &int_double));
  OK(MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &doubles));
  OK(MPI_Type_contiguous(2, int_double, &row));
  for (MPI_Datatype* const made : {&int_double, &doubles, &row})
    OK(MPI_Type_commit(made));
  constexpr int good = MPI_SUCCESS, bad = MPI_ERR_TYPE;
  expect(good, 4, MPI_INT, 4, MPI_INT);
  expect(good, 4, MPI_INT, 4, MPI_INTEGER);
  expect(good, 0, MPI_INT, 4, MPI_DOUBLE);
  expect(bad, 4, MPI_INT, 4, MPI_UNSIGNED);
  expect(bad, 2, MPI_INT, 1, MPI_LONG);
  // Bytes and what is packed go with everything.
  expect(good, 4, MPI_INT, 16, MPI_BYTE);
  expect(good, 16, MPI_BYTE, 2, MPI_DOUBLE);
  expect(good, 8, MPI_PACKED, 2, MPI_INT);
  expect(good, 2, MPI_INT, 8, MPI_PACKED);
  // The layout does not matter, the sequence does.
  expect(good, 3, MPI_DOUBLE, 1, doubles);
  expect(good, 1, row, 2, int_double);
  expect(bad, 2, int_double, 3, MPI_DOUBLE);
  expect(bad, 1, MPI_DOUBLE, 1, int_double);
  // Short messages, against as much of the receive.
  expect(good, 3, MPI_INT, 9, MPI_INT);
  expect(good, 1, MPI_INT, 2, row);
  expect(good, 3, int_double, 2, row);
  expect(bad, 2, MPI_INT, 2, row);
  expect(bad, 3, MPI_FLOAT, 9, MPI_INT);
  // What is too long, or ends within an element, is told as ever.
  expect(MPI_ERR_TRUNCATE, 5, MPI_INT, 4, MPI_INT);
  expect(MPI_ERR_TRUNCATE, 3, MPI_BYTE, 1, MPI_INT);
  for (MPI_Datatype* const made : {&int_double, &doubles, &row})
    OK(MPI_Type_free(made));
  text::nothing_lost(world);
}

// A receive that takes nothing, or whose request is freed, has nothing to be told.
void without_an_end() {
  int got = 0;
  if (check::rank == 1) {
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0;
    OK(MPI_Irecv(&got, 1, MPI_INT, 0, tag + 1, world, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK_EQUAL(cancelled, 1);
    OK(MPI_Irecv(&got, 1, MPI_INT, 0, tag, world, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Recv_init(&got, 1, MPI_INT, 0, tag, world, &request));
    OK(MPI_Start(&request));
    OK(MPI_Request_free(&request));
    OK(MPI_Barrier(world));
  } else {
    OK(MPI_Barrier(world));
    if (check::rank == 0)
      for (int i = 0; i < 2; ++i)
        OK(MPI_Send(&check::rank, 1, MPI_INT, 1, tag, world));
  }
  text::nothing_lost(world);
}

// One of several: MPI_Waitall says which.
void in_a_list() {
  const int data[] = {1, 2};
  float wrong[2];
  int right[2];
  if (check::rank == 0)
    for (int i = 0; i < 2; ++i)
      OK(MPI_Send(data, 2, MPI_INT, 1, tag, world));
  if (check::rank == 1) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Irecv(right, 2, MPI_INT, 0, tag, world, &requests[0]));
    OK(MPI_Irecv(wrong, 2, MPI_FLOAT, 0, tag, world, &requests[1]));
    FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(2, requests, statuses));
    CHECK_EQUAL(statuses[0].MPI_ERROR, MPI_SUCCESS);
    CHECK_EQUAL(check::error_class(statuses[1].MPI_ERROR), MPI_ERR_TYPE);
  }
  text::nothing_lost(world);
}

// Two rounds of partitions from rank 0 to rank 1, and how the receive's end.
std::vector<int> partitioned(int sent, MPI_Count count, MPI_Datatype type, int received,
                             MPI_Count room, MPI_Datatype as) {
  std::vector<std::byte> data(1024);
  std::vector<int> ends;
  MPI_Request request = MPI_REQUEST_NULL;
  if (check::rank == 0)
    OK(MPI_Psend_init(data.data(), sent, count, type, 1, tag, world, MPI_INFO_NULL, &request));
  if (check::rank == 1)
    OK(MPI_Precv_init(data.data(), received, room, as, 0, tag, world, MPI_INFO_NULL, &request));
  for (int round = 0; round < 2 && check::rank < 2; ++round) {
    OK(MPI_Start(&request));
    if (check::rank == 0) OK(MPI_Pready_range(0, sent - 1, request));
    if (check::rank == 0) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (check::rank == 1) ends.push_back(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  if (request != MPI_REQUEST_NULL) OK(MPI_Request_free(&request));
  return ends;
}

// Partitions are compared as the whole of them, however the two sides cut it; each round is told.
void partitions() {
  MPI_Datatype pairs, mixed, other;
  const int counts[] = {1, 1};
  const MPI_Aint places[] = {0, 8};
  const MPI_Datatype types[] = {MPI_DOUBLE, MPI_LONG}, turned[] = {MPI_LONG, MPI_DOUBLE};
  OK(MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &pairs));
  OK(MPI_Type_create_struct(2, counts, places, types, &mixed));
  OK(MPI_Type_create_struct(2, counts, places, turned, &other));
  for (MPI_Datatype* const type : {&pairs, &mixed, &other})
    OK(MPI_Type_commit(type));
  const auto match = [](const std::vector<int>& ends) {
    for (const int end : ends)
      OK(end);
  };
  match(partitioned(4, 6, MPI_DOUBLE, 8, 3, MPI_DOUBLE));
  match(partitioned(3, 2, MPI_DOUBLE, 1, 6, MPI_DOUBLE));
  match(partitioned(2, 4, MPI_DOUBLE, 4, 1, pairs));
  match(partitioned(4, 3, mixed, 6, 2, mixed));
  match(partitioned(4, 8, MPI_BYTE, 8, 1, MPI_INT));
  match(partitioned(4, 2, MPI_INT, 1, 32, MPI_BYTE));
  match(partitioned(2, 2, MPI_INT, 4, 5, MPI_INT)); // fewer
  match(partitioned(2, 0, MPI_INT, 4, 5, MPI_DOUBLE));
  const auto differ = [](const std::vector<int>& ends, const std::vector<std::string>& words) {
    for (const int end : ends)
      says(end, words);
  };
  differ(partitioned(4, 6, MPI_DOUBLE, 8, 3, MPI_LONG),
         {"rank 0 called MPI_Psend_init of 4 partitions of 48 bytes, 24 of MPI_DOUBLE in all",
          "rank 1 called MPI_Precv_init of 8 partitions of 3 of MPI_LONG",
          "communicator MPI_COMM_WORLD, tag 7"});
  differ(partitioned(4, 2, MPI_INT, 8, 2, MPI_DOUBLE),
         {"8 basic elements sent are of other types"});
  differ(partitioned(4, 2, MPI_INT, 2, 2, MPI_DOUBLE), {"8 basic elements were sent"});
  differ(partitioned(4, 3, mixed, 6, 2, other), {"of several basic types in all"});
  for (MPI_Datatype* const type : {&pairs, &mixed, &other})
    OK(MPI_Type_free(type));
}

// The origin describes both sides of a put or get.
void windows() {
  double memory[4] = {}, mine[4] = {};
  MPI_Win window;
  OK(MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, world, &window));
  OK(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
  OK(MPI_Win_lock_all(0, window));
  says(MPI_Put(mine, 2, MPI_DOUBLE, 0, 0, 2, MPI_LONG, window),
       {"2 of MPI_DOUBLE at the origin", "2 of MPI_LONG at the target"});
  says(MPI_Get(mine, 2, MPI_INT, 0, 0, 1, MPI_DOUBLE, window), {"1 of MPI_DOUBLE at the target"});
  MPI_Request request;
  says(MPI_Rput(mine, 1, MPI_DOUBLE, 0, 0, 1, MPI_LONG, window, &request), {});
  says(MPI_Rget(mine, 1, MPI_DOUBLE, 0, 0, 1, MPI_LONG, window, &request), {});
  OK(MPI_Put(mine, 1, MPI_DOUBLE, 0, 0, 8, MPI_BYTE, window));
  OK(MPI_Get(mine, 2, MPI_DOUBLE, 0, 0, 2, MPI_DOUBLE, window));
  OK(MPI_Win_unlock_all(window));
  OK(MPI_Win_free(&window));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"start", [] { text::return_errors(world); }},
                     {"every way to send and receive", every_way},
                     {"what matches", what_matches},
                     {"without an end", without_an_end},
                     {"in a list", in_a_list},
                     {"partitions", partitions},
                     {"windows", windows}});
}
