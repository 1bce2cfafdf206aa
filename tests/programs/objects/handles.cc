// SPDX-License-Identifier: BSD-3-Clause
// Every handle becomes an int and the same handle again, predefined or made by the user.
#include "check.h"

namespace {

template <class Handle>
void round_trip(Handle handle, int (*to)(Handle), Handle (*from)(int)) {
  const int number = to(handle);
  CHECK(from(number) == handle);
  CHECK_EQUAL(to(from(number)), number);
}

void communicators() {
  for (MPI_Comm comm : {MPI_COMM_NULL, MPI_COMM_WORLD, MPI_COMM_SELF})
    round_trip(comm, MPI_Comm_toint, MPI_Comm_fromint);
  CHECK_EQUAL(MPI_Comm_toint(MPI_COMM_WORLD), 0x101); // the standard fixes predefined values
  std::vector<MPI_Comm> comms(20);
  for (MPI_Comm& comm : comms)
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  for (MPI_Comm comm : comms) {
    round_trip(comm, MPI_Comm_toint, MPI_Comm_fromint);
    CHECK(MPI_Comm_toint(comm) > 0x200 || MPI_Comm_toint(comm) < 0);
    int sum = 0;
    OK(MPI_Allreduce(&check::size, &sum, 1, MPI_INT, MPI_SUM,
                     MPI_Comm_fromint(MPI_Comm_toint(comm))));
    CHECK_EQUAL(sum, check::size * check::size);
  }
  for (std::size_t i = 1; i < comms.size(); ++i)
    CHECK(MPI_Comm_toint(comms[i]) != MPI_Comm_toint(comms[i - 1]));
  for (MPI_Comm& comm : comms)
    OK(MPI_Comm_free(&comm));
}

void datatypes() {
  for (MPI_Datatype type : {MPI_DATATYPE_NULL, MPI_INT, MPI_DOUBLE, MPI_BYTE, MPI_PACKED,
                            MPI_DOUBLE_INT, MPI_INT64_T, MPI_INTEGER, MPI_C_BOOL})
    round_trip(type, MPI_Type_toint, MPI_Type_fromint);
  MPI_Datatype made;
  OK(MPI_Type_contiguous(3, MPI_INT, &made));
  round_trip(made, MPI_Type_toint, MPI_Type_fromint);
  OK(MPI_Type_free(&made));
}

// The integer goes with the last handle, also of a type that lives on in another.
void datatypes_from_contents() {
  MPI_Datatype inner, outer;
  OK(MPI_Type_contiguous(3, MPI_INT, &inner));
  OK(MPI_Type_contiguous(2, inner, &outer));
  OK(MPI_Type_free(&inner));
  int two = 0;
  MPI_Aint no_address = 0;
  OK(MPI_Type_get_contents(outer, 1, 0, 1, &two, &no_address, &inner));
  round_trip(inner, MPI_Type_toint, MPI_Type_fromint);
  const MPI_Datatype kept = inner;
  const int number = MPI_Type_toint(inner);
  OK(MPI_Type_free(&inner));
  if (check::is_macadam()) {
    CHECK(MPI_Type_fromint(number) != kept);
    MPI_Datatype again = kept; // which `outer` still holds
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&again));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
  }
  OK(MPI_Type_free(&outer));
}

void add(void*, void*, int*, MPI_Datatype*) {}

void operations_and_groups() {
  for (MPI_Op op : {MPI_OP_NULL, MPI_SUM, MPI_MAXLOC, MPI_NO_OP})
    round_trip(op, MPI_Op_toint, MPI_Op_fromint);
  MPI_Op made;
  OK(MPI_Op_create(add, 1, &made));
  round_trip(made, MPI_Op_toint, MPI_Op_fromint);
  OK(MPI_Op_free(&made));
  for (MPI_Group group : {MPI_GROUP_NULL, MPI_GROUP_EMPTY})
    round_trip(group, MPI_Group_toint, MPI_Group_fromint);
  MPI_Group world;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  round_trip(world, MPI_Group_toint, MPI_Group_fromint);
  OK(MPI_Group_free(&world));
}

void ignore(MPI_Comm*, int*, ...) {}

void the_others() {
  for (MPI_Errhandler handler : {MPI_ERRHANDLER_NULL, MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN})
    round_trip(handler, MPI_Errhandler_toint, MPI_Errhandler_fromint);
  MPI_Errhandler made;
  OK(MPI_Comm_create_errhandler(ignore, &made));
  round_trip(made, MPI_Errhandler_toint, MPI_Errhandler_fromint);
  OK(MPI_Errhandler_free(&made));
  for (MPI_Info info : {MPI_INFO_NULL, MPI_INFO_ENV})
    round_trip(info, MPI_Info_toint, MPI_Info_fromint);
  MPI_Info info;
  OK(MPI_Info_create(&info));
  round_trip(info, MPI_Info_toint, MPI_Info_fromint);
  OK(MPI_Info_free(&info));
  round_trip(MPI_REQUEST_NULL, MPI_Request_toint, MPI_Request_fromint);
  char byte = 0;
  MPI_Request request;
  OK(MPI_Irecv(&byte, 1, MPI_BYTE, check::rank, 0, MPI_COMM_WORLD, &request));
  round_trip(request, MPI_Request_toint, MPI_Request_fromint);
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (MPI_Message message : {MPI_MESSAGE_NULL, MPI_MESSAGE_NO_PROC})
    round_trip(message, MPI_Message_toint, MPI_Message_fromint);
  round_trip(MPI_WIN_NULL, MPI_Win_toint, MPI_Win_fromint);
  round_trip(MPI_FILE_NULL, MPI_File_toint, MPI_File_fromint);
  round_trip(MPI_SESSION_NULL, MPI_Session_toint, MPI_Session_fromint);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"communicators", communicators},
                     {"datatypes", datatypes},
                     {"datatypes_from_contents", datatypes_from_contents},
                     {"operations_and_groups", operations_and_groups},
                     {"the_others", the_others}});
}
