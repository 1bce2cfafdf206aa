/* SPDX-License-Identifier: BSD-3-Clause */
/* A bad argument of every kind is refused with the error class that the standard names, and with a
 * message that says what was found and what was needed. A job of one rank. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int failures;

/* `code` is what a call returned; the message must begin with the function and hold `part`. */
static void expect(int line, int code, int error_class, const char* function, const char* part) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int found = -1, length = 0;
  MPI_Error_class(code, &found);
  MPI_Error_string(code, text, &length);
  if (found == error_class && strstr(text, function) != NULL && strstr(text, part) != NULL) return;
  ++failures;
  fprintf(stderr, "%s:%d: class %d, needed %d; message '%s', needed '%s' and '%s'\n", __FILE__,
          line, found, error_class, text, function, part);
}

#define EXPECT(error_class, part, function, ...)                                                   \
  expect(__LINE__, function(__VA_ARGS__), error_class, #function ":", part)

static int data[8], out;
static MPI_Request request;
static MPI_Comm comm;
static MPI_Datatype type;
static MPI_Group group;
static MPI_Op op;
static MPI_Errhandler errhandler;

static int* const none = NULL;
static void* volatile no_memory = NULL; /* volatile: the compiler must not warn or assume */

static void counts_and_buffers(void) {
  EXPECT(MPI_ERR_COUNT, "count is -1", MPI_Send, data, -1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  EXPECT(MPI_ERR_COUNT, "count is -4294967296", MPI_Send_c, data, -(1LL << 32), MPI_INT, 0, 0,
         MPI_COMM_WORLD);
  EXPECT(MPI_ERR_BUFFER, "buf is a null pointer, but 2 elements of 4 bytes", MPI_Send, no_memory, 2,
         MPI_INT, 0, 0, MPI_COMM_WORLD);
  EXPECT(MPI_ERR_BUFFER, "buf is MPI_IN_PLACE", MPI_Irecv, MPI_IN_PLACE, 1, MPI_INT, 0, 0,
         MPI_COMM_WORLD, &request);
  EXPECT(MPI_ERR_BUFFER, "buf is MPI_BUFFER_AUTOMATIC", MPI_Send, MPI_BUFFER_AUTOMATIC, 1, MPI_INT,
         0, 0, MPI_COMM_WORLD);
  EXPECT(MPI_ERR_COUNT, "sendcount is -2", MPI_Allgather, data, -2, MPI_INT, data + 4, 1, MPI_INT,
         MPI_COMM_WORLD);
  EXPECT(MPI_ERR_BUFFER, "recvbuf is MPI_IN_PLACE", MPI_Allreduce, data, MPI_IN_PLACE, 1, MPI_INT,
         MPI_SUM, MPI_COMM_WORLD);
  const int negative[1] = {-5}, zero[1] = {0};
  EXPECT(MPI_ERR_COUNT, "recvcounts[0] is -5", MPI_Allgatherv, data, 1, MPI_INT, data + 4, negative,
         zero, MPI_INT, MPI_COMM_WORLD);
  EXPECT(MPI_ERR_ARG, "displs is a null pointer", MPI_Allgatherv, data, 1, MPI_INT, data + 4, zero,
         none, MPI_INT, MPI_COMM_WORLD);
  EXPECT(MPI_ERR_SIZE, "size is -8", MPI_Alloc_mem, -8, MPI_INFO_NULL, &out);
}

static void ranks_and_tags(void) {
  EXPECT(MPI_ERR_RANK, "dest is 7, communicator MPI_COMM_WORLD has ranks 0 to 0 (or MPI_PROC_NULL)",
         MPI_Send, data, 1, MPI_INT, 7, 0, MPI_COMM_WORLD);
  EXPECT(MPI_ERR_RANK, "dest is -1", MPI_Isend, data, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD,
         &request);
  EXPECT(MPI_ERR_RANK, "source is 1", MPI_Recv, data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD,
         MPI_STATUS_IGNORE);
  EXPECT(MPI_ERR_TAG, "tag is -1", MPI_Send, data, 1, MPI_INT, 0, -1, MPI_COMM_WORLD);
  EXPECT(MPI_ERR_TAG, "tag is -2", MPI_Send, data, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD);
  EXPECT(MPI_ERR_TAG, "recvtag is -9", MPI_Sendrecv, data, 1, MPI_INT, 0, 0, data + 1, 1, MPI_INT,
         0, -9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT(MPI_ERR_ROOT, "root is 3", MPI_Bcast, data, 1, MPI_INT, 3, MPI_COMM_WORLD);
  EXPECT(MPI_ERR_ROOT, "root is -4", MPI_Reduce, data, data + 1, 1, MPI_INT, MPI_SUM, MPI_ROOT,
         MPI_COMM_WORLD);
}

static void handles(void) {
  EXPECT(MPI_ERR_COMM, "comm is MPI_COMM_NULL", MPI_Send, data, 1, MPI_INT, 0, 0, MPI_COMM_NULL);
  EXPECT(MPI_ERR_COMM, "which is no communicator", MPI_Comm_size, (MPI_Comm)MPI_INT, &out);
  EXPECT(MPI_ERR_TYPE, "datatype is MPI_DATATYPE_NULL", MPI_Send, data, 1, MPI_DATATYPE_NULL, 0, 0,
         MPI_COMM_WORLD);
  MPI_Type_contiguous(3, MPI_INT, &type);
  EXPECT(MPI_ERR_TYPE, "not committed; call MPI_Type_commit first", MPI_Send, data, 1, type, 0, 0,
         MPI_COMM_WORLD);
  MPI_Type_free(&type);
  EXPECT(MPI_ERR_TYPE, "oldtype is MPI_DATATYPE_NULL", MPI_Type_contiguous, 1, type, &type);
  EXPECT(MPI_ERR_OP, "op is MPI_OP_NULL", MPI_Allreduce, data, data + 1, 1, MPI_INT, MPI_OP_NULL,
         MPI_COMM_WORLD);
  EXPECT(MPI_ERR_GROUP, "group is MPI_GROUP_NULL", MPI_Group_size, MPI_GROUP_NULL, &out);
  EXPECT(MPI_ERR_INFO, "info is MPI_INFO_NULL", MPI_Info_set, MPI_INFO_NULL, "a", "b");
  EXPECT(MPI_ERR_ERRHANDLER, "errhandler is MPI_ERRHANDLER_NULL", MPI_Comm_set_errhandler,
         MPI_COMM_WORLD, MPI_ERRHANDLER_NULL);
  request = (MPI_Request)MPI_SUM;
  EXPECT(MPI_ERR_REQUEST, "which is no request", MPI_Wait, &request, MPI_STATUS_IGNORE);
  EXPECT(MPI_ERR_KEYVAL, "", MPI_Comm_set_attr, MPI_COMM_WORLD, 12345, data);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm freed = comm;
  MPI_Comm_free(&comm);
  EXPECT(MPI_ERR_COMM, "freed", MPI_Comm_rank, freed, &out);
}

static void addresses(void) {
  EXPECT(MPI_ERR_ARG, "size is a null pointer", MPI_Comm_size, MPI_COMM_WORLD, none);
  EXPECT(MPI_ERR_ARG, "newtype is a null pointer", MPI_Type_contiguous, 1, MPI_INT, no_memory);
  EXPECT(MPI_ERR_ARG, "request is a null pointer", MPI_Isend, data, 1, MPI_INT, 0, 0,
         MPI_COMM_WORLD, no_memory);
  EXPECT(MPI_ERR_REQUEST, "array_of_requests is a null pointer", MPI_Waitall, 2, no_memory,
         MPI_STATUSES_IGNORE);
  EXPECT(MPI_ERR_COUNT, "count is -1", MPI_Waitall, -1, &request, MPI_STATUSES_IGNORE);
  EXPECT(MPI_ERR_ARG, "comm_name is a null pointer", MPI_Comm_set_name, MPI_COMM_WORLD, no_memory);
  EXPECT(MPI_ERR_ARG, "user_fn is a null pointer", MPI_Op_create, NULL, 1, &op);
  EXPECT(MPI_ERR_ARG, "comm_errhandler_fn is a null pointer", MPI_Comm_create_errhandler, NULL,
         &errhandler);
  EXPECT(MPI_ERR_ARG, "n is -1", MPI_Group_incl, MPI_GROUP_EMPTY, -1, data, &group);
  EXPECT(MPI_ERR_ARG, "ranks is a null pointer", MPI_Group_incl, MPI_GROUP_EMPTY, 2, none, &group);
}

static void types(void) {
  const int lengths[2] = {1, -3}, displacements[2] = {0, 1};
  const MPI_Aint bytes[2] = {0, 8};
  const MPI_Datatype parts[2] = {MPI_INT, MPI_DATATYPE_NULL};
  const MPI_Count large[1] = {-1};
  EXPECT(MPI_ERR_COUNT, "blocklength is -1", MPI_Type_vector, 1, -1, 2, MPI_INT, &type);
  EXPECT(MPI_ERR_COUNT, "array_of_blocklengths[1] is -3", MPI_Type_indexed, 2, lengths,
         displacements, MPI_INT, &type);
  EXPECT(MPI_ERR_COUNT, "array_of_blocklengths[0] is -1", MPI_Type_indexed_c, 1, large, large,
         MPI_INT, &type);
  EXPECT(MPI_ERR_TYPE, "array_of_types[1] is MPI_DATATYPE_NULL", MPI_Type_create_struct, 2,
         displacements, bytes, parts, &type);
  EXPECT(MPI_ERR_ARG, "array_of_displacements is a null pointer", MPI_Type_create_hindexed_block, 1,
         1, no_memory, MPI_INT, &type);
  EXPECT(MPI_ERR_ARG, "status is a null pointer", MPI_Get_count, no_memory, MPI_INT, &out);
  EXPECT(MPI_ERR_TYPE, "sendtypes[0] is MPI_DATATYPE_NULL", MPI_Alltoallw, data, displacements + 1,
         displacements, parts + 1, data + 4, displacements + 1, displacements, parts,
         MPI_COMM_WORLD);
}

/* What the standard calls not significant is not looked at. */
static void not_significant(void) {
  const int one = 1, zero = 0;
  const MPI_Datatype no_type = MPI_DATATYPE_NULL, integer = MPI_INT;
  int value = 5;
  if (MPI_Gather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, &value, 1, MPI_INT, 0, MPI_COMM_WORLD) ||
      MPI_Allgather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, &value, 1, MPI_INT, MPI_COMM_WORLD) ||
      MPI_Alltoallw(MPI_IN_PLACE, none, none, NULL, &value, &one, &zero, &integer,
                    MPI_COMM_WORLD) ||
      MPI_Alltoallw(no_memory, &zero, &zero, &no_type, no_memory, &zero, &zero, &no_type,
                    MPI_COMM_WORLD) ||
      MPI_Send(no_memory, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD) || value != 5) {
    ++failures;
    fprintf(stderr, "an argument that is not significant was refused\n");
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  counts_and_buffers();
  ranks_and_tags();
  handles();
  addresses();
  types();
  not_significant();
  MPI_Finalize();
  if (failures == 0) printf("every bad argument was refused as it should be\n");
  return failures != 0;
}
