// SPDX-License-Identifier: BSD-3-Clause
#include "fortran/argv.h"

#include <utility>

namespace macadam::fortran {

namespace {

std::vector<char*> pointers(std::vector<std::string>& strings, bool ends) {
  std::vector<char*> found;
  for (std::string& string : strings)
    found.push_back(string.data());
  if (ends) found.push_back(nullptr);
  return found;
}

} // namespace

Arguments::Arguments(const char* first, std::size_t length, std::size_t distance) {
  if (first == nullptr) return;
  for (;; first += distance * length) {
    std::string text(static_cast<const char*>(Stripped(first, length)));
    if (text.empty()) break;
    strings_.push_back(std::move(text));
  }
  c_ = pointers(strings_, true);
}

Commands::Commands(const char* first, std::size_t length, int number) {
  for (int i = 0; i < number; ++i, first += length)
    strings_.emplace_back(static_cast<const char*>(Stripped(first, length)));
  c_ = pointers(strings_, false);
}

ArgumentLists::ArgumentLists(const char* first, std::size_t length, int number) {
  for (int i = 0; first != nullptr && i < number; ++i)
    lists_.emplace_back(first + static_cast<std::size_t>(i) * length, length,
                        static_cast<std::size_t>(number));
  for (const Arguments& list : lists_)
    c_.push_back(list);
}

} // namespace macadam::fortran
