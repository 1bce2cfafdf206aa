/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's objects through the ABI: handles, integers for them, attributes, info, groups, operations.
 */
#include "check.h"

#include <string.h>

static int copies, deletions;

static int copy(MPI_Comm comm, int key, void* state, void* in, void* out, int* flag) {
  (void)comm, (void)key, (void)state;
  ++copies;
  *(void**)out = (char*)in + 1;
  *flag = 1;
  return MPI_SUCCESS;
}

static int delete (MPI_Comm comm, int key, void* value, void* state) {
  (void)comm, (void)key, (void)value, (void)state;
  ++deletions;
  return MPI_SUCCESS;
}

static void attributes(void) {
  char place[2];
  int key, flag, *tag_ub;
  void* value;
  MPI_Comm duplicate;
  MPI_Comm_create_keyval(copy, delete, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, place);
  MPI_Comm_dup(MPI_COMM_SELF, &duplicate);
  MPI_Comm_get_attr(duplicate, key, &value, &flag);
  CHECK(flag && value == place + 1 && copies == 1);
  MPI_Comm_free(&duplicate);
  CHECK(deletions == 1 && duplicate == MPI_COMM_NULL);
  MPI_Comm_delete_attr(MPI_COMM_SELF, key);
  CHECK(deletions == 2);
  MPI_Comm_free_keyval(&key);
  CHECK(key == MPI_KEYVAL_INVALID);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &flag);
  CHECK(flag && *tag_ub >= 32767);
}

static void integers(void) {
  MPI_Comm duplicate;
  CHECK(MPI_Comm_toint(MPI_COMM_WORLD) == 0x101 && MPI_Comm_fromint(0x101) == MPI_COMM_WORLD);
  CHECK(MPI_Type_toint(MPI_INT) == 0x209 && MPI_Type_fromint(0x209) == MPI_INT);
  CHECK(MPI_Op_fromint(MPI_Op_toint(MPI_SUM)) == MPI_SUM);
  CHECK(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_NULL)) == MPI_COMM_NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
  CHECK(MPI_Comm_fromint(MPI_Comm_toint(duplicate)) == duplicate);
  MPI_Comm_free(&duplicate);
}

static void info(void) {
  MPI_Info hints;
  char value[32];
  int length = sizeof value, flag, keys;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "colour", "green");
  MPI_Info_get_nkeys(hints, &keys);
  MPI_Info_get_string(hints, "colour", &length, value, &flag);
  CHECK(keys == 1 && flag && length == 6 && strcmp(value, "green") == 0);
  MPI_Info_free(&hints);
  CHECK(hints == MPI_INFO_NULL);
}

static void groups(int rank, int size) {
  MPI_Group world, reversed;
  MPI_Comm comm;
  int range[1][3] = {{size - 1, 0, -1}}, result, new_rank;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_range_incl(world, 1, range, &reversed);
  MPI_Group_compare(world, reversed, &result);
  CHECK(result == (size == 1 ? MPI_IDENT : MPI_SIMILAR));
  MPI_Comm_create(MPI_COMM_WORLD, reversed, &comm);
  MPI_Comm_rank(comm, &new_rank);
  CHECK(new_rank == size - 1 - rank);
  MPI_Comm_compare(MPI_COMM_WORLD, comm, &result);
  CHECK(result == MPI_SIMILAR);
  MPI_Comm_free(&comm);
  MPI_Group_free(&world);
  MPI_Group_free(&reversed);
}

static void keep_left(void* in, void* inout, int* len, MPI_Datatype* datatype) {
  CHECK(*datatype == MPI_INT);
  memcpy(inout, in, (size_t)*len * sizeof(int));
}

static void operations(int rank) {
  MPI_Op left;
  int first = -1, mine = rank + 40;
  MPI_Op_create(keep_left, 0, &left);
  MPI_Allreduce(&mine, &first, 1, MPI_INT, left, MPI_COMM_WORLD);
  CHECK(first == 40);
  MPI_Op_free(&left);
  CHECK(left == MPI_OP_NULL);
}

int main(int argc, char** argv) {
  int rank, size, version, subversion, major, minor;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_version(&version, &subversion);
  MPI_Abi_get_version(&major, &minor);
  CHECK(version == MPI_VERSION && subversion == MPI_SUBVERSION);
  CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
  attributes();
  integers();
  info();
  groups(rank, size);
  operations(rank);
  finish("objects");
  return 0;
}
