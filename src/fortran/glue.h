// SPDX-License-Identifier: BSD-3-Clause
// What a procedure of MPI in Fortran needs to call the C function of the same name: each argument
// is converted by an object that lives as long as the call, and whose end converts the result back.
// Below is the standard ABI and nothing else, so that it may be any library's.
#pragma once

#include "base/scratch.h"
#include "fortran/callbacks.h"
#include "fortran/names.h"
#include "fortran/sentinels.h"

#include <ISO_Fortran_binding.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace macadam::fortran {

using base::Scratch;

// --- Handles: INTEGER in Fortran, with the values of MPI_Xxx_toint.

template <class Handle>
struct Integers;

// As the functions of C have it.
template <class Handle>
using InC = Handle;

#define MACADAM_HANDLE(Type, Functions, Null)                                                      \
  template <>                                                                                      \
  struct Integers<Type> {                                                                          \
    static Type from(Fint number) { return PMPI_##Functions##_fromint(number); }                   \
    static Fint to(Type handle) { return PMPI_##Functions##_toint(handle); }                       \
    static Type null() { return Null; }                                                            \
  };
MACADAM_HANDLE(MPI_Comm, Comm, MPI_COMM_NULL)
MACADAM_HANDLE(MPI_Datatype, Type, MPI_DATATYPE_NULL)
MACADAM_HANDLE(MPI_Errhandler, Errhandler, MPI_ERRHANDLER_NULL)
MACADAM_HANDLE(MPI_File, File, MPI_FILE_NULL)
MACADAM_HANDLE(MPI_Group, Group, MPI_GROUP_NULL)
MACADAM_HANDLE(MPI_Info, Info, MPI_INFO_NULL)
MACADAM_HANDLE(MPI_Message, Message, MPI_MESSAGE_NULL)
MACADAM_HANDLE(MPI_Op, Op, MPI_OP_NULL)
MACADAM_HANDLE(MPI_Request, Request, MPI_REQUEST_NULL)
MACADAM_HANDLE(MPI_Session, Session, MPI_SESSION_NULL)
MACADAM_HANDLE(MPI_Win, Win, MPI_WIN_NULL)
#undef MACADAM_HANDLE

// Predefined handles have the same value in all languages (MPI 5.0, section 20.4), so they need no
// call, neither way.
constexpr std::uintptr_t first_of_users = 4096;

template <class Handle>
Handle handle(const Fint* number) {
  if (*number >= 0 && static_cast<std::uintptr_t>(*number) < first_of_users)
    return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(*number));
  return Integers<Handle>::from(*number);
}

template <class Handle>
Fint number(Handle handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  return value < first_of_users ? static_cast<Fint>(value) : Integers<Handle>::to(handle);
}

// The same of keyvals: as C has them, and in the standard ABI.
inline int c_keyval(Fint keyval) {
  return keyval;
}
inline int standard_keyval(Fint keyval) {
  return keyval;
}

// What happens to requests, for the copies of sections that some of them have (section.h): a call
// has made one; has asked about one, which puts back what a complete one has received.
void request_is_new(Fint request);
void request_asked(Fint request);

// The copies of requests that a call may complete are its own while it lasts: as soon as one is
// complete, another thread may get a new request with the same integer.
class Taken {
 public:
  Taken(const Fint* requests, std::size_t length);
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken();
  // The requests are persistent ones, about to start.
  void start();
  // After the call, which has set to null what is complete and gone.
  void end(const MPI_Request* requests);

 private:
  struct One;
  std::vector<One> all_;
};

template <class Handle>
constexpr bool is_request = std::is_same_v<Handle, MPI_Request>;

// The address of a new handle. If the call fails, Fortran gets the null handle.
template <class Handle>
class Out {
 public:
  explicit Out(Fint* fortran) : fortran_(fortran) {}
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  ~Out() {
    *fortran_ = number(c_);
    if constexpr (is_request<Handle>) request_is_new(*fortran_);
  }
  operator Handle*() { return &c_; }

 private:
  Fint* fortran_;
  Handle c_ = Integers<Handle>::null();
};

// The address of a handle that the call may change.
template <class Handle>
class InOut {
 public:
  explicit InOut(Fint* fortran) : fortran_(fortran), c_(handle<Handle>(fortran)), before_(c_) {}
  InOut(const InOut&) = delete;
  InOut& operator=(const InOut&) = delete;
  ~InOut() {
    if (c_ != before_) *fortran_ = number(c_);
  }
  operator Handle*() { return &c_; }

 private:
  Fint* fortran_;
  Handle c_;
  Handle before_;
};

template <class Handle>
class In {
 public:
  In(const Fint* fortran, std::int64_t length) : c_(length) {
    for (std::size_t i = 0; i < c_.size(); ++i)
      c_[i] = handle<Handle>(fortran + i);
  }
  operator const Handle*() { return c_.data(); }

 private:
  Scratch<Handle> c_;
};

// A list of requests, which may complete.
template <class Handle>
class InOutHandles {
 public:
  InOutHandles(Fint* fortran, std::int64_t length)
      : fortran_(fortran), c_(length), taken_(fortran, c_.size()) {
    for (std::size_t i = 0; i < c_.size(); ++i)
      c_[i] = handle<Handle>(fortran + i);
  }
  InOutHandles(const InOutHandles&) = delete;
  InOutHandles& operator=(const InOutHandles&) = delete;
  ~InOutHandles() {
    static_assert(is_request<Handle>);
    taken_.end(c_.data());
    // The calls set requests that are complete to null, and change no other.
    const Fint null = number(MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < c_.size(); ++i)
      if (c_[i] == MPI_REQUEST_NULL) fortran_[i] = null;
  }
  operator Handle*() { return c_.data(); }

 protected:
  Taken& taken() { return taken_; }

 private:
  Fint* fortran_;
  Scratch<Handle> c_;
  Taken taken_;
};

// One of them.
template <>
class InOut<MPI_Request> : public InOutHandles<MPI_Request> {
 public:
  explicit InOut(Fint* request) : InOutHandles(request, 1) {}
};

// Persistent requests that the call starts.
class AllStarted : public InOutHandles<MPI_Request> {
 public:
  AllStarted(Fint* requests, std::int64_t length) : InOutHandles(requests, length) {
    taken().start();
  }
};
class Started : public AllStarted {
 public:
  explicit Started(Fint* request) : AllStarted(request, 1) {}
};

// Requests that the call only asks about: what is kept for one that is complete must be there.
class Asked {
 public:
  explicit Asked(const Fint* request) : request_(*request) {}
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  ~Asked() { request_asked(request_); }
  operator MPI_Request() const { return handle<MPI_Request>(&request_); }

 private:
  Fint request_;
};
class AllAsked : public In<MPI_Request> {
 public:
  AllAsked(const Fint* requests, int length)
      : In(requests, length), requests_(requests), length_(length) {}
  AllAsked(const AllAsked&) = delete;
  AllAsked& operator=(const AllAsked&) = delete;
  ~AllAsked() {
    for (int i = 0; i < length_; ++i)
      request_asked(requests_[i]);
  }

 private:
  const Fint* requests_;
  int length_;
};

// The address of a request that the call leaves as it is.
class AddressOf {
 public:
  explicit AddressOf(const Fint* request) : c_(handle<MPI_Request>(request)) {}
  operator MPI_Request*() { return &c_; }

 private:
  MPI_Request c_;
};

// An array of new handles, of which the call writes some.
template <class Handle>
class OutHandles {
 public:
  OutHandles(Fint* fortran, std::int64_t length) : fortran_(fortran), c_(length) {
    std::fill_n(c_.data(), c_.size(), nullptr);
  }
  OutHandles(const OutHandles&) = delete;
  OutHandles& operator=(const OutHandles&) = delete;
  ~OutHandles() {
    for (std::size_t i = 0; i < c_.size(); ++i)
      if (c_[i] != nullptr) fortran_[i] = number(c_[i]);
  }
  operator Handle*() { return c_.data(); }

 private:
  Fint* fortran_;
  Scratch<Handle> c_;
};

// How many elements an array has where an object tells.
int peers(const Fint* comm);      // ranks that a collective addresses
int dimensions(const Fint* comm); // of the Cartesian topology
int in_neighbors(const Fint* comm);
int out_neighbors(const Fint* comm);

// --- Statuses have one layout in all languages (MPI 5.0, section 20.3.3).

static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(Fint));

