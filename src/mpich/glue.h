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

// --- What has another value in the other ABI: a handle, named by its type, or an int, by its
// meaning.

template <class What>
struct Conversion { // of an int
  using Mpich = int;
  using Standard = int;
  static constexpr Standard untouched = INT_MIN; // no result of any call
  static Standard in(Mpich value) { return What::in(value); }
  static Mpich out(Standard value) { return What::out(value); }
  static void may_go(Mpich, Standard, Dying&) {}
};

template <class Object>
struct Conversion<Object*> {
  using Standard = Object*;
  using Mpich = typename Of<Standard>::Mpich;
  // No handle, and no address that a handle may have.
  static inline const Standard untouched = reinterpret_cast<Standard>(UINTPTR_MAX);
  static Standard in(Mpich value) { return handle<Standard>(value); }
  static Mpich out(Standard value) { return of_mpich(value); }
  // The call may free the object. That of a request does not go: its memory is the next request's,
  // with the same number.
  static void may_go(Mpich value, Standard object, Dying& dying) {
    if constexpr (!std::is_same_v<Standard, MPI_File> && !std::is_same_v<Standard, MPI_Request>) {
      if (!is_made(value)) return;
      dying.begin(object);
      Known<Standard>::forget(static_cast<unsigned>(value));
    }
  }
};

// The address of a buffer, of which some have a meaning of their own.
template <>
struct Conversion<void*> {
  using Standard = void*;
  using Mpich = void*;
  static inline void* const untouched = reinterpret_cast<void*>(UINTPTR_MAX);
  static void* in(void* mpich) {
    const auto value = reinterpret_cast<std::intptr_t>(mpich);
    return value == -1 ? MPI_IN_PLACE : value == -2 ? MPI_BUFFER_AUTOMATIC : mpich;
  }
  static void* out(void* address) {
    return address == MPI_BUFFER_AUTOMATIC ? reinterpret_cast<void*>(std::intptr_t{-2}) : address;
  }
};

inline void* buffer_address(void* mpich) {
  return Conversion<void*>::in(mpich);
}
inline const void* buffer_address(const void* mpich) {
  return buffer_address(const_cast<void*>(mpich));
}

// The address of a result.
template <class What>
class Out {
  using C = Conversion<What>;

 public:
  explicit Out(typename C::Mpich* result) : result_(result) {}
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  ~Out() {
    if (result_ != nullptr && c_ != C::untouched) *result_ = C::out(c_);
  }
  operator typename C::Standard *() { return result_ == nullptr ? nullptr : &c_; }

 private:
  typename C::Mpich* result_;
  typename C::Standard c_ = C::untouched;
};

// The address of what the call may change, such as a request that completes.
template <class What>
class InOut {
  using C = Conversion<What>;

 public:
  explicit InOut(typename C::Mpich* changed) : changed_(changed) {
    if (changed_ == nullptr) return;
    before_ = c_ = C::in(*changed_);
    C::may_go(*changed_, before_, dying_);
  }
  InOut(const InOut&) = delete;
  InOut& operator=(const InOut&) = delete;
  ~InOut() {
    if (c_ != before_) *changed_ = C::out(c_);
  }
  operator typename C::Standard *() { return changed_ == nullptr ? nullptr : &c_; }

 private:
  typename C::Mpich* changed_;
  typename C::Standard c_{};
  typename C::Standard before_{};
  Dying dying_;
};

template <class What>
class InArray {
  using C = Conversion<What>;

 public:
  InArray(const int* given, std::int64_t length) : given_(given), c_(given_ ? length : 0) {
    for (std::size_t i = 0; i < c_.size(); ++i)
      c_[i] = C::in(given_[i]);
  }
  operator const typename C::Standard *() { return given_ == nullptr ? nullptr : c_.data(); }

 private:
  const int* given_;
  Scratch<typename C::Standard> c_;
};

// An array of results, of which the call writes some.
template <class What>
class OutArray {
  using C = Conversion<What>;

 public:
  OutArray(int* results, std::int64_t length) : results_(results), c_(results_ ? length : 0) {
    std::fill_n(c_.data(), c_.size(), C::untouched);
  }
  OutArray(const OutArray&) = delete;
  OutArray& operator=(const OutArray&) = delete;
  ~OutArray() {
    for (std::size_t i = 0; i < c_.size(); ++i)
      if (c_[i] != C::untouched) results_[i] = C::out(c_[i]);
  }
  operator typename C::Standard *() { return results_ == nullptr ? nullptr : c_.data(); }

 private:
  int* results_;
  Scratch<typename C::Standard> c_;
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

// --- Statuses.

MPI_Status standard_status(const Status& status);
// A status of which no word is written yet; and what a call has written, which is MPI_ERROR, or all
// but that, or both.
MPI_Status untouched_status();
void write_status(Status& mpich, const MPI_Status& status);

inline bool is_ignored(const Status* status) {
  return status == nullptr || status == status_ignore;
}

class InStatus {
 public:
  explicit InStatus(const Status* given) : given_(given) {
    if (!is_ignored(given_)) c_ = standard_status(*given_);
  }
  operator const MPI_Status*() { return is_ignored(given_) ? nullptr : &c_; }

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
    if (!is_ignored(changed_)) write_status(*changed_, c_);
  }
  operator MPI_Status*() { return is_ignored(changed_) ? MPI_STATUS_IGNORE : &c_; }

 private:
  Status* changed_;
  MPI_Status c_;
};

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
