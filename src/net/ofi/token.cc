// SPDX-License-Identifier: BSD-3-Clause
#include "net/ofi/token.h"

#include <array>
#include <bit>
#include <cstring>

namespace macadam::net::ofi {
namespace {

struct State {
  std::array<std::uint64_t, 4> v;

  void round() {
    v[0] += v[1];
    v[1] = std::rotl(v[1], 13) ^ v[0];
    v[0] = std::rotl(v[0], 32);
    v[2] += v[3];
    v[3] = std::rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = std::rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = std::rotl(v[1], 17) ^ v[2];
    v[2] = std::rotl(v[2], 32);
  }
  void take(std::uint64_t word) {
    v[3] ^= word;
    round();
    round();
    v[0] ^= word;
  }
};

} // namespace

std::uint64_t sip_hash(const boot::Secret& key, std::uint64_t first, std::uint64_t second) {
  std::array<std::uint64_t, 2> k;
  static_assert(sizeof k == sizeof key);
  std::memcpy(k.data(), key.data(), sizeof k);
  // The initial values are the algorithm's: "somepseudorandomlygeneratedbytes".
  State state{{k[0] ^ 0x736f6d6570736575u, k[1] ^ 0x646f72616e646f6du, k[0] ^ 0x6c7967656e657261u,
               k[1] ^ 0x7465646279746573u}};
  state.take(first);
  state.take(second);
  state.take(std::uint64_t{16} << 56); // the length, in bytes
  state.v[2] ^= 0xff;
  for (int i = 0; i < 4; ++i)
    state.round();
  return state.v[0] ^ state.v[1] ^ state.v[2] ^ state.v[3];
}

std::uint64_t token_of(const boot::Secret& secret, const boot::ProcessName& source,
                       const boot::ProcessName& target) {
  const auto word = [](const boot::ProcessName& name) {
    return std::uint64_t{name.job} << 32 | name.rank;
  };
  return sip_hash(secret, word(source), word(target));
}

} // namespace macadam::net::ofi
