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
  static MPI_Comm unnamed;
  OK(MPI_Comm_dup(world, &unnamed));
  text::return_errors(unnamed);
  differ({"MPI_Bcast", "MPI_Barrier", "differ in a collective on communicator ",
          " of rank 0, number 1 there"},
         [] { return last() ? MPI_Barrier(unnamed) : MPI_Bcast(in, 4, MPI_INT, 0, unnamed); });
  OK(MPI_Comm_free(&unnamed));
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
  differ({"MPI_Cart_create (1 x 1, periods 0 0)", "MPI_Cart_create (1 x 1, periods 0 1)"}, [] {
    static const int ones[] = {1, 1};
    const int periods[] = {0, last() ? 1 : 0};
    MPI_Comm grid;
    return MPI_Cart_create(world, 2, ones, periods, 0, &grid);
  });
  differ({"3 + 3", "2 + 2"}, [] {
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

void fences() {
  MPI_Win win;
  OK(MPI_Win_create(in, sizeof in, 1, MPI_INFO_NULL, world, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  differ({"differ in a collective on window ", "rank 0 called MPI_Win_fence, and",
          "called MPI_Win_fence (MPI_MODE_NOPRECEDE)"},
         [&] { return MPI_Win_fence(last() ? MPI_MODE_NOPRECEDE : 0, win); });
  differ({"MPI_Win_fence", "MPI_Win_free"}, [&] {
    MPI_Win freed = win;
    return last() ? MPI_Win_free(&freed) : MPI_Win_fence(0, win);
  });
  OK(MPI_Win_fence(last() ? MPI_MODE_NOSTORE : MPI_MODE_NOPUT, win));
  OK(MPI_Win_free(&win));
}

// The last rank alone is one group, the others are the other.
struct TwoGroups {
  MPI_Comm half = MPI_COMM_NULL, both = MPI_COMM_NULL;
  TwoGroups() {
    OK(MPI_Comm_split(world, last(), 0, &half));
    OK(MPI_Intercomm_create(half, 0, world, last() ? 0 : check::size - 1, 1, &both));
    text::return_errors(both);
  }
  ~TwoGroups() {
    OK(MPI_Comm_free(&both));
    OK(MPI_Comm_free(&half));
  }
  // Of a call whose root is rank 0 of the others, or the last rank.
  [[nodiscard]] static int root_among_others() {
    return last() ? 0 : check::rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  }
  [[nodiscard]] static int root_is_last() { return last() ? MPI_ROOT : 0; }
};

void roots_of_groups() {
  const TwoGroups two;
  differ({"MPI_Bcast (root 0, 4 of MPI_INT)", "of the other group called MPI_Bcast (root 0, 4"},
         [&] { return MPI_Bcast(in, 4, MPI_INT, 0, two.both); });
  differ(
      {"rank 0", "called MPI_Bcast (MPI_PROC_NULL), and the group opposite names it as the root"},
      [&] { return MPI_Bcast(in, 4, MPI_INT, last() ? 0 : MPI_PROC_NULL, two.both); });
  differ({"all ranks called MPI_Bcast (MPI_PROC_NULL)", "one rank of one group must give MPI_ROOT"},
         [&] { return MPI_Bcast(in, 4, MPI_INT, MPI_PROC_NULL, two.both); });
  if (check::size < 3) return;
  differ({"MPI_Bcast (root 1, 4 of MPI_INT)", "MPI_Bcast (MPI_ROOT, 4 of MPI_INT)"},
         [&] { return MPI_Bcast(in, 4, MPI_INT, last() ? 1 : two.root_among_others(), two.both); });
  differ({"called MPI_Bcast (MPI_PROC_NULL), and rank 0 opposite is the root"}, [&] {
    const int root = check::rank == 1 ? MPI_PROC_NULL : two.root_is_last();
    return MPI_Bcast(in, 4, MPI_INT, root, two.both);
  });
  differ({"rank 0", "rank 1", "MPI_ROOT"},
         [&] { return MPI_Bcast(in, 4, MPI_INT, last() ? 0 : MPI_ROOT, two.both); });
}

void functions_of_groups() {
  const TwoGroups two;
  MPI_Comm made;
  differ({"MPI_Barrier", "MPI_Intercomm_merge"},
         [&] { return last() ? MPI_Barrier(two.both) : MPI_Intercomm_merge(two.both, 0, &made); });
  differ({"MPI_Comm_split", "MPI_Comm_dup"}, [&] {
    return last() ? MPI_Comm_split(two.both, 0, 0, &made) : MPI_Comm_dup(two.both, &made);
  });
  OK(MPI_Comm_split(two.both, 0, 0, &made));
  OK(MPI_Comm_free(&made));
}

// No rank has a block of its own there, with or without MACADAM_CHECK.
void in_place() {
  const TwoGroups two;
  for (int i = 0; i < 64; ++i)
    counts[i] = 1;
  const auto refused = [](int code) {
    CHECK_EQUAL(check::error_class(code), MPI_ERR_BUFFER);
    if (check::error_text(code).find("MPI_IN_PLACE") == std::string::npos)
      check::fail(__FILE__, __LINE__, check::error_text(code));
  };
  refused(MPI_Allreduce(MPI_IN_PLACE, out, 4, MPI_INT, MPI_SUM, two.both));
  refused(MPI_Reduce_scatter(MPI_IN_PLACE, out, counts, MPI_INT, MPI_SUM, two.both));
  refused(MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, out, 1, MPI_INT, two.both));
  refused(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, out, 1, MPI_INT, two.both));
  refused(
      MPI_Alltoallv(MPI_IN_PLACE, counts, places, MPI_INT, out, counts, places, MPI_INT, two.both));
  text::nothing_lost(world);
}

void data_of_groups() {
  const TwoGroups two;
  differ({"MPI_Bcast (root 0, 5 of MPI_INT)", "MPI_Bcast (MPI_ROOT, 4 of MPI_INT)"},
         [&] { return MPI_Bcast(in, last() ? 5 : 4, MPI_INT, two.root_among_others(), two.both); });
  differ({"MPI_Reduce (MPI_ROOT, 4 of MPI_INT, MPI_MAX)",
          "MPI_Reduce (root 0, 4 of MPI_INT, MPI_SUM)"},
         [&] {
           return MPI_Reduce(in, out, 4, MPI_INT, last() ? MPI_MAX : MPI_SUM, two.root_is_last(),
                             two.both);
         });
  differ({"MPI_Gather (MPI_ROOT, 1 of MPI_INT)", "MPI_Gather (root 0, 2 of MPI_INT)"},
         [&] { return MPI_Gather(in, 2, MPI_INT, out, 1, MPI_INT, two.root_is_last(), two.both); });
  differ({"MPI_Allreduce (4 of MPI_INT, MPI_SUM)", "MPI_Allreduce (4 of MPI_FLOAT, MPI_SUM)"}, [&] {
    return MPI_Allreduce(in, out, 4, last() ? MPI_FLOAT : MPI_INT, MPI_SUM, two.both);
  });
  differ(
      {"sending 2 of MPI_INT, receiving 1 of MPI_INT", "sending 1 of MPI_INT, receiving 3"}, [&] {
        return MPI_Allgather(in, last() ? 1 : 2, MPI_INT, out, last() ? 3 : 1, MPI_INT, two.both);
      });
  differ({"sending 1 of MPI_INT, receiving 1 of MPI_INT", "sending 1 of MPI_FLOAT"}, [&] {
    return MPI_Alltoall(in, 1, last() ? MPI_FLOAT : MPI_INT, out, 1, MPI_INT, two.both);
  });
  differ({"MPI_Reduce_scatter (2", "MPI_Reduce_scatter (12 of MPI_INT, 12 to 1 ranks"}, [&] {
    for (int& count : counts)
      count = last() ? 12 : 2;
    return MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, two.both);
  });
}

void blocks_of_groups() {
  const TwoGroups two;
  for (int i = 0; i < 64; ++i) {
    counts[i] = 1;
    places[i] = i;
  }
  differ({"rank 0 opposite sends it 2 basic elements, it expects 1 of MPI_INT"}, [&] {
    return MPI_Gatherv(in, 2, MPI_INT, out, counts, places, MPI_INT, two.root_is_last(), two.both);
  });
  differ({"rank 0 opposite sends it 1 basic elements, it expects 2 of MPI_INT"}, [&] {
    return MPI_Scatterv(in, counts, places, MPI_INT, out, 2, MPI_INT, two.root_is_last(), two.both);
  });
  differ({"rank 0 opposite sends it 1 basic elements, it expects 1 of MPI_INT, of other "
          "types"},
         [&] {
           return MPI_Alltoallv(in, counts, places, last() ? MPI_FLOAT : MPI_INT, out, counts,
                                places, MPI_INT, two.both);
         });
}

// What the two groups need not agree on.
void matching_groups() {
  const TwoGroups two;
  // Of the group of the root, the others' data are not looked at.
  OK(MPI_Bcast(in, check::rank == 1 && !last() ? 7 : 4, MPI_INT, two.root_among_others(),
               two.both));
  OK(MPI_Reduce(in, out, 4, MPI_INT, check::rank == 1 && !last() ? MPI_MAX : MPI_SUM,
                two.root_among_others(), two.both));
  OK(MPI_Allgather(in, last() ? 1 : 2, MPI_INT, out, last() ? 2 : 1, MPI_INT, two.both));
  OK(MPI_Alltoall(in, last() ? 0 : 2, MPI_INT, out, last() ? 2 : 0, MPI_INT, two.both));
  for (int& count : counts)
    count = last() ? 2 * (check::size - 1) : 2;
  OK(MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, two.both));
  OK(MPI_Reduce_scatter_block(in, out, counts[0], MPI_INT, MPI_SUM, two.both));
  for (int i = 0; i < 64; ++i) {
    counts[i] = i;
    places[i] = 8 * i;
  }
  OK(MPI_Gatherv(in, check::rank, MPI_INT, out, counts, places, MPI_INT, two.root_is_last(),
                 two.both));
}

