// SPDX-License-Identifier: BSD-3-Clause
// MACADAM_CHECK=1: ranks that call different collectives, or with data that do not match, are told
// so, all of them and with both calls; and after that collectives work as before.
#include "text.h"

namespace {

const MPI_Comm world = MPI_COMM_WORLD;
int in[64], out[64], counts[64], places[64];

bool last() {
  return check::rank == check::size - 1;
}

// Every rank's call fails, with all of these words in the text.
void differ(const std::vector<std::string>& words, const std::function<int()>& call) {
  const int code = call();
  const std::string text = check::error_text(code);
  if (check::error_class(code) != MPI_ERR_ARG) check::fail(__FILE__, __LINE__, text);
  for (const std::string& word : words)
    if (text.find(word) == std::string::npos)
      check::fail(__FILE__, __LINE__, text + " does not say '" + word + "'");
  text::nothing_lost(world);
}

void functions() {
  const std::string last_rank = "rank " + std::to_string(check::size - 1) + " called ";
  differ({"rank 0 called MPI_Bcast (root 0, 4 of MPI_INT)", last_rank + "MPI_Barrier",
          "MPI_COMM_WORLD, number 1 there"},
         [] { return last() ? MPI_Barrier(world) : MPI_Bcast(in, 4, MPI_INT, 0, world); });
  differ({"MPI_Comm_dup", "MPI_Barrier"}, [] {
    MPI_Comm copy;
    return last() ? MPI_Barrier(world) : MPI_Comm_dup(world, &copy);
  });
}

void arguments() {
  differ({"root 0,", "root 1,"}, [] { return MPI_Bcast(in, 4, MPI_INT, last() ? 1 : 0, world); });
  differ({"4 of MPI_INT", "5 of MPI_INT"},
         [] { return MPI_Bcast(in, last() ? 5 : 4, MPI_INT, 0, world); });
  differ({"4 of MPI_INT", "4 of MPI_FLOAT"},
         [] { return MPI_Allreduce(in, out, 4, last() ? MPI_FLOAT : MPI_INT, MPI_SUM, world); });
  differ({"MPI_SUM", "MPI_MAX"},
         [] { return MPI_Reduce(in, out, 4, MPI_INT, last() ? MPI_MAX : MPI_SUM, 0, world); });
  differ({"2 of MPI_INT", "1 of MPI_INT"},
         [] { return MPI_Gather(in, last() ? 2 : 1, MPI_INT, out, 1, MPI_INT, 0, world); });
  differ({"1 of MPI_INT", "1 of MPI_DOUBLE"}, [] {
    return MPI_Alltoall(in, 1, last() ? MPI_DOUBLE : MPI_INT, out, 1, last() ? MPI_DOUBLE : MPI_INT,
                        world);
  });
  differ({"3 of MPI_INT to rank 0", "2 of MPI_INT to rank 0"}, [] {
    for (int& count : counts)
      count = last() ? 3 : 2;
    return MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, world);
  });
}

void blocks() {
  for (int i = 0; i < 64; ++i) {
    counts[i] = 1;
    places[i] = i;
  }
  const std::string sender = std::to_string(check::size - 1);
  differ({"rank " + sender + " sends it 2 basic elements, it expects 1 of MPI_INT"}, [] {
    return MPI_Gatherv(in, last() ? 2 : 1, MPI_INT, out, counts, places, MPI_INT, 0, world);
  });
  differ({"rank " + sender + " sends it 1 basic elements, it expects 1 of MPI_INT, of other types"},
         [] {
           return MPI_Alltoallv(in, counts, places, last() ? MPI_FLOAT : MPI_INT, out, counts,
                                places, MPI_INT, world);
         });
  differ({"rank " + sender + " sends it 2 basic elements"}, [] {
    return MPI_Allgatherv(in, last() ? 2 : 1, MPI_INT, out, counts, places, MPI_INT, world);
  });
}

void later() {
  differ({"MPI_Ibcast (root 0, 1 of MPI_INT)", "MPI_Ibarrier"}, [] {
    MPI_Request request;
    OK(last() ? MPI_Ibarrier(world, &request) : MPI_Ibcast(in, 1, MPI_INT, 0, world, &request));
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  differ({"MPI_Bcast_init", "MPI_Barrier_init"}, [] {
    MPI_Request request;
    OK(last() ? MPI_Barrier_init(world, MPI_INFO_NULL, &request)
              : MPI_Bcast_init(in, 1, MPI_INT, 0, world, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    OK(MPI_Request_free(&request));
    return code;
  });
}

void neighbors() {
  MPI_Comm ring;
  const int periodic = 1;
  OK(MPI_Cart_create(world, 1, &check::size, &periodic, 0, &ring));
  OK(MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN));
  differ({"sends it 2 basic elements, it expects 1 of MPI_INT"}, [&] {
    const int count = last() ? 2 : 1;
    const int many[2] = {count, count}, ones[2] = {1, 1};
    return MPI_Neighbor_alltoallv(in, many, places, MPI_INT, out, ones, places, MPI_INT, ring);
  });
  OK(MPI_Comm_free(&ring));
}

// Types that are made differently and hold the same.
void matching() {
  MPI_Datatype four;
  OK(MPI_Type_contiguous(4, MPI_INT, &four));
  OK(MPI_Type_commit(&four));
  OK(last() ? MPI_Bcast(in, 1, four, 0, world) : MPI_Bcast_c(in, 4, MPI_INT, 0, world));
  OK(MPI_Type_free(&four));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"functions", [] { text::return_errors(world), functions(); }},
                     {"arguments", [] { text::return_errors(world), arguments(); }},
                     {"blocks", [] { text::return_errors(world), blocks(); }},
                     {"later", [] { text::return_errors(world), later(); }},
                     {"neighbors", [] { text::return_errors(world), neighbors(); }},
                     {"matching", [] { text::return_errors(world), matching(); }}});
}
