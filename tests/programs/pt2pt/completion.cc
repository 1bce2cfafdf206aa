// SPDX-License-Identifier: BSD-3-Clause
// Wait and Test for one, any, some and all; null and inactive requests; get_status.
#include "check.h"

namespace {

constexpr int n = 12;
constexpr int bytes_of[3] = {16, 30000, 400000};

// Rank 1 posts n receives; rank 0 sends them in the order that rank 1 asks for.
struct Receives {
  std::vector<std::vector<unsigned char>> data;
  std::vector<MPI_Request> requests;

  Receives() : data(n), requests(n) {
    for (int i = 0; i < n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      data[k].resize(static_cast<std::size_t>(bytes_of[i % 3]));
      OK(MPI_Irecv(data[k].data(), bytes_of[i % 3], MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[k]));
    }
  }
  void ask(int i) { OK(MPI_Send(&i, 1, MPI_INT, 0, 999, MPI_COMM_WORLD)); }
  void arrived(int i, const MPI_Status& status) {
    CHECK(i >= 0 && i < n);
    CHECK_EQUAL(status.MPI_TAG, i);
    CHECK_EQUAL(status.MPI_SOURCE, 0);
    int count = -1;
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK_EQUAL(count, bytes_of[i % 3]);
    HOLDS(data[static_cast<std::size_t>(i)].data(), count, static_cast<std::uint64_t>(i));
  }
};

void serve() {
  for (int k = 0; k < n; ++k) {
    int i = -1;
    OK(MPI_Recv(&i, 1, MPI_INT, 1, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    const auto data =
        check::message(static_cast<std::size_t>(bytes_of[i % 3]), static_cast<std::uint64_t>(i));
    OK(MPI_Send(data.data(), bytes_of[i % 3], MPI_BYTE, 1, i, MPI_COMM_WORLD));
  }
}

void with_serving_rank(const std::function<void(Receives&)>& use) {
  if (check::rank == 0) serve();
  if (check::rank == 1) {
    Receives receives;
    use(receives);
    for (MPI_Request request : receives.requests)
      CHECK(request == MPI_REQUEST_NULL);
  }
}

void any() {
  with_serving_rank([](Receives& r) {
    for (int k = 0; k < n; ++k) {
      const int i = (k * 5) % n;
      r.ask(i);
      int index = -1;
      MPI_Status status;
      if (k % 2) {
        OK(MPI_Waitany(n, r.requests.data(), &index, &status));
      } else {
        int flag = 0;
        while (!flag)
          OK(MPI_Testany(n, r.requests.data(), &index, &flag, &status));
      }
      CHECK_EQUAL(index, i);
      r.arrived(i, status);
      CHECK(r.requests[static_cast<std::size_t>(i)] == MPI_REQUEST_NULL);
    }
    int index = 0, flag = 0;
    MPI_Status status;
    OK(MPI_Waitany(n, r.requests.data(), &index, &status));
    CHECK_EQUAL(index, MPI_UNDEFINED);
    OK(MPI_Testany(n, r.requests.data(), &index, &flag, &status));
    CHECK(flag);
    CHECK_EQUAL(index, MPI_UNDEFINED);
  });
}

void some() {
  with_serving_rank([](Receives& r) {
    for (int i = n - 1; i >= 0; --i)
      r.ask(i);
    int done = 0;
    while (done < n) {
      int outcount = -1;
      int indices[n];
      MPI_Status statuses[n];
      if (done % 2)
        OK(MPI_Waitsome(n, r.requests.data(), &outcount, indices, statuses));
      else
        OK(MPI_Testsome(n, r.requests.data(), &outcount, indices, statuses));
      CHECK(outcount >= done % 2 && outcount <= n);
      for (int k = 0; k < outcount; ++k)
        r.arrived(indices[k], statuses[k]);
      done += outcount;
    }
    int outcount = 0;
    int indices[n];
    OK(MPI_Waitsome(n, r.requests.data(), &outcount, indices, MPI_STATUSES_IGNORE));
    CHECK_EQUAL(outcount, MPI_UNDEFINED);
    OK(MPI_Testsome(n, r.requests.data(), &outcount, indices, MPI_STATUSES_IGNORE));
    CHECK_EQUAL(outcount, MPI_UNDEFINED);
  });
}

void all() {
  with_serving_rank([](Receives& r) {
    int flag = 1;
    OK(MPI_Testall(n, r.requests.data(), &flag, MPI_STATUSES_IGNORE));
    CHECK(!flag);
    for (int i = 0; i < n; ++i)
      r.ask(i);
    std::vector<MPI_Status> statuses(n);
    if (check::size > 2) {
      OK(MPI_Waitall(n, r.requests.data(), statuses.data()));
    } else {
      flag = 0;
      while (!flag)
        OK(MPI_Testall(n, r.requests.data(), &flag, statuses.data()));
    }
    for (int i = 0; i < n; ++i)
      r.arrived(i, statuses[static_cast<std::size_t>(i)]);
  });
}

// get_status sees completion and leaves the request alone.
void get_status() {
  with_serving_rank([](Receives& r) {
    int flag = 1, index = -1;
    MPI_Status status;
    OK(MPI_Request_get_status(r.requests[3], &flag, &status));
    CHECK(!flag);
    r.ask(3);
    while (!flag)
      OK(MPI_Request_get_status(r.requests[3], &flag, &status));
    r.arrived(3, status);
    OK(MPI_Request_get_status_any(n, r.requests.data(), &index, &flag, &status));
    CHECK(flag);
    CHECK_EQUAL(index, 3);
    int outcount = -1;
    int indices[n];
    MPI_Status statuses[n];
    OK(MPI_Request_get_status_some(n, r.requests.data(), &outcount, indices, statuses));
    CHECK_EQUAL(outcount, 1);
    CHECK_EQUAL(indices[0], 3);
    OK(MPI_Request_get_status_all(n, r.requests.data(), &flag, statuses));
    CHECK(!flag);
    for (int i = 0; i < n; ++i)
      if (i != 3) r.ask(i);
    while (!flag)
      OK(MPI_Request_get_status_all(n, r.requests.data(), &flag, statuses));
    for (int i = 0; i < n; ++i) {
      CHECK(r.requests[static_cast<std::size_t>(i)] != MPI_REQUEST_NULL);
      r.arrived(i, statuses[i]);
    }
    OK(MPI_Waitall(n, r.requests.data(), MPI_STATUSES_IGNORE));
  });
}

// A status in which every field has to be written.
MPI_Status dirty() {
  MPI_Status status;
  std::memset(&status, 0x5a, sizeof status);
  return status;
}

void is_empty(MPI_Status& status) {
  CHECK_EQUAL(status.MPI_SOURCE, MPI_ANY_SOURCE);
  CHECK_EQUAL(status.MPI_TAG, MPI_ANY_TAG);
  CHECK_EQUAL(status.MPI_ERROR, MPI_SUCCESS);
  int count = -1, cancelled = 1;
  OK(MPI_Get_count(&status, MPI_INT, &count));
  CHECK_EQUAL(count, 0);
  OK(MPI_Test_cancelled(&status, &cancelled));
  CHECK(!cancelled);
  status = dirty();
}

void is_empty_alone(MPI_Request request) {
  const MPI_Request before = request;
  MPI_Status status = dirty();
  int flag = 0;
  OK(MPI_Wait(&request, &status));
  is_empty(status);
  OK(MPI_Test(&request, &flag, &status));
  CHECK(flag);
  is_empty(status);
  OK(MPI_Request_get_status(request, &flag, &status));
  CHECK(flag);
  is_empty(status);
  CHECK(request == before);
}

void null_and_inactive() {
  MPI_Request inactive;
  char byte = 0;
  OK(MPI_Recv_init(&byte, 1, MPI_BYTE, check::rank, 0, MPI_COMM_WORLD, &inactive));
  is_empty_alone(MPI_REQUEST_NULL);
  is_empty_alone(inactive);
  MPI_Request both[2] = {MPI_REQUEST_NULL, inactive};
  MPI_Status status = dirty();
  int index = 0, flag = 0;
  OK(MPI_Waitany(2, both, &index, &status));
  CHECK_EQUAL(index, MPI_UNDEFINED);
  is_empty(status);
  OK(MPI_Testany(2, both, &index, &flag, &status));
  CHECK(flag);
  is_empty(status);
  MPI_Status statuses[2] = {dirty(), dirty()};
  OK(MPI_Waitall(2, both, statuses));
  is_empty(statuses[0]);
  is_empty(statuses[1]);
  OK(MPI_Testall(2, both, &flag, statuses));
  CHECK(flag);
  is_empty(statuses[0]);
  is_empty(statuses[1]);
  OK(MPI_Start(&both[1])); // and once more after a run
  OK(MPI_Send(&byte, 1, MPI_BYTE, check::rank, 0, MPI_COMM_WORLD));
  OK(MPI_Wait(&both[1], &status));
  CHECK_EQUAL(status.MPI_SOURCE, check::rank);
  is_empty_alone(both[1]);
  OK(MPI_Request_free(&both[1]));
  CHECK(both[1] == MPI_REQUEST_NULL);
  OK(MPI_Waitall(0, nullptr, MPI_STATUSES_IGNORE));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"any", any},
                     {"some", some},
                     {"all", all},
                     {"get_status", get_status},
                     {"null_and_inactive", null_and_inactive}});
}
