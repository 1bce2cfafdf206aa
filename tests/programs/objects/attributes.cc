// SPDX-License-Identifier: BSD-3-Clause
// Attributes of communicators and datatypes: callbacks on copy and delete, predefined ones.
#include "check.h"

namespace {

struct Counts {
  int copies = 0, deletes = 0;
};

int copy_plus_one(MPI_Comm, int, void* state, void* in, void* out, int* flag) {
  static_cast<Counts*>(state)->copies++;
  *static_cast<void**>(out) = static_cast<char*>(in) + 1;
  *flag = 1;
  return MPI_SUCCESS;
}

int do_not_copy(MPI_Comm, int, void* state, void*, void*, int* flag) {
  static_cast<Counts*>(state)->copies++;
  *flag = 0;
  return MPI_SUCCESS;
}

int refuse_copy(MPI_Comm, int, void*, void*, void*, int*) {
  return MPI_ERR_OTHER;
}

int count_delete(MPI_Comm, int, void*, void* state) {
  static_cast<Counts*>(state)->deletes++;
  return MPI_SUCCESS;
}

int refuse_delete(MPI_Comm, int, void*, void*) {
  return MPI_ERR_OTHER;
}

char block[100]; // attribute values are addresses in here

// The value, or null where the attribute is not set.
char* get(MPI_Comm comm, int key) {
  char* value = nullptr;
  int flag = -1;
  OK(MPI_Comm_get_attr(comm, key, &value, &flag));
  return flag ? value : nullptr;
}

void copied_and_deleted() {
  Counts counts;
  int key = MPI_KEYVAL_INVALID;
  OK(MPI_Comm_create_keyval(copy_plus_one, count_delete, &key, &counts));
  CHECK(key != MPI_KEYVAL_INVALID);
  MPI_Comm first, second, third;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &first));
  CHECK(get(first, key) == nullptr);
  OK(MPI_Comm_set_attr(first, key, block));
  CHECK(get(first, key) == block);
  OK(MPI_Comm_dup(first, &second));
  CHECK_EQUAL(counts.copies, 1);
  CHECK(get(second, key) == block + 1);
  OK(MPI_Comm_split(first, 0, 0, &third)); // only dup copies attributes
  CHECK(get(third, key) == nullptr);
  OK(MPI_Comm_set_attr(first, key, block + 50)); // replaces: the old value is deleted
  CHECK_EQUAL(counts.deletes, 1);
  OK(MPI_Comm_delete_attr(first, key));
  CHECK_EQUAL(counts.deletes, 2);
  CHECK(get(first, key) == nullptr);
  // The key lives on where it is in use.
  const int kept = key;
  OK(MPI_Comm_free_keyval(&key));
  CHECK_EQUAL(key, MPI_KEYVAL_INVALID);
  CHECK(get(second, kept) == block + 1);
  OK(MPI_Comm_free(&second));
  CHECK_EQUAL(counts.deletes, 3);
  OK(MPI_Comm_free(&first));
  OK(MPI_Comm_free(&third));
  CHECK_EQUAL(counts.deletes, 3);
}

void predefined_callbacks() {
  int null_key, dup_key;
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &null_key, nullptr));
  OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &dup_key, nullptr));
  MPI_Comm first, second;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &first));
  OK(MPI_Comm_set_attr(first, null_key, block + 3));
  OK(MPI_Comm_set_attr(first, dup_key, block + 4));
  OK(MPI_Comm_dup(first, &second));
  CHECK(get(second, null_key) == nullptr);
  CHECK(get(second, dup_key) == block + 4);
  OK(MPI_Comm_free(&first));
  OK(MPI_Comm_free(&second));
  OK(MPI_Comm_free_keyval(&null_key));
  OK(MPI_Comm_free_keyval(&dup_key));
}

void copy_may_say_no() {
  Counts counts;
  int key;
  OK(MPI_Comm_create_keyval(do_not_copy, count_delete, &key, &counts));
  MPI_Comm first, second;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &first));
  OK(MPI_Comm_set_attr(first, key, block));
  OK(MPI_Comm_dup(first, &second));
  CHECK_EQUAL(counts.copies, 1);
  CHECK(get(second, key) == nullptr);
  OK(MPI_Comm_free(&second));
  CHECK_EQUAL(counts.deletes, 0);
  OK(MPI_Comm_free(&first));
  CHECK_EQUAL(counts.deletes, 1);
  OK(MPI_Comm_free_keyval(&key));
}

// A callback's error is the call's error.
void callbacks_that_fail() {
  int copy_key, delete_key;
  OK(MPI_Comm_create_keyval(refuse_copy, MPI_COMM_NULL_DELETE_FN, &copy_key, nullptr));
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse_delete, &delete_key, nullptr));
  MPI_Comm comm, copy = MPI_COMM_NULL;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_attr(comm, copy_key, block));
  CHECK(MPI_Comm_dup(comm, &copy) != MPI_SUCCESS);
  OK(MPI_Comm_delete_attr(comm, copy_key));
  OK(MPI_Comm_set_attr(comm, delete_key, block + 1));
  CHECK(MPI_Comm_delete_attr(comm, delete_key) != MPI_SUCCESS);
  CHECK(MPI_Comm_set_attr(comm, delete_key, block + 2) != MPI_SUCCESS);
  CHECK(get(comm, delete_key) == block + 1); // it is still there
  OK(MPI_Comm_free_keyval(&copy_key));
  OK(MPI_Comm_free_keyval(&delete_key));
  // The communicator cannot be freed by contract of its attribute; it is left to Finalize.
}

