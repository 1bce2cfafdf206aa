// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "check.h"

namespace check {

// One of the library's performance variables, by a handle of its own.
class Variable {
 public:
  Variable(const char* name, int kind) {
    int index = -1, count = 0, provided = 0;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_get_index(name, kind, &index));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_handle_alloc(session, index, nullptr, &handle, &count));
    CHECK_EQUAL(count, 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
  }
  unsigned long long read() const {
    unsigned long long value = 0;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
  }

  MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
};

// One that counts, from zero.
class Counter {
 public:
  explicit Counter(const char* name)
      : variable_(name, MPI_T_PVAR_CLASS_COUNTER), before_(variable_.read()) {}
  unsigned long long since() const { return variable_.read() - before_; }

 private:
  const Variable variable_;
  const unsigned long long before_;
};

} // namespace check
