// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/dims.h"

#include "base/error.h"
#include "mpi/calls.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace macadam::mpi {
namespace {

// All divisors, rising, and the number of prime factors.
struct Divisors {
  explicit Divisors(int number) {
    int rest = number;
    for (int p = 2; p <= rest / p; ++p) {
      while (rest % p == 0) {
        add(p);
        rest /= p;
      }
    }
    if (rest > 1) add(rest);
  }

  std::vector<int> all = {1};
  int primes = 0;

 private:
  void add(int prime) {
    const std::size_t before = all.size();
    for (std::size_t i = 0; i < before; ++i)
      all.push_back(all[i] * prime);
    std::ranges::sort(all);
    const auto doubled = std::ranges::unique(all);
    all.erase(doubled.begin(), doubled.end());
    ++primes;
  }
};

// The smallest possible largest dimension, for every divisor of one number; remembered, as the same
// divisors come up on many ways.
class LargestDimension {
 public:
  explicit LargestDimension(int number) : divisors_(number) {}

  [[nodiscard]] int primes() const { return divisors_.primes; }

  int operator()(int product, int n) {
    if (n == 1 || product == 1) return product;
    const auto [known, added] = largest_.try_emplace({product, n}, product);
    if (!added) return known->second;
    for (const int candidate : divisors_.all) {
      if (product % candidate != 0 || power_below(candidate, n, product)) continue;
      if ((*this)(product / candidate, n - 1) <= candidate) return known->second = candidate;
    }
    return product; // never reached: the number itself is a candidate
  }

 private:
  // n dimensions of at most `base` cannot make up the product.
  static bool power_below(int base, int n, int product) {
    std::int64_t power = 1;
    for (int i = 0; i < n && power < product; ++i)
      power *= base;
    return power < product;
  }

  Divisors divisors_;
  std::map<std::pair<int, int>, int> largest_;
};

} // namespace

std::vector<int> balanced_dims(int product, int n) {
  std::vector<int> dims(static_cast<std::size_t>(n), 1);
  LargestDimension largest(product);
  // More dimensions than prime factors are of size 1.
  int left = std::min(n, largest.primes());
  for (std::size_t i = 0; left > 0; ++i, --left) {
    dims[i] = largest(product, left);
    product /= dims[i];
  }
  return dims;
}

void dims_create(Process&, int nnodes, int ndims, int dims[]) {
  if (nnodes < 1) base::fail(MPI_ERR_DIMS, "nnodes is {}; give 1 node or more", nnodes);
  const std::size_t n = static_cast<std::size_t>(ndims);
  std::int64_t given = 1;
  int open = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (dims[i] < 0) {
      base::fail(MPI_ERR_DIMS,
                 "dims[{}] is {}; it must be positive, or 0 where a size is to be found", i,
                 dims[i]);
    }
    if (dims[i] == 0) {
      ++open;
    } else if (given <= nnodes) { // else it is too large already
      given *= dims[i];
    }
  }
  if (n == 0) return;
  if (nnodes % given != 0 || (open == 0 && given != nnodes)) {
    base::fail(MPI_ERR_DIMS,
               "nnodes is {}, which {} the product of the sizes given in dims ({}{}); give sizes "
               "whose product divides nnodes, or 0 where a size is to be found",
               nnodes, open == 0 ? "is not" : "is no multiple of",
               given > nnodes ? "at least " : "", given);
  }
  const std::vector<int> found = balanced_dims(static_cast<int>(nnodes / given), open);
  auto next = found.begin();
  for (std::size_t i = 0; i < n; ++i) {
    if (dims[i] == 0) dims[i] = *next++;
  }
}

} // namespace macadam::mpi
