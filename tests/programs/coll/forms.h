// SPDX-License-Identifier: BSD-3-Clause
// Runs one collective in one of its three forms, so that each test is written once.
#pragma once

#include "check.h"

enum class Form { blocking, nonblocking, persistent };
inline std::vector<Form> forms = {Form::blocking, Form::nonblocking, Form::persistent};

template <class Blocking, class Nonblocking, class Init>
void run_form(Form form, Blocking blocking, Nonblocking nonblocking, Init init) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (form) {
  case Form::blocking:
    OK(blocking());
    break;
  case Form::nonblocking:
    OK(nonblocking(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    break;
  case Form::persistent:
    OK(init(&request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
    break;
  }
}

// COLLECTIVE(form, Bcast, bcast, arguments...): MPI_Bcast, MPI_Ibcast or MPI_Bcast_init.
#define COLLECTIVE(form, name, lower_name, ...)                                                    \
  run_form(                                                                                        \
      form, [&] { return MPI_##name(__VA_ARGS__); },                                               \
      [&](MPI_Request* request) { return MPI_I##lower_name(__VA_ARGS__, request); },               \
      [&](MPI_Request* request) {                                                                  \
        return MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request);                             \
      })

// The same of the form with large counts: MPI_Bcast_c, MPI_Ibcast_c or MPI_Bcast_init_c.
#define LARGE(form, name, lower_name, ...)                                                         \
  run_form(                                                                                        \
      form, [&] { return MPI_##name##_c(__VA_ARGS__); },                                           \
      [&](MPI_Request* request) { return MPI_I##lower_name##_c(__VA_ARGS__, request); },           \
      [&](MPI_Request* request) {                                                                  \
        return MPI_##name##_init_c(__VA_ARGS__, MPI_INFO_NULL, request);                           \
      })

// The communicators on which a collective is tried: all ranks, all in reverse order, and a part. If
// light, each of them with one of the forms.
inline void on_communicators(const std::function<void(MPI_Comm, int rank, int size)>& test) {
  MPI_Comm comms[3];
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]));
  OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -check::rank, &comms[1]));
  OK(MPI_Comm_split(MPI_COMM_WORLD, check::rank % 3 == 2 ? MPI_UNDEFINED : 1, check::rank,
                    &comms[2]));
  const std::vector<Form> all_forms = forms;
  for (std::size_t i = 0; i < 3; ++i) {
    MPI_Comm& comm = comms[i];
    if (comm == MPI_COMM_NULL) continue;
    if (check::light()) forms = {all_forms[i]};
    int rank = 0, size = 0;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    test(comm, rank, size);
    OK(MPI_Comm_free(&comm));
  }
  forms = all_forms;
}

inline const std::vector<int> element_counts =
    check::sizes({0, 1, 3, 100, 1000, 2500, 9000, 40000, 300000});
