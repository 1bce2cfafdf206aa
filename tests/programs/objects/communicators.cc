// SPDX-License-Identifier: BSD-3-Clause
// Communicators: made, split, compared, named, freed; their messages never mix.
#include "check.h"

#include <algorithm>

namespace {

int rank_in(MPI_Comm comm) {
  int rank = -1;
  OK(MPI_Comm_rank(comm, &rank));
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = -1;
  OK(MPI_Comm_size(comm, &size));
  return size;
}

int compare(MPI_Comm a, MPI_Comm b) {
  int result = -1;
  OK(MPI_Comm_compare(a, b, &result));
  return result;
}

// The communicator works: a sum over it, and a ring of messages.
void use(MPI_Comm comm) {
  const int rank = rank_in(comm), size = size_of(comm);
  int sum = 0, got = -1;
  OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQUAL(sum, size * (size - 1) / 2);
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  OK(MPI_Sendrecv(&rank, 1, MPI_INT, to, 0, &got, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE));
  CHECK_EQUAL(got, from);
}

void free(MPI_Comm& comm) {
  OK(MPI_Comm_free(&comm));
  CHECK(comm == MPI_COMM_NULL);
}

void world_and_self() {
  CHECK_EQUAL(size_of(MPI_COMM_SELF), 1);
  CHECK_EQUAL(rank_in(MPI_COMM_SELF), 0);
  CHECK_EQUAL(compare(MPI_COMM_WORLD, MPI_COMM_WORLD), MPI_IDENT);
  CHECK_EQUAL(compare(MPI_COMM_WORLD, MPI_COMM_SELF),
              check::size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
  int inter = 1;
  OK(MPI_Comm_test_inter(MPI_COMM_WORLD, &inter));
  CHECK(!inter);
}

void duplicates() {
  MPI_Comm copy, info_copy, idup, idup_info;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
  OK(MPI_Comm_dup_with_info(copy, MPI_INFO_NULL, &info_copy));
  MPI_Request requests[2];
  OK(MPI_Comm_idup(info_copy, &idup, &requests[0]));
  OK(MPI_Comm_idup_with_info(info_copy, MPI_INFO_NULL, &idup_info, &requests[1]));
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  for (MPI_Comm* comm : {&copy, &info_copy, &idup, &idup_info}) {
    CHECK_EQUAL(compare(MPI_COMM_WORLD, *comm), MPI_CONGRUENT);
    use(*comm);
  }
  // A message on one is invisible on the other.
  if (check::size > 1) {
    const int value = 5;
    if (check::rank == 0) OK(MPI_Send(&value, 1, MPI_INT, 1, 0, copy));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check::rank == 1) {
      int flag = 1, got = 0;
      OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, idup, &flag, MPI_STATUS_IGNORE));
      CHECK(!flag);
      OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
      CHECK(!flag);
      OK(MPI_Recv(&got, 1, MPI_INT, 0, 0, copy, MPI_STATUS_IGNORE));
      CHECK_EQUAL(got, 5);
    }
  }
  for (MPI_Comm* comm : {&idup_info, &idup, &info_copy, &copy})
    free(*comm);
}

void split() {
  MPI_Comm half;
  OK(MPI_Comm_split(MPI_COMM_WORLD, check::rank % 2, -check::rank, &half));
  const int members = (check::size + 1 - check::rank % 2) / 2;
  CHECK_EQUAL(size_of(half), members);
  CHECK_EQUAL(rank_in(half), members - 1 - check::rank / 2); // the key reverses the order
  use(half);
  MPI_Comm part;
  OK(MPI_Comm_split(half, rank_in(half) == 0 ? MPI_UNDEFINED : 7, 0, &part));
  CHECK_EQUAL(part == MPI_COMM_NULL, rank_in(half) == 0);
  if (part != MPI_COMM_NULL) {
    use(part);
    CHECK_EQUAL(rank_in(part), rank_in(half) - 1); // equal keys keep the order
    free(part);
  }
  free(half);
}

