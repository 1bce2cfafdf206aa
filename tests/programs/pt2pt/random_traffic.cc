// SPDX-License-Identifier: BSD-3-Clause
// All ranks exchange a random schedule of messages that each of them can compute: random sizes,
// tags, modes, orders of posting and completion, with and without computation in between.
#include "check.h"

#include <algorithm>
#include <random>

namespace {

struct Message {
  int from, to, tag, bytes;
  std::uint64_t seed;
};

std::vector<Message> schedule(std::mt19937& random, int count) {
  const auto& sizes = check::message_sizes();
  std::vector<Message> all;
  for (int i = 0; i < count; ++i) {
    Message m{};
    const auto ranks = static_cast<unsigned>(check::size);
    m.from = static_cast<int>(random() % ranks);
    m.to = static_cast<int>(random() % ranks);
    m.tag = static_cast<int>(random() % 3);
    m.bytes = sizes[random() % (sizes.size() - 2)]; // without the two largest
    m.seed = random();
    all.push_back(m);
  }
  return all;
}

struct Operation {
  Message message;
  bool is_send;
  std::vector<unsigned char> data;
};

MPI_Request post(Operation& op, unsigned choice) {
  const Message& m = op.message;
  MPI_Request request;
  if (!op.is_send) {
    op.data.assign(static_cast<std::size_t>(m.bytes), 0xEE);
    OK(MPI_Irecv(op.data.data(), m.bytes, MPI_BYTE, m.from, m.tag, MPI_COMM_WORLD, &request));
    return request;
  }
  op.data = check::message(static_cast<std::size_t>(m.bytes), m.seed);
  if (choice % 5 == 0)
    OK(MPI_Issend(op.data.data(), m.bytes, MPI_BYTE, m.to, m.tag, MPI_COMM_WORLD, &request));
  else
    OK(MPI_Isend(op.data.data(), m.bytes, MPI_BYTE, m.to, m.tag, MPI_COMM_WORLD, &request));
  return request;
}

void complete(std::vector<Operation>& ops, std::vector<MPI_Request>& requests, unsigned way) {
  const int n = static_cast<int>(requests.size());
  if (way % 3 == 0) {
    OK(MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE));
  } else if (way % 3 == 1) {
    for (int done = 0; done < n; ++done) {
      int index = -1;
      OK(MPI_Waitany(n, requests.data(), &index, MPI_STATUS_IGNORE));
    }
  } else {
    for (int flag = 0; !flag;)
      OK(MPI_Testall(n, requests.data(), &flag, MPI_STATUSES_IGNORE));
  }
  for (const Operation& op : ops)
    if (!op.is_send) HOLDS(op.data.data(), op.message.bytes, op.message.seed);
}

void rounds(unsigned seed, int count) {
  std::mt19937 shared(seed);                                           // the same in all ranks
  std::mt19937 own(seed + 1000u * static_cast<unsigned>(check::rank)); // different in each
  for (int round = 0; round < count; ++round) {
    std::vector<Operation> ops;
    for (const Message& m : schedule(shared, 20 * check::size)) {
      if (m.from == check::rank) ops.push_back({m, true, {}});
      if (m.to == check::rank) ops.push_back({m, false, {}});
    }
    // The order among sends and among receives must stay; how they interleave is free.
    std::vector<bool> sends_first(ops.size());
    std::size_t sends = 0;
    for (const Operation& op : ops)
      sends += op.is_send;
    std::vector<std::size_t> order;
    std::size_t next[2] = {0, 0}; // of receives, of sends
    while (order.size() < ops.size()) {
      const bool want_send = own() % ops.size() < sends;
      for (bool kind : {want_send, !want_send}) {
        std::size_t& at = next[kind];
        while (at < ops.size() && ops[at].is_send != kind)
          ++at;
        if (at == ops.size()) continue;
        order.push_back(at++);
        break;
      }
    }
    std::vector<MPI_Request> requests;
    for (std::size_t i : order) {
      requests.push_back(post(ops[i], static_cast<unsigned>(own())));
      if (own() % 8 == 0) check::compute_ms(0.01 * static_cast<double>(own() % 20));
    }
    complete(ops, requests, static_cast<unsigned>(own()));
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"seed_1", [] { rounds(1, check::times(40, 4)); }},
                     {"seed_2", [] { rounds(2, check::times(40, 4)); }},
                     {"seed_3", [] { rounds(3, check::times(40, 4)); }}});
}
