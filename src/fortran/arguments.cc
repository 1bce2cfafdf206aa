// SPDX-License-Identifier: BSD-3-Clause
#include "fortran/arguments.h"

#include <cstring>
#include <string_view>

namespace macadam::fortran {

namespace {

std::string_view without_trailing(const char* text, std::size_t length) {
  while (length > 0 && text[length - 1] == ' ')
    --length;
  return {text, length};
}

std::string_view stripped(const char* text, std::size_t length) {
  std::string_view view = without_trailing(text, length);
  view.remove_prefix(std::min(view.find_first_not_of(' '), view.size()));
  return view;
}

} // namespace

String::String(const char* fortran, std::size_t length) : c_(without_trailing(fortran, length)) {}

Stripped::Stripped(const char* fortran, std::size_t length) : String(fortran, 0) {
  c_ = stripped(fortran, length);
}

OutString::OutString(char* fortran, std::size_t length, int capacity)
    : fortran_(fortran), length_(length), c_(capacity) {
  // What the call leaves as it is stays as it is.
  c_[0] = untouched;
}

OutString::~OutString() {
  if (c_[0] == untouched) return;
  const std::size_t used = std::min(strnlen(c_.data(), c_.size()), length_);
  std::memcpy(fortran_, c_.data(), used);
  std::memset(fortran_ + used, ' ', length_ - used);
}

} // namespace macadam::fortran