void split_type() {
  MPI_Comm node, none;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  use(node);
  // Ranks of one host are together, and all ranks are somewhere.
  using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
  Name own{};
  int length;
  OK(MPI_Get_processor_name(own.data(), &length));
  std::vector<Name> names(static_cast<std::size_t>(size_of(node)));
  OK(MPI_Allgather(own.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, names.data(),
                   MPI_MAX_PROCESSOR_NAME, MPI_CHAR, node));
  for (const Name& name : names)
    CHECK_EQUAL(std::string(name.data()), std::string(own.data()));
  const int led = rank_in(node) == 0 ? size_of(node) : 0;
  int sum = 0;
  OK(MPI_Allreduce(&led, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQUAL(sum, check::size);
  free(node);
  OK(MPI_Comm_split_type(MPI_COMM_WORLD,
                         check::rank ? int{MPI_COMM_TYPE_SHARED} : int{MPI_UNDEFINED}, 0,
                         MPI_INFO_NULL, &none));
  CHECK_EQUAL(none == MPI_COMM_NULL, check::rank == 0);
  if (none != MPI_COMM_NULL) free(none);
}

// By process sets, if one of that name is known.
void split_by_set() {
  const auto size_by = [](const char* set) {
    MPI_Info info;
    MPI_Comm comm;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_pset_name", set));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &comm));
    OK(MPI_Info_free(&info));
    const int size = comm != MPI_COMM_NULL ? size_of(comm) : 0;
    if (comm != MPI_COMM_NULL) free(comm);
    return size;
  };
  CHECK_EQUAL(size_by("mpi://WORLD"), check::size);
  CHECK_EQUAL(size_by("mpi://SELF"), 1);
  CHECK_EQUAL(size_by("nobody"), 0);
  CHECK_EQUAL(size_by(check::rank == 0 ? "mpi://SELF" : "MPI://World"),
              check::rank == 0 ? 1 : check::size - 1);
}

void from_groups() {
  MPI_Group world, without_first;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  const int first = 0;
  OK(MPI_Group_excl(world, 1, &first, &without_first));
  MPI_Comm comm = MPI_COMM_NULL;
  OK(MPI_Comm_create(MPI_COMM_WORLD, without_first, &comm));
  CHECK_EQUAL(comm == MPI_COMM_NULL, check::rank == 0);
  if (comm != MPI_COMM_NULL) {
    CHECK_EQUAL(size_of(comm), check::size - 1);
    CHECK_EQUAL(rank_in(comm), check::rank - 1);
    use(comm);
    MPI_Comm local; // only the members call this one
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, without_first, 12, &local));
    CHECK_EQUAL(compare(comm, local), MPI_CONGRUENT);
    use(local);
    free(local);
    free(comm);
  }
  OK(MPI_Group_free(&world));
  OK(MPI_Group_free(&without_first));
}

// Same members in another order are similar.
void similar() {
  MPI_Comm reversed;
  OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -check::rank, &reversed));
  CHECK_EQUAL(compare(MPI_COMM_WORLD, reversed), check::size == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
  free(reversed);
}

std::string name_of(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME];
  int length = -1;
  OK(MPI_Comm_get_name(comm, name, &length));
  CHECK_EQUAL(length, static_cast<int>(std::strlen(name)));
  return name;
}

void names() {
  CHECK_EQUAL(name_of(MPI_COMM_WORLD), "MPI_COMM_WORLD");
  CHECK_EQUAL(name_of(MPI_COMM_SELF), "MPI_COMM_SELF");
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  CHECK_EQUAL(name_of(comm), "");
  OK(MPI_Comm_set_name(comm, "the solver"));
  CHECK_EQUAL(name_of(comm), "the solver");
  free(comm);
}

// A freed communicator lives until the operations on it are done.
void freed_with_messages_under_way() {
  for (int bytes : {8, 30000, 500000}) {
    const auto n = static_cast<std::size_t>(bytes);
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    const auto out = check::message(n, 1);
    std::vector<unsigned char> in(n);
    const int to = (check::rank + 1) % check::size;
    MPI_Request requests[2];
    OK(MPI_Irecv(in.data(), bytes, MPI_BYTE, MPI_ANY_SOURCE, 0, comm, &requests[0]));
    OK(MPI_Isend(out.data(), bytes, MPI_BYTE, to, 0, comm, &requests[1]));
    free(comm);
    MPI_Comm next; // must not get the freed one's messages
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &next));
    use(next);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    HOLDS(in.data(), bytes, 1);
    free(next);
  }
}

// Only pending communication delays MPI_Comm_disconnect: no request that is inactive, nor one that
// is complete but not yet waited for.
void disconnected() {
  const int next = (check::rank + 1) % check::size;
  const int before = (check::rank + check::size - 1) % check::size;
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  int out = check::rank, in[2] = {-1, -1}, never = -1;
  std::vector<MPI_Request> requests(6);
  OK(MPI_Send_init(&out, 1, MPI_INT, next, 0, comm, &requests[0]));
  OK(MPI_Recv_init(&in[0], 1, MPI_INT, before, 0, comm, &requests[1]));
  OK(MPI_Barrier_init(comm, MPI_INFO_NULL, &requests[2]));
  OK(MPI_Startall(3, requests.data()));
  OK(MPI_Waitall(3, requests.data(), MPI_STATUSES_IGNORE));
  OK(MPI_Recv_init(&never, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &requests[3]));
  OK(MPI_Irecv(&in[1], 1, MPI_INT, before, 2, comm, &requests[4]));
  OK(MPI_Issend(&out, 1, MPI_INT, next, 2, comm, &requests[5]));
  OK(MPI_Comm_disconnect(&comm));
  CHECK(comm == MPI_COMM_NULL);
  OK(MPI_Waitall(2, &requests[4], MPI_STATUSES_IGNORE));
  for (int i = 0; i < 4; ++i)
    OK(MPI_Request_free(&requests[static_cast<std::size_t>(i)]));
  for (int got : in)
    CHECK_EQUAL(got, before);
}

