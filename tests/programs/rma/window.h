// SPDX-License-Identifier: BSD-3-Clause
// What the programs about windows share.
#pragma once

#include "one_node.h"

#include <cstddef>
#include <vector>

namespace rma {

enum class Kind { created, allocated, shared };

inline const char* name(Kind kind) {
  return kind == Kind::created ? "created" : kind == Kind::allocated ? "allocated" : "shared";
}

// A window of `count` elements of T on every rank of MPI_COMM_WORLD, zero at first; errors are
// returned. Where ranks share no memory, a shared one is skipped by for_each_kind().
template <class T>
class Window {
 public:
  Window(Kind kind, std::size_t count, MPI_Info info = MPI_INFO_NULL) : count_(count) {
    const auto bytes = static_cast<MPI_Aint>(count * sizeof(T));
    const int unit = sizeof(T);
    switch (kind) {
    case Kind::created:
      own_.resize(count);
      data_ = own_.data();
      OK(MPI_Win_create(data_, bytes, unit, info, MPI_COMM_WORLD, &win_));
      break;
    case Kind::allocated:
      OK(MPI_Win_allocate(bytes, unit, info, MPI_COMM_WORLD, &data_, &win_));
      break;
    case Kind::shared:
      OK(MPI_Win_allocate_shared(bytes, unit, info, MPI_COMM_WORLD, &data_, &win_));
      break;
    }
    for (std::size_t i = 0; i < count; ++i)
      data_[i] = T();
    OK(MPI_Win_set_errhandler(win_, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() {
    OK(MPI_Win_free(&win_));
    CHECK(win_ == MPI_WIN_NULL);
  }

  operator MPI_Win() const { return win_; }
  [[nodiscard]] MPI_Win& handle() { return win_; }
  T& operator[](std::size_t i) { return data_[i]; }
  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  std::size_t count_;
  std::vector<T> own_;
  T* data_ = nullptr;
  MPI_Win win_ = MPI_WIN_NULL;
};

using check::one_node;

template <class Test>
void for_each_kind(Test&& test) {
  test(Kind::created);
  test(Kind::allocated);
  if (one_node()) test(Kind::shared);
}

inline int right() {
  return (check::rank + 1) % check::size;
}
inline int left() {
  return (check::rank + check::size - 1) % check::size;
}

} // namespace rma
