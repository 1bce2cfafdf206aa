// SPDX-License-Identifier: BSD-3-Clause
// What a function of MPICH's ABI needs to call that of the standard ABI: each argument is converted
// by an object that lives as long as the call, and whose end converts the result back. Results that
// the call leaves alone stay as they are.
#pragma once

#include "base/scratch.h"
#include "mpich/handles.h"
#include "mpich/meanings.h"
#include "mpich/status.h"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace macadam::mpich {

using base::Scratch;

// The error code of a call.
inline int code(int standard_code) {
  return ErrorCode::out(standard_code);
}

// --- Handles.

// No handle, and no address that a handle or a buffer may have.
template <class Handle>
Handle untouched() {
  return reinterpret_cast<Handle>(UINTPTR_MAX);
}

// The address of a new handle.
template <class Handle>
class Out {
 public:
  using Mpich = typename Of<Handle>::Mpich;
  explicit Out(Mpich* result) : result_(result) {}
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  ~Out() {
    if (result_ != nullptr && c_ != untouched<Handle>()) *result_ = of_mpich(c_);
  }
  operator Handle*() { return result_ == nullptr ? nullptr : &c_; }

 private:
  Mpich* result_;
  Handle c_ = untouched<Handle>();
};

// The address of a handle that the call may change, such as a request that completes.
template <class Handle>
class InOut {
 public:
  using Mpich = typename Of<Handle>::Mpich;
  explicit InOut(Mpich* changed) : changed_(changed) {
    if (changed_ == nullptr) return;
    before_ = c_ = handle<Handle>(*changed_);
    // That of a request does not go: its memory is the next request's, with the same number.
    if constexpr (!std::is_same_v<Handle, MPI_File> && !std::is_same_v<Handle, MPI_Request>) {
      if (!is_made(*changed_)) return;
      dying_.begin(before_);
      Known<Handle>::forget(static_cast<unsigned>(*changed_));
    }
  }
  InOut(const InOut&) = delete;
  InOut& operator=(const InOut&) = delete;
  ~InOut() {
    if (c_ != before_) *changed_ = of_mpich(c_);
  }
  operator Handle*() { return changed_ == nullptr ? nullptr : &c_; }

 private:
  Mpich* changed_;
  Handle c_{};
  Handle before_{};
  Dying dying_;
};

template <class Handle>
class InHandles {
 public:
  InHandles(const int* handles, std::int64_t length) : given_(handles), c_(given_ ? length : 0) {
    for (std::size_t i = 0; i < c_.size(); ++i)
      c_[i] = handle<Handle>(given_[i]);
  }
  operator const Handle*() { return given_ == nullptr ? nullptr : c_.data(); }

 private:
  const int* given_;
  Scratch<Handle> c_;
};

// An array of new handles, of which the call writes some.
template <class Handle>
class OutHandles {
 public:
  OutHandles(int* results, std::int64_t length) : results_(results), c_(results_ ? length : 0) {
    std::fill_n(c_.data(), c_.size(), untouched<Handle>());
  }
  OutHandles(const OutHandles&) = delete;
  OutHandles& operator=(const OutHandles&) = delete;
  ~OutHandles() {
    for (std::size_t i = 0; i < c_.size(); ++i)
      if (c_[i] != untouched<Handle>()) results_[i] = of_mpich(c_[i]);
  }
  operator Handle*() { return results_ == nullptr ? nullptr : c_.data(); }

 private:
  int* results_;
  Scratch<Handle> c_;
};

// A list of requests. The calls that complete some set those to null, and change no other.
class Requests {
 public:
  Requests(int* requests, std::int64_t length) : requests_(requests), c_(requests_ ? length : 0) {
    for (std::size_t i = 0; i < c_.size(); ++i)
      c_[i] = handle<MPI_Request>(requests_[i]);
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  ~Requests() {
    for (std::size_t i = 0; i < c_.size(); ++i)
      if (c_[i] == MPI_REQUEST_NULL) requests_[i] = of_mpich(MPI_REQUEST_NULL);
  }
  operator MPI_Request*() { return requests_ == nullptr ? nullptr : c_.data(); }

 private:
  int* requests_;
  Scratch<MPI_Request> c_;
};

// --- Numbers with a meaning.

template <class Meaning>
class OutNumber {
 public:
  explicit OutNumber(int* result) : result_(result) {}
  OutNumber(const OutNumber&) = delete;
  OutNumber& operator=(const OutNumber&) = delete;
  ~OutNumber() {
    if (result_ != nullptr && c_ != INT_MIN) *result_ = Meaning::out(c_);
  }
  operator int*() { return result_ == nullptr ? nullptr : &c_; }

 private:
  int* result_;
  int c_ = INT_MIN;
};

template <class Meaning>
class InOutNumber {
 public:
  explicit InOutNumber(int* changed) : changed_(changed) {
    if (changed_ != nullptr) before_ = c_ = Meaning::in(*changed_);
  }
  InOutNumber(const InOutNumber&) = delete;
  InOutNumber& operator=(const InOutNumber&) = delete;
  ~InOutNumber() {
    if (c_ != before_) *changed_ = Meaning::out(c_);
  }
  operator int*() { return changed_ == nullptr ? nullptr : &c_; }

 private:
  int* changed_;
  int c_ = 0;
  int before_ = 0;
};

template <class Meaning>
class InNumbers {
 public:
  InNumbers(const int* numbers, std::int64_t length) : given_(numbers), c_(given_ ? length : 0) {
    for (std::size_t i = 0; i < c_.size(); ++i)
      c_[i] = Meaning::in(given_[i]);
  }
  operator const int*() { return given_ == nullptr ? nullptr : c_.data(); }

