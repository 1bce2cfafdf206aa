// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"

#include <optional>
#include <utility>

namespace macadam::engine {

// What a network, or the engine, cannot go on after: memory for its records that could not be had,
// damage to what it shares with others. Where something was thrown, whoever may not throw notes it.
class Breakdown {
 public:
  // To be called in a catch block. The first one stays.
  void note() noexcept { note(base::caught("for the records of a network")); }
  void note(base::Error&& error) noexcept {
    if (!what_) what_.emplace(std::move(error));
  }
  [[nodiscard]] bool noted() const { return what_.has_value(); }
  [[nodiscard]] const base::Error& what() const { return *what_; }

  // The poll() of a network: `look`, which may throw, and must call raise() now and then. The sink
  // is told of what was thrown.
  template <class Sink, class Look>
  [[gnu::always_inline]] bool poll(Sink& sink, Look&& look) noexcept {
    try {
      return look();
    } catch (...) {
      note();
    }
    sink.on_failure(std::move(*what_)); // without its text it stays noted
    return true;
  }
  // Throws what an operation has noted.
  void raise() const {
    if (what_) [[unlikely]]
      throw *what_;
  }

 private:
  std::optional<base::Error> what_;
};

} // namespace macadam::engine
