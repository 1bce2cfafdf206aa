// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace macadam::base {

// An array for the time of a call. A negative length is left for C to refuse.
template <class Element, std::size_t few = 32>
class Scratch {
 public:
  explicit Scratch(std::int64_t length)
      : length_(length < 0 ? 0 : static_cast<std::size_t>(length)) {
    if (length_ > few) many_.reset(new Element[length_]);
  }
  std::size_t size() const { return length_; }
  Element* data() { return many_ ? many_.get() : few_; }
  Element& operator[](std::size_t i) { return data()[i]; }

 private:
  std::size_t length_;
  Element few_[few];
  std::unique_ptr<Element[]> many_;
};

} // namespace macadam::base