// Types that are made differently and hold the same.
void matching() {
  MPI_Datatype four;
  OK(MPI_Type_contiguous(4, MPI_INT, &four));
  OK(MPI_Type_commit(&four));
  OK(last() ? MPI_Bcast(in, 1, four, 0, world) : MPI_Bcast_c(in, 4, MPI_INT, 0, world));
  OK(MPI_Type_free(&four));
}

// A packing unit goes with any types of as many bytes, here as in messages; other types with none
// but their own.
void packed() {
  static char unit[4 * 64];
  const int bytes = 4;
  for (int i = 0; i < 64; ++i)
    counts[i] = 1, places[i] = i;
  static int unit_counts[64], unit_places[64];
  for (int i = 0; i < 64; ++i)
    unit_counts[i] = bytes, unit_places[i] = bytes * i;
  OK(last() ? MPI_Bcast(unit, bytes, MPI_PACKED, 0, world) : MPI_Bcast(in, 1, MPI_INT, 0, world));
  OK(last() ? MPI_Gather(unit, bytes, MPI_PACKED, nullptr, 0, MPI_INT, 0, world)
            : MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, 0, world));
  OK(last() ? MPI_Scatter(nullptr, 0, MPI_INT, unit, bytes, MPI_PACKED, 0, world)
            : MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, 0, world));
  OK(MPI_Allgather(in, 1, MPI_INT, unit, bytes, MPI_PACKED, world));
  OK(last() ? MPI_Gatherv(unit, bytes, MPI_PACKED, nullptr, nullptr, nullptr, MPI_INT, 0, world)
            : MPI_Gatherv(in, 1, MPI_INT, out, counts, places, MPI_INT, 0, world));
  OK(MPI_Alltoallv(in, counts, places, MPI_INT, unit, unit_counts, unit_places, MPI_PACKED, world));
  differ({"4 of MPI_PACKED", "2 of MPI_INT"}, [] {
    return last() ? MPI_Bcast(unit, 4, MPI_PACKED, 0, world) : MPI_Bcast(in, 2, MPI_INT, 0, world);
  });
  if (check::size < 3) return;
  // Where the root packs, each of the others takes what it likes; where others send, all take that.
  const MPI_Datatype any = last() ? MPI_FLOAT : MPI_INT;
  OK(check::rank == 0 ? MPI_Scatter(unit, bytes, MPI_PACKED, MPI_IN_PLACE, 0, MPI_INT, 0, world)
                      : MPI_Scatter(nullptr, 0, MPI_INT, out, 1, any, 0, world));
  OK(check::rank == 0 ? MPI_Gather(in, 1, MPI_INT, unit, bytes, MPI_PACKED, 0, world)
                      : MPI_Gather(in, 1, any, nullptr, 0, MPI_INT, 0, world));
  OK(MPI_Alltoall(unit, bytes, MPI_PACKED, out, 1, any, world));
  differ({"1 of MPI_INT", "1 of MPI_FLOAT"}, [] {
    if (check::rank == 0) return MPI_Allgather(in, 1, MPI_INT, unit, 4, MPI_PACKED, world);
    return MPI_Allgather(in, 1, MPI_FLOAT, out, 1, MPI_FLOAT, world);
  });
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"functions", [] { text::return_errors(world), functions(); }},
                     {"arguments", [] { text::return_errors(world), arguments(); }},
                     {"blocks", [] { text::return_errors(world), blocks(); }},
                     {"later", [] { text::return_errors(world), later(); }},
                     {"neighbors", [] { text::return_errors(world), neighbors(); }},
                     {"fences", [] { text::return_errors(world), fences(); }},
                     {"roots of groups", roots_of_groups},
                     {"functions of groups", functions_of_groups},
                     {"in place", in_place},
                     {"data of groups", data_of_groups},
                     {"blocks of groups", blocks_of_groups},
                     {"matching groups", matching_groups},
                     {"packed", [] { text::return_errors(world), packed(); }},
                     {"matching", [] { text::return_errors(world), matching(); }}});
}
