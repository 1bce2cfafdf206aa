// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <fmt/format.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

namespace macadam::base {

// The one exception of the library, thrown on cold paths by every layer and turned into a call of
// the error handler at the MPI entry point. `error_class` is an MPI error class (MPI_ERR_COUNT,
// ...).
class Error : public std::exception {
 public:
  Error(int mpi_class, std::string message) : error_class(mpi_class), text(std::move(message)) {}
  [[nodiscard]] const char* what() const noexcept override { return text.c_str(); }

  int error_class;
  std::string text; // what, where, found, needed, remedy; without the function's name
};

// Throws an Error; out of line of the callers' hot paths.
template <class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void
fail(int error_class, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(error_class, fmt::format(format, std::forward<Args>(args)...));
}

// The same Error as a value, where nothing may be thrown. Its text is lost if there is no memory.
template <class... Args>
[[gnu::cold, gnu::noinline]] Error make_error(int error_class, fmt::format_string<Args...> format,
                                              Args&&... args) noexcept {
  try {
    return {error_class, fmt::format(format, std::forward<Args>(args)...)};
  } catch (const std::bad_alloc&) {
    return {error_class, std::string()};
  }
}

// `what`: "for ..." or "to ...".
[[gnu::cold]] inline Error no_memory(const char* what) noexcept {
  return make_error(MPI_ERR_NO_MEM, "there is no memory {}; give the process more memory", what);
}

// In a catch block: what was thrown, as a value. std::bad_alloc is no_memory(`lacking`).
[[gnu::cold]] inline Error caught(const char* lacking) noexcept {
  try {
    throw;
  } catch (Error& error) {
    return std::move(error);
  } catch (const std::bad_alloc&) {
    return no_memory(lacking);
  } catch (const std::exception& other) {
    return make_error(MPI_ERR_INTERN, "internal error: {}", other.what());
  }
}

} // namespace macadam::base