 private:
  const int* given_;
  Scratch<int> c_;
};

template <class Meaning>
class OutNumbers {
 public:
  OutNumbers(int* results, std::int64_t length) : results_(results), c_(results_ ? length : 0) {
    std::fill_n(c_.data(), c_.size(), INT_MIN);
  }
  OutNumbers(const OutNumbers&) = delete;
  OutNumbers& operator=(const OutNumbers&) = delete;
  ~OutNumbers() {
    for (std::size_t i = 0; i < c_.size(); ++i)
      if (c_[i] != INT_MIN) results_[i] = Meaning::out(c_[i]);
  }
  operator int*() { return results_ == nullptr ? nullptr : c_.data(); }

 private:
  int* results_;
  Scratch<int> c_;
};

// --- Statuses.

MPI_Status standard_status(const Status& status);
Status mpich_status(const MPI_Status& status);

inline bool is_ignored(const Status* status) {
  return status == nullptr || status == status_ignore;
}

class InStatus {
 public:
  explicit InStatus(const Status* given) : given_(given) {
    if (given_ != nullptr) c_ = standard_status(*given_);
  }
  operator const MPI_Status*() { return given_ == nullptr ? nullptr : &c_; }

 private:
  const Status* given_;
  MPI_Status c_;
};

class InOutStatus {
 public:
  explicit InOutStatus(Status* changed) : changed_(changed) {
    if (!is_ignored(changed_)) c_ = standard_status(*changed_);
  }
  InOutStatus(const InOutStatus&) = delete;
  InOutStatus& operator=(const InOutStatus&) = delete;
  ~InOutStatus() {
    if (!is_ignored(changed_)) *changed_ = mpich_status(c_);
  }
  operator MPI_Status*() { return is_ignored(changed_) ? MPI_STATUS_IGNORE : &c_; }

 private:
  Status* changed_;
  MPI_Status c_;
};

// A status of which no word is written yet; and what a call has written, which is MPI_ERROR, or all
// but that, or both.
MPI_Status untouched_status();
void write_status(Status& mpich, const MPI_Status& status);

class OutStatus {
 public:
  explicit OutStatus(Status* result) : result_(result) {
    if (!is_ignored(result_)) c_ = untouched_status();
  }
  OutStatus(const OutStatus&) = delete;
  OutStatus& operator=(const OutStatus&) = delete;
  ~OutStatus() {
    if (!is_ignored(result_)) write_status(*result_, c_);
  }
  operator MPI_Status*() { return is_ignored(result_) ? MPI_STATUS_IGNORE : &c_; }

 private:
  Status* result_;
  MPI_Status c_;
};

class Statuses {
 public:
  Statuses(Status* results, std::int64_t length)
      : results_(results), c_(is_ignored(results) ? 0 : length) {
    std::fill_n(c_.data(), c_.size(), untouched_status());
  }
  Statuses(const Statuses&) = delete;
  Statuses& operator=(const Statuses&) = delete;
  ~Statuses() {
    for (std::size_t i = 0; i < c_.size(); ++i)
      write_status(results_[i], c_[i]);
  }
  operator MPI_Status*() { return is_ignored(results_) ? MPI_STATUSES_IGNORE : c_.data(); }

 private:
  Status* results_;
  Scratch<MPI_Status> c_;
};

// --- Addresses, of which some have a meaning of their own.

inline void* buffer_address(void* mpich) {
  const auto value = reinterpret_cast<std::intptr_t>(mpich);
  return value == -1 ? MPI_IN_PLACE : value == -2 ? MPI_BUFFER_AUTOMATIC : mpich;
}
inline const void* buffer_address(const void* mpich) {
  return buffer_address(const_cast<void*>(mpich));
}

// The address of a buffer's address.
class OutAddress {
 public:
  explicit OutAddress(void* result) : result_(static_cast<void**>(result)) {}
  OutAddress(const OutAddress&) = delete;
  OutAddress& operator=(const OutAddress&) = delete;
  ~OutAddress() {
    if (result_ != nullptr && c_ != untouched<void*>())
      *result_ = c_ == MPI_BUFFER_AUTOMATIC ? reinterpret_cast<void*>(std::intptr_t{-2}) : c_;
  }
  operator void*() { return result_ == nullptr ? nullptr : &c_; }

 private:
  void** result_;
  void* c_ = untouched<void*>();
};

// --- Lengths of arrays.

// None beside MPI_IN_PLACE, where the array is not looked at (and may not be there).
inline int significant(const void* buffer, int elements) {
  return buffer_address(buffer) == MPI_IN_PLACE ? 0 : elements;
}
int peers(int comm);      // ranks that a collective addresses
int dimensions(int comm); // of the Cartesian topology
int in_neighbors(int comm);
int out_neighbors(int comm);

// --- A string which may be longer in the standard ABI, with its length if the call tells it.
template <int standard_longest, int mpich_longest>
class Shortened {
 public:
  explicit Shortened(char* result, int* length = nullptr) : result_(result), length_(length) {}
  Shortened(const Shortened&) = delete;
  Shortened& operator=(const Shortened&) = delete;
  ~Shortened() {
    if (result_ == nullptr || c_[0] == untouched) return;
    const std::size_t used = strnlen(c_, mpich_longest - 1);
    std::memcpy(result_, c_, used);
    result_[used] = '\0';
    if (length_ != nullptr) *length_ = static_cast<int>(used);
  }
  operator char*() { return result_ == nullptr ? nullptr : c_; }

 private:
  static constexpr char untouched = '\x01';
  char* result_;
  int* length_;
  char c_[standard_longest] = {untouched};
};

} // namespace macadam::mpich
