// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"

#include <exception>
#include <optional>
#include <utility>

namespace macadam::engine {

// What a network, or the engine, cannot go on after: memory for its records that could not be had,
// damage to what it shares with others. Where something was thrown, whoever may not throw notes it.
class Breakdown {
 public:
  // To be called in a catch block. The first one stays.
  void note() noexcept {
    try {
      throw;
    } catch (base::Error& error) {
      if (!what_) what_.emplace(std::move(error));
    } catch (const std::bad_alloc&) {
      note(base::make_error(MPI_ERR_NO_MEM, "there is no memory for the records of a network; give "
                                            "the process more memory"));
    } catch (const std::exception& other) {
      note(base::make_error(MPI_ERR_INTERN, "a network failed: {}", other.what()));
    }
  }
  void note(base::Error&& error) noexcept {
    if (!what_) what_.emplace(std::move(error));
  }
  [[nodiscard]] bool noted() const { return what_.has_value(); }
  [[nodiscard]] const base::Error& what() const { return *what_; }
  // Without its text it stays noted.
  [[nodiscard]] base::Error take() noexcept { return std::move(*what_); }

 private:
  std::optional<base::Error> what_;
};

} // namespace macadam::engine
