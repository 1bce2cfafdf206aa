// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "check.h"

namespace check {

// One of the library's performance variables, counting from zero.
class Counter {
 public:
  explicit Counter(const char* name) {
    int index = -1, count = 0, provided = 0;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_session_create(&session_));
    OK(MPI_T_pvar_handle_alloc(session_, index, nullptr, &handle_, &count));
    CHECK_EQUAL(count, 1);
    before_ = read();
  }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter() {
    MPI_T_pvar_handle_free(session_, &handle_);
    MPI_T_pvar_session_free(&session_);
    MPI_T_finalize();
  }
  unsigned long long since() const { return read() - before_; }

 private:
  unsigned long long read() const {
    unsigned long long value = 0;
    OK(MPI_T_pvar_read(session_, handle_, &value));
    return value;
  }
  MPI_T_pvar_session session_ = MPI_T_PVAR_SESSION_NULL;
  MPI_T_pvar_handle handle_ = MPI_T_PVAR_HANDLE_NULL;
  unsigned long long before_ = 0;
};

} // namespace check
