// SPDX-License-Identifier: BSD-3-Clause
// Arguments of Fortran that are alike in every ABI of MPI: logicals, indices, strings. Each is
// converted by an object that lives as long as the call, and whose end converts the result back.
#pragma once

#include "base/scratch.h"

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

// The values of .TRUE. and .FALSE., not seen by programs.
extern "C" const int macadam_fortran_logicals[2];
#define fortran_true macadam_fortran_logicals[0]
#define fortran_false macadam_fortran_logicals[1]

namespace macadam::fortran {

using base::Scratch;

// INTEGER and LOGICAL of default kind. The build refuses a compiler where they are not C's int.
using Fint = int;

// --- Logicals.

inline bool truth(Fint fortran) {
  return fortran != fortran_false;
}
inline Fint logical(int c) {
  return c != 0 ? fortran_true : fortran_false;
}

class Flag {
 public:
  explicit Flag(Fint* fortran) : fortran_(fortran) {}
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  ~Flag() { *fortran_ = logical(c_); }
  operator int*() { return &c_; }

 private:
  Fint* fortran_;
  int c_ = 0;
};

class Flags {
 public:
  Flags(const Fint* fortran, std::int64_t length) : c_(length) {
    for (std::size_t i = 0; i < c_.size(); ++i)
      c_[i] = truth(fortran[i]);
  }
  operator const int*() { return c_.data(); }

 private:
  Scratch<int> c_;
};

class OutFlags {
 public:
  OutFlags(Fint* fortran, std::int64_t length) : fortran_(fortran), c_(length) {
    std::fill_n(c_.data(), c_.size(), untouched);
  }
  OutFlags(const OutFlags&) = delete;
  OutFlags& operator=(const OutFlags&) = delete;
  ~OutFlags() {
    for (std::size_t i = 0; i < c_.size(); ++i)
      if (c_[i] != untouched) fortran_[i] = logical(c_[i]);
  }
  operator int*() { return c_.data(); }

 private:
  static constexpr int untouched = -1;
  Fint* fortran_;
  Scratch<int> c_;
};

// --- Indices of arrays, which count from 1 in Fortran.

inline Fint index(int c) {
  return c == MPI_UNDEFINED ? c : c + 1;
}

class Index {
 public:
  explicit Index(Fint* fortran) : fortran_(fortran) {}
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;
  ~Index() { *fortran_ = index(c_); }
  operator int*() { return &c_; }

 private:
  Fint* fortran_;
  int c_ = MPI_UNDEFINED;
};

// `outcount` of them; the call sets it.
class Indices {
 public:
  Indices(Fint* fortran, int length, Fint* outcount)
      : fortran_(fortran), length_(length), outcount_(outcount) {
    *outcount_ = 0;
  }
  Indices(const Indices&) = delete;
  Indices& operator=(const Indices&) = delete;
  ~Indices() {
    for (int i = 0; i < std::min(*outcount_, length_); ++i)
      fortran_[i] = index(fortran_[i]);
  }
  operator int*() { return fortran_; }

 private:
  Fint* fortran_;
  int length_;
  Fint* outcount_;
};

// --- Strings: of fixed length and filled with blanks in Fortran.

// Without the blanks at its end.
class String {
 public:
  String(const char* fortran, std::size_t length);
  // From a C descriptor of it, whose header comes with the Fortran compiler.
  template <class Descriptor>
  explicit String(const Descriptor* fortran)
      : String(static_cast<const char*>(fortran->base_addr), fortran->elem_len) {}
  operator const char*() const { return c_.c_str(); }

 protected:
  std::string c_;
};

// Nor those at its start.
class Stripped : public String {
 public:
  Stripped(const char* fortran, std::size_t length);
};

// A result of up to `capacity` characters with the terminating null. What the Fortran string has no
// room for is cut off.
class OutString {
 public:
  OutString(char* fortran, std::size_t length, int capacity);
  OutString(const OutString&) = delete;
  OutString& operator=(const OutString&) = delete;
  ~OutString();
  operator char*() { return c_.data(); }

 private:
  static constexpr char untouched = '\x01';
  char* fortran_;
  std::size_t length_;
  Scratch<char, 512> c_;
};

// The room for a string whose length the caller gives, which counts no terminating null in Fortran.
// No string of MPI is nearly as long as the bound.
constexpr int longest_string = 1 << 20;
inline int room(const Fint* length) {
  return std::clamp(*length, 0, longest_string) + 1;
}

// The same length as an argument: 0 asks for the length needed.
class Length {
 public:
  explicit Length(Fint* fortran) : fortran_(fortran), c_(*fortran > 0 ? *fortran + 1 : *fortran) {}
  Length(const Length&) = delete;
  Length& operator=(const Length&) = delete;
  ~Length() { *fortran_ = c_ > 0 ? c_ - 1 : c_; }
  operator int*() { return &c_; }

 private:
  Fint* fortran_;
  int c_;
};

// Room for a result that the caller cannot use.
class Unused {
 public:
  operator void*() { return &place_; }

 private:
  void* place_ = nullptr;
};

// --- The error code. `ierror` is null where mpi_f08 leaves it out.

inline void answer(Fint* ierror, int code) {
  if (ierror != nullptr) *ierror = code;
}

} // namespace macadam::fortran