void disconnected_while_data_move() {
  if (check::size == 1) return;
  for (int bytes : {1000, 100000, 4000000}) {
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<unsigned char> data = check::message(static_cast<std::size_t>(bytes), 7);
    if (check::rank == 0) OK(MPI_Issend(data.data(), bytes, MPI_BYTE, 1, 0, comm, &request));
    if (check::rank == 1) {
      data.assign(data.size(), 0);
      check::sleep_ms(30);
      OK(MPI_Irecv(data.data(), bytes, MPI_BYTE, 0, 0, comm, &request));
    }
    OK(MPI_Comm_disconnect(&comm));
    if (check::rank == 0) data.assign(data.size(), 0); // has left
    if (check::rank == 1) HOLDS(data.data(), bytes, 7);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
}

// Thousands made and freed: identifiers are used again, memory does not grow without end.
void many() {
  for (int i = 0; i < check::times(3000, 100); ++i) {
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    if (i % 500 == 0) use(comm);
    free(comm);
  }
  std::vector<MPI_Comm> alive(static_cast<std::size_t>(check::times(300, 50)));
  for (MPI_Comm& comm : alive)
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  for (MPI_Comm comm : alive)
    use(comm);
  std::reverse(alive.begin(), alive.end());
  for (MPI_Comm& comm : alive)
    free(comm);
}

void info_of_a_communicator() {
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "false"));
  OK(MPI_Comm_set_info(comm, info));
  OK(MPI_Info_free(&info));
  OK(MPI_Comm_get_info(comm, &info));
  CHECK(info != MPI_INFO_NULL);
  // Also those that nobody has set: the standard gives them a value.
  char value[8] = "";
  int length = sizeof value, found = 0;
  OK(MPI_Info_get_string(info, "mpi_assert_exact_length", &length, value, &found));
  CHECK(!check::is_macadam() || (found != 0 && std::string(value) == "false"));
  OK(MPI_Info_free(&info));
  free(comm);
}

int ask(MPI_Comm comm, int, void*, void* value, void*, int* flag) {
  int size = -1;
  if (value != nullptr) OK(MPI_Comm_size(comm, &size));
  *flag = 0;
  return MPI_SUCCESS;
}

// Some ranks call MPI in the callbacks of a call that all make; MACADAM_CHECK must not take that
// for calls that differ.
void duplicates_with_callbacks() {
  static int something = 0;
  MPI_Comm comm, copies[2];
  int key = MPI_KEYVAL_INVALID;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_create_keyval(ask, MPI_COMM_NULL_DELETE_FN, &key, nullptr));
  OK(MPI_Comm_set_attr(comm, key, check::rank % 2 == 0 ? &something : nullptr));
  OK(MPI_Comm_dup(comm, &copies[0]));
  MPI_Request request;
  OK(MPI_Comm_idup(comm, &copies[1], &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (MPI_Comm* each : {&copies[0], &copies[1], &comm})
    OK(MPI_Comm_free(each));
  OK(MPI_Comm_free_keyval(&key));
}

// What one library asserts of its communicator says nothing of a duplicate.
void hints_of_duplicates() {
  const auto asserts = [](MPI_Comm comm) {
    MPI_Info info;
    OK(MPI_Comm_get_info(comm, &info));
    char value[8] = "";
    int length = sizeof value, found = 0;
    OK(MPI_Info_get_string(info, "mpi_assert_no_any_tag", &length, value, &found));
    OK(MPI_Info_free(&info));
    return found != 0 && std::string(value) == "true";
  };
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
  MPI_Comm asserting, duplicate, later;
  OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &asserting));
  OK(MPI_Info_free(&info));
  CHECK(!check::is_macadam() || asserts(asserting));
  OK(MPI_Comm_dup(asserting, &duplicate));
  CHECK(!asserts(duplicate));
  MPI_Request request;
  OK(MPI_Comm_idup(asserting, &later, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(!asserts(later));
  for (MPI_Comm comm : {asserting, duplicate, later})
    free(comm);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"world_and_self", world_and_self},
                     {"duplicates", duplicates},
                     {"duplicates_with_callbacks", duplicates_with_callbacks},
                     {"split", split},
                     {"split_type", split_type},
                     {"split_by_set", split_by_set},
                     {"from_groups", from_groups},
                     {"similar", similar},
                     {"names", names},
                     {"hints_of_duplicates", hints_of_duplicates},
                     {"freed_with_messages_under_way", freed_with_messages_under_way},
                     {"disconnected", disconnected},
                     {"disconnected_while_data_move", disconnected_while_data_move},
                     {"many", many},
                     {"info_of_a_communicator", info_of_a_communicator}});
}
