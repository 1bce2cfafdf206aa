// SPDX-License-Identifier: BSD-3-Clause
// Which message meets which receive: order between sizes, wildcards, and a random test against
// the rule of the standard (each receive takes the earliest fitting message that is left).
#include "check.h"

#include <random>

namespace {

const std::vector<int> mixed_sizes = {4194307, 8, 70000, 0, 20000, 1, 300000, 4096, 33000, 64};

// Messages of very different protocols on one tag must not overtake each other.
void order_between_sizes() {
  const int n = static_cast<int>(mixed_sizes.size());
  for (bool sender_early : {true, false}) {
    std::vector<std::vector<unsigned char>> data;
    std::vector<MPI_Request> requests(static_cast<std::size_t>(n));
    if (check::rank == 0) {
      if (!sender_early) check::token_recv(1);
      for (int i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        data.push_back(check::message(static_cast<std::size_t>(mixed_sizes[k]), k));
        OK(MPI_Isend(data[k].data(), mixed_sizes[k], MPI_BYTE, 1, 3, MPI_COMM_WORLD, &requests[k]));
      }
      if (sender_early) check::token_send(1);
      OK(MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE));
    } else if (check::rank == 1) {
      if (sender_early) check::token_recv(0);
      const int room = 5000000; // all receives offer more than the message needs
      for (int i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        data.emplace_back(static_cast<std::size_t>(room), 0xEE);
        OK(MPI_Irecv(data[k].data(), room, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &requests[k]));
      }
      if (!sender_early) check::token_send(0);
      std::vector<MPI_Status> statuses(static_cast<std::size_t>(n));
      OK(MPI_Waitall(n, requests.data(), statuses.data()));
      for (std::size_t k = 0; k < data.size(); ++k) {
        int count = -1;
        OK(MPI_Get_count(&statuses[k], MPI_BYTE, &count));
        CHECK_EQUAL(count, mixed_sizes[k]);
        HOLDS(data[k].data(), count, k);
        UNTOUCHED(data[k].data() + count, room - count, 0xEE);
      }
    }
  }
}

struct Planned {
  int tag;     // of the receive; may be a wildcard
  int message; // the message it must get
};

// A plan of receives in which each takes the earliest message left that fits.
std::vector<Planned> plan_receives(std::mt19937& random, const std::vector<int>& tags) {
  std::vector<bool> taken(tags.size(), false);
  std::vector<Planned> plan;
  for (std::size_t i = 0; i < tags.size(); ++i) {
    std::vector<int> left;
    for (std::size_t m = 0; m < tags.size(); ++m)
      if (!taken[m]) left.push_back(static_cast<int>(m));
    Planned next{MPI_ANY_TAG, left.front()};
    if (random() % 3 != 0) {
      next.tag = tags[static_cast<std::size_t>(left[random() % left.size()])];
      for (int m : left)
        if (tags[static_cast<std::size_t>(m)] == next.tag) {
          next.message = m;
          break;
        }
    }
    taken[static_cast<std::size_t>(next.message)] = true;
    plan.push_back(next);
  }
  return plan;
}

void check_received(const Planned& planned, const std::vector<int>& tags,
                    const std::vector<int>& sizes, const std::vector<unsigned char>& data,
                    const MPI_Status& status) {
  const auto m = static_cast<std::size_t>(planned.message);
  int count = -1;
  OK(MPI_Get_count(&status, MPI_BYTE, &count));
  CHECK_EQUAL(status.MPI_TAG, tags[m]);
  CHECK_EQUAL(status.MPI_SOURCE, 0);
  CHECK_EQUAL(count, sizes[m]);
  HOLDS(data.data(), count, m);
}