inline MPI_Status* c_status(Fint* fortran) {
  return fortran == fortran_status_ignore ? MPI_STATUS_IGNORE
                                          : reinterpret_cast<MPI_Status*>(fortran);
}
inline const MPI_Status* c_status(const Fint* fortran) {
  return reinterpret_cast<const MPI_Status*>(fortran);
}
inline MPI_Status* c_statuses(Fint* fortran) {
  return fortran == fortran_statuses_ignore ? MPI_STATUSES_IGNORE
                                            : reinterpret_cast<MPI_Status*>(fortran);
}

// --- Addresses, of which some have a meaning of their own.

inline void* c_address(void* fortran) {
  if (fortran == fortran_bottom) return MPI_BOTTOM;
  if (fortran == fortran_in_place) return MPI_IN_PLACE;
  if (fortran == fortran_buffer_automatic) return MPI_BUFFER_AUTOMATIC;
  return fortran;
}

// The address of a buffer that was detached, as Fortran attached it.
class Detached {
 public:
  explicit Detached(void** address) : address_(address) {}
  Detached(const Detached&) = delete;
  Detached& operator=(const Detached&) = delete;
  ~Detached() {
    if (*address_ == MPI_BUFFER_AUTOMATIC) *address_ = fortran_buffer_automatic;
  }
  operator void**() { return address_; }

 private:
  void** address_;
};

// The address of a buffer in mpi_f08.
inline void* c_address(const CFI_cdesc_t* array) {
  return c_address(array->base_addr);
}

// The number of elements of an array that goes with a buffer: none beside MPI_IN_PLACE, where the
// array is not looked at (and may not be there).
template <class Buffer>
int significant(Buffer* buffer, int elements) {
  return c_address(buffer) == MPI_IN_PLACE ? 0 : elements;
}

template <class Int>
Int* c_weights(Int* fortran) {
  if (fortran == fortran_unweighted) return MPI_UNWEIGHTED;
  if (fortran == fortran_weights_empty) return MPI_WEIGHTS_EMPTY;
  return fortran;
}

} // namespace macadam::fortran
