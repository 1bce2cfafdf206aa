// SPDX-License-Identifier: BSD-3-Clause
#include "boot/pmi2/mapping.h"

#include "base/error.h"

#include <charconv>
#include <map>

namespace macadam::boot::pmi2 {
namespace {

struct Block {
  std::uint32_t first, machines, ranks;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), left_(text) {}

  bool skip(std::string_view word) {
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!skip(word)) fail();
  }
  std::uint32_t number() {
    std::uint32_t value = 0;
    const auto read = std::from_chars(left_.data(), left_.data() + left_.size(), value);
    if (read.ec != std::errc()) fail();
    left_.remove_prefix(static_cast<std::size_t>(read.ptr - left_.data()));
    return value;
  }
  [[noreturn]] void fail() const {
    base::fail(MPI_ERR_OTHER,
               "the PMI-2 server says \"{}\" of the ranks' machines; needed is "
               "\"(vector,(first machine,machines,ranks on each),...)\"",
               text_);
  }

 private:
  std::string_view text_, left_;
};

} // namespace

std::vector<std::uint32_t> parse_mapping(std::string_view text, std::uint32_t ranks) {
  Reader reader(text);
  std::vector<Block> blocks;
  reader.expect("(vector");
  while (reader.skip(",")) {
    Block block{};
    reader.expect("(");
    block.first = reader.number();
    reader.expect(",");
    block.machines = reader.number();
    reader.expect(",");
    block.ranks = reader.number();
    reader.expect(")");
    if (block.machines == 0 || block.ranks == 0) reader.fail();
    blocks.push_back(block);
  }
  reader.expect(")");
  if (blocks.empty()) reader.fail();
  std::vector<std::uint32_t> places;
  std::map<std::uint32_t, std::uint32_t> known;
  while (places.size() < ranks)
    for (const Block& block : blocks)
      for (std::uint32_t i = 0; i < block.machines && places.size() < ranks; ++i) {
        const auto number = static_cast<std::uint32_t>(known.size());
        const std::uint32_t machine = known.emplace(block.first + i, number).first->second;
        for (std::uint32_t rank = 0; rank < block.ranks && places.size() < ranks; ++rank)
          places.push_back(machine);
      }
  return places;
}

} // namespace macadam::boot::pmi2