// Receives with and without MPI_ANY_TAG and MPI_ANY_SOURCE; posting and sending interleave freely.
void random_against_the_rule() {
  std::mt19937 random(20090608);
  for (int round = 0; round < check::times(150, 30); ++round) {
    const std::size_t n = 1 + random() % 24;
    std::vector<int> tags(n), sizes(n);
    for (std::size_t i = 0; i < n; ++i) {
      tags[i] = static_cast<int>(random() % 4);
      sizes[i] = mixed_sizes[1 + random() % (mixed_sizes.size() - 1)];
    }
    const std::vector<Planned> plan = plan_receives(random, tags);
    const bool any_source = random() % 4 == 0;
    const unsigned pause_at = static_cast<unsigned>(random());
    std::vector<MPI_Request> requests(n);
    std::vector<std::vector<unsigned char>> data(n);
    if (check::rank == 0) {
      for (std::size_t i = 0; i < n; ++i) {
        data[i] = check::message(static_cast<std::size_t>(sizes[i]), i);
        OK(MPI_Isend(data[i].data(), sizes[i], MPI_BYTE, 1, tags[i], MPI_COMM_WORLD, &requests[i]));
        if (i == pause_at % n) check::compute_ms(0.2);
      }
      OK(MPI_Waitall(static_cast<int>(n), requests.data(), MPI_STATUSES_IGNORE));
    } else if (check::rank == 1) {
      std::vector<MPI_Status> statuses(n);
      for (std::size_t i = 0; i < n; ++i) {
        data[i].resize(300000);
        OK(MPI_Irecv(data[i].data(), 300000, MPI_BYTE, any_source ? MPI_ANY_SOURCE : 0, plan[i].tag,
                     MPI_COMM_WORLD, &requests[i]));
        if (i == pause_at / 64 % n) check::compute_ms(0.2);
      }
      OK(MPI_Waitall(static_cast<int>(n), requests.data(), statuses.data()));
      for (std::size_t i = 0; i < n; ++i)
        check_received(plan[i], tags, sizes, data[i], statuses[i]);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
}

// All other ranks send to rank 0, which receives from anyone; per sender the order must hold.
void any_source() {
  const int each = 40;
  if (check::rank != 0) {
    for (int i = 0; i < each; ++i) {
      const int bytes = mixed_sizes[static_cast<std::size_t>(1 + i % 9)];
      const auto seed = static_cast<std::uint64_t>(1000 * check::rank + i);
      const auto data = check::message(static_cast<std::size_t>(bytes), seed);
      OK(MPI_Send(data.data(), bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD));
    }
    return;
  }
  std::vector<int> next(static_cast<std::size_t>(check::size), 0);
  std::vector<unsigned char> data(300000);
  for (int i = 0; i < each * (check::size - 1); ++i) {
    MPI_Status status;
    OK(MPI_Recv(data.data(), 300000, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                &status));
    int& expected = next[static_cast<std::size_t>(status.MPI_SOURCE)];
    CHECK_EQUAL(status.MPI_TAG, expected);
    ++expected;
    int count = -1;
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    HOLDS(data.data(), count,
          static_cast<std::uint64_t>(1000 * status.MPI_SOURCE + status.MPI_TAG));
  }
}

// A wildcard receive in front of specific ones: those behind it wait for its choice.
void wildcard_before_specific() {
  const int bytes = 200000;
  for (int round = 0; round < 20; ++round) {
    if (check::rank == 0) {
      std::vector<std::vector<unsigned char>> data(3);
      MPI_Request requests[3];
      check::token_recv(1);
      for (std::size_t i = 0; i < 3; ++i) {
        data[i] = check::message(bytes, i);
        OK(MPI_Isend(data[i].data(), bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &requests[i]));
      }
      OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    } else if (check::rank == 1) {
      std::vector<std::vector<unsigned char>> data(3, std::vector<unsigned char>(bytes));
      MPI_Request requests[3];
      const int sources[3] = {round % 2 ? 0 : MPI_ANY_SOURCE, 0, 0};
      const int tags[3] = {round % 2 ? MPI_ANY_TAG : 5, 5, 5};
      for (std::size_t i = 0; i < 3; ++i)
        OK(MPI_Irecv(data[i].data(), bytes, MPI_BYTE, sources[i], tags[i], MPI_COMM_WORLD,
                     &requests[i]));
      check::token_send(0);
      for (int i : {2, 0, 1})
        OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
      for (std::size_t i = 0; i < 3; ++i)
        HOLDS(data[i].data(), bytes, i);
    }
  }
}

// Pending receives on two communicators with the same source and tag do not mix.
void communicators_do_not_mix() {
  MPI_Comm other;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  for (int bytes : {8, 30000, 500000}) {
    const auto n = static_cast<std::size_t>(bytes);
    if (check::rank == 0) {
      const auto first = check::message(n, 1), second = check::message(n, 2);
      OK(MPI_Send(first.data(), bytes, MPI_BYTE, 1, 9, other));
      OK(MPI_Send(second.data(), bytes, MPI_BYTE, 1, 9, MPI_COMM_WORLD));
    } else if (check::rank == 1) {
      std::vector<unsigned char> first(n), second(n);
      MPI_Request requests[2];
      OK(MPI_Irecv(second.data(), bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                   &requests[0]));
      OK(MPI_Irecv(first.data(), bytes, MPI_BYTE, 0, 9, other, &requests[1]));
      OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
      HOLDS(first.data(), bytes, 1);
      HOLDS(second.data(), bytes, 2);
    }
    OK(MPI_Barrier(other)); // the wildcard of the next round must not see a token of this one
  }
  OK(MPI_Comm_free(&other));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"order_between_sizes", order_between_sizes},
                     {"random_against_the_rule", random_against_the_rule},
                     {"any_source", any_source},
                     {"wildcard_before_specific", wildcard_before_specific},
                     {"communicators_do_not_mix", communicators_do_not_mix}});
}
