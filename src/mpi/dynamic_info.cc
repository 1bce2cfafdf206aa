// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/dynamic_info.h"

#include "mpi/process.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace macadam::mpi {
namespace {

[[noreturn]] void refuse_soft(std::string_view soft) {
  base::fail(MPI_ERR_INFO_VALUE,
             "info key soft is '{}'; it is to be a list of counts with commas between, each n, "
             "first:last or first:last:stride",
             soft);
}

// "n", "a:b" or "a:b:c" as first, last and stride.
std::array<long, 3> triplet(std::string_view part, std::string_view soft) {
  std::array<long, 3> numbers = {0, 0, 1};
  std::size_t count = 0;
  for (const char* at = part.data(); count < numbers.size(); ++at) {
    const char* const end = part.data() + part.size();
    const auto [next, error] = std::from_chars(at, end, numbers[count]);
    if (error != std::errc()) refuse_soft(soft);
    ++count;
    at = next;
    if (at == end) break;
    if (*at != ':' || count == numbers.size()) refuse_soft(soft);
  }
  if (count == 1) numbers[1] = numbers[0];
  if (numbers[2] == 0) refuse_soft(soft);
  return numbers;
}

} // namespace

Patience::Patience(Process& self, const Info* info) {
  const std::string* const text = find(info, "timeout");
  if (text == nullptr) return;
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  if (text->empty() || *end != '\0' || !std::isfinite(value) || value < 0)
    base::fail(MPI_ERR_INFO_VALUE, "info key timeout is '{}'; it is to be a number of seconds",
               *text);
  seconds = value;
  until = self.instance->nearest().now() + value;
}

std::vector<int> soft_counts(std::string_view soft, int most) {
  std::vector<bool> acceptable(static_cast<std::size_t>(most) + 1);
  for (std::size_t begin = 0; begin <= soft.size();) {
    const std::size_t comma = std::min(soft.find(',', begin), soft.size());
    const auto [first, last, stride] = triplet(soft.substr(begin, comma - begin), soft);
    // Only the part of a long range that can be wanted is looked at.
    const long low = stride > 0 ? first : last, high = stride > 0 ? last : first;
    const long step = std::abs(stride);
    for (int count = 0; count <= most; ++count)
      if (count >= low && count <= high && (count - first) % step == 0)
        acceptable[static_cast<std::size_t>(count)] = true;
    begin = comma + 1;
  }
  std::vector<int> counts;
  for (int count = 0; count <= most; ++count)
    if (acceptable[static_cast<std::size_t>(count)]) counts.push_back(count);
  return counts;
}

} // namespace macadam::mpi
