// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <utility>

namespace macadam::base {

// For each of a user's functions, of another language or another ABI, a C function of its own for
// callbacks that are told nothing by which one function could serve for all. Given for good: a
// program has but few different ones. `Calls` has their type as User, a template call<i> that is
// the C function and calls functions[i], and the words for an explanation: `name`, what they are,
// and `where`.
template <class Calls>
class Slots {
 public:
  using User = typename Calls::User;
  using C = decltype(&Calls::template call<0>);

  // Null, with an explanation on stderr, if there are none left.
  static C find(User* function) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < number; ++i) {
      if (functions[i] == nullptr) functions[i] = function;
      if (functions[i] == function) return c_functions[i];
    }
    std::fprintf(stderr, "%s: more than %zu different %s\n", Calls::where, number, Calls::name);
    return nullptr;
  }

  static constexpr std::size_t number = 128;
  static inline std::array<User*, number> functions{};

 private:
  template <std::size_t... i>
  static constexpr std::array<C, number> all(std::index_sequence<i...>) {
    return {&Calls::template call<i>...};
  }
  static constexpr std::array<C, number> c_functions = all(std::make_index_sequence<number>());
};

} // namespace macadam::base