// While the old value is deleted its callback finds it, as if it was deleted first; all else sees
// the new one.
int find_newer(MPI_Comm comm, int key, void* old, void*) {
  if (old != block + 1) return MPI_SUCCESS;
  CHECK(get(comm, key) == block + 1);
  MPI_Comm second;
  OK(MPI_Comm_dup(comm, &second));
  CHECK(get(second, key) == block + 2);
  OK(MPI_Comm_free(&second));
  return MPI_SUCCESS;
}

void replaced() {
  int key;
  OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, find_newer, &key, nullptr));
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Comm_set_attr(comm, key, block + 1));
  OK(MPI_Comm_set_attr(comm, key, block + 2));
  CHECK(get(comm, key) == block + 2);
  OK(MPI_Comm_free(&comm));
  OK(MPI_Comm_free_keyval(&key));
}

std::vector<int> deleted_order;

int note_delete(MPI_Comm, int, void* value, void*) {
  deleted_order.push_back(static_cast<int>(static_cast<char*>(value) - block));
  return MPI_SUCCESS;
}

// COMM_SELF's attributes go at Finalize in reverse order: see env/finalize.cc. Here: a dup's.
void several_keys() {
  int keys[5];
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  for (int i = 0; i < 5; ++i) {
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_delete, &keys[i], nullptr));
    OK(MPI_Comm_set_attr(comm, keys[i], block + i));
  }
  for (int i = 0; i < 5; ++i)
    CHECK(get(comm, keys[i]) == block + i);
  OK(MPI_Comm_free(&comm));
  CHECK_EQUAL(deleted_order.size(), 5u);
  for (int& key : keys)
    OK(MPI_Comm_free_keyval(&key));
}

int* predefined(int key) {
  int* value = nullptr;
  int flag = 0;
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
  return flag ? value : nullptr;
}

void predefined_attributes() {
  CHECK(predefined(MPI_TAG_UB) != nullptr && *predefined(MPI_TAG_UB) >= 32767);
  CHECK(predefined(MPI_WTIME_IS_GLOBAL) != nullptr);
  CHECK(predefined(MPI_IO) != nullptr);
  CHECK(predefined(MPI_LASTUSEDCODE) != nullptr);
  CHECK(*predefined(MPI_LASTUSEDCODE) >= MPI_ERR_LASTCODE);
  if (int* universe = predefined(MPI_UNIVERSE_SIZE)) CHECK(*universe >= check::size);
}

int type_copy(MPI_Datatype, int, void* state, void* in, void* out, int* flag) {
  static_cast<Counts*>(state)->copies++;
  *static_cast<void**>(out) = in;
  *flag = 1;
  return MPI_SUCCESS;
}

int type_delete(MPI_Datatype, int, void*, void* state) {
  static_cast<Counts*>(state)->deletes++;
  return MPI_SUCCESS;
}

void of_datatypes() {
  Counts counts;
  int key;
  OK(MPI_Type_create_keyval(type_copy, type_delete, &key, &counts));
  MPI_Datatype first, second;
  OK(MPI_Type_contiguous(3, MPI_INT, &first));
  OK(MPI_Type_set_attr(first, key, block + 9));
  OK(MPI_Type_dup(first, &second));
  char* value = nullptr;
  int flag = 0;
  OK(MPI_Type_get_attr(second, key, &value, &flag));
  CHECK(flag && value == block + 9);
  OK(MPI_Type_delete_attr(second, key));
  OK(MPI_Type_get_attr(second, key, &value, &flag));
  CHECK(!flag);
  OK(MPI_Type_free(&first));
  OK(MPI_Type_free(&second));
  CHECK_EQUAL(counts.copies, 1);
  CHECK_EQUAL(counts.deletes, 2);
  OK(MPI_Type_free_keyval(&key));
}

// A type whose handle was freed lives on in what was made of it, and MPI_Type_get_contents gives
// handles of it again: each time as of a new type. Others end attributes with the type's memory.
void of_datatypes_inside_others() {
  if (!check::is_macadam()) return;
  Counts counts;
  int key;
  OK(MPI_Type_create_keyval(type_copy, type_delete, &key, &counts));
  MPI_Datatype inner, outer;
  OK(MPI_Type_contiguous(3, MPI_INT, &inner));
  OK(MPI_Type_contiguous(2, inner, &outer));
  OK(MPI_Type_set_attr(inner, key, block));
  OK(MPI_Type_free(&inner));
  CHECK_EQUAL(counts.deletes, 1);
  char* value = nullptr;
  int two = 0, flag = -1;
  MPI_Aint no_address = 0;
  for (int again = 0; again < 2; ++again) {
    MPI_Datatype first, second;
    OK(MPI_Type_get_contents(outer, 1, 0, 1, &two, &no_address, &first));
    OK(MPI_Type_get_attr(first, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Type_set_attr(first, key, block + again));
    OK(MPI_Type_get_contents(outer, 1, 0, 1, &two, &no_address, &second));
    OK(MPI_Type_free(&first));
    CHECK_EQUAL(counts.deletes, 1 + again); // there is a handle left
    OK(MPI_Type_get_attr(second, key, &value, &flag));
    CHECK(flag && value == block + again);
    OK(MPI_Type_free(&second));
    CHECK_EQUAL(counts.deletes, 2 + again);
  }
  OK(MPI_Type_free(&outer));
  CHECK_EQUAL(counts.deletes, 3);
  OK(MPI_Type_free_keyval(&key));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"copied_and_deleted", copied_and_deleted},
                     {"replaced", replaced},
                     {"predefined_callbacks", predefined_callbacks},
                     {"copy_may_say_no", copy_may_say_no},
                     {"callbacks_that_fail", callbacks_that_fail},
                     {"several_keys", several_keys},
                     {"predefined_attributes", predefined_attributes},
                     {"of_datatypes", of_datatypes},
                     {"of_datatypes_inside_others", of_datatypes_inside_others}});
}
