// SPDX-License-Identifier: BSD-3-Clause
// Objects that take the memory of others before them, by the thousand, while callbacks still speak
// of those: each handle stays the one it was. What is left alone in a status, and window calls that
// go to nobody.
#include "check.h"

#include <deque>

namespace {

// Speaks of the object that is being freed, as programs do.
int comm_deleted(MPI_Comm comm, int key, void*, void*) {
  int size = 0, flag = 0;
  void* value = nullptr;
  OK(MPI_Comm_size(comm, &size));
  CHECK_EQUAL(size, 1);
  OK(MPI_Comm_get_attr(comm, key, &value, &flag));
  return MPI_SUCCESS;
}

int type_deleted(MPI_Datatype type, int, void*, void*) {
  int size = 0;
  OK(MPI_Type_size(type, &size));
  CHECK_EQUAL(size, static_cast<int>(3 * sizeof(int)));
  return MPI_SUCCESS;
}

// The number of a live one is in its attribute.
int number_of(MPI_Comm comm, int key) {
  void* value = nullptr;
  int flag = 0;
  OK(MPI_Comm_get_attr(comm, key, &value, &flag));
  CHECK(flag);
  return *static_cast<int*>(value);
}

void communicators() {
  const int rounds = check::times(3000, 1500);
  int key = 0;
  std::deque<int> numbers;        // that stay where they are
  std::deque<MPI_Comm> live, old; // a few at a time; from the first rounds to the end
  constexpr int oldest = 20;
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, comm_deleted, &key, nullptr));
  for (int i = 0; i < rounds; ++i) {
    MPI_Comm gone, kept;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &gone));
    numbers.push_back(-1);
    OK(MPI_Comm_set_attr(gone, key, &numbers.back()));
    OK(MPI_Comm_free(&gone));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &kept)); // most likely where that was
    numbers.push_back(i);
    OK(MPI_Comm_set_attr(kept, key, &numbers.back()));
    (i < oldest ? old : live).push_back(kept);
    for (const int age : {0, 1, 7, 30}) {
      if (age >= static_cast<int>(live.size())) continue;
      CHECK_EQUAL(number_of(live[live.size() - 1 - static_cast<std::size_t>(age)], key), i - age);
    }
    for (int j = 0; i % 100 == 0 && j < static_cast<int>(old.size()); ++j)
      CHECK_EQUAL(number_of(old[static_cast<std::size_t>(j)], key), j);
    if (live.size() < 40) continue;
    OK(MPI_Comm_free(&live.front()));
    live.pop_front();
  }
  for (std::deque<MPI_Comm>* those : {&old, &live})
    for (MPI_Comm& comm : *those)
      OK(MPI_Comm_free(&comm));
  OK(MPI_Comm_free_keyval(&key));
}

void datatypes() {
  int key = 0, value = 0;
  OK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, type_deleted, &key, nullptr));
  for (int i = 0; i < check::times(5000, 2500); ++i) {
    MPI_Datatype gone, kept;
    OK(MPI_Type_contiguous(3, MPI_INT, &gone));
    OK(MPI_Type_set_attr(gone, key, &value));
    OK(MPI_Type_free(&gone));
    OK(MPI_Type_contiguous(3, MPI_INT, &kept));
    int size = 0;
    OK(MPI_Type_size(kept, &size));
    CHECK_EQUAL(size, static_cast<int>(3 * sizeof(int)));
    OK(MPI_Type_free(&kept));
  }
  OK(MPI_Type_free_keyval(&key));
}

void statuses() {
  int out = 3, in = 0;
  MPI_Status status;
  status.MPI_ERROR = 12345; // of the program's own
  OK(MPI_Sendrecv(&out, 1, MPI_INT, 0, 5, &in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &status));
  CHECK_EQUAL(status.MPI_ERROR, 12345);
  CHECK_EQUAL(status.MPI_SOURCE, 0);
  CHECK_EQUAL(status.MPI_TAG, 5);
}

void windows() {
  int value = 7, nothing = 0;
  MPI_Win win;
  OK(MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win));
  OK(MPI_Put(&nothing, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
  OK(MPI_Win_flush(MPI_PROC_NULL, win));
  OK(MPI_Win_flush_local(MPI_PROC_NULL, win));
  OK(MPI_Win_unlock(MPI_PROC_NULL, win));
  OK(MPI_Win_free(&win));
  CHECK_EQUAL(value, 7);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"communicators", communicators},
                     {"datatypes", datatypes},
                     {"statuses", statuses},
                     {"windows", windows}});
}
