// SPDX-License-Identifier: BSD-3-Clause
#include "boot/pmix/sets.h"

#include "boot/pmix/library.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace macadam::boot::pmix {
namespace {

// What libpmix has allocated: answers to one question.
class Answers {
 public:
  // `set`: whose members are asked for, or empty.
  Answers(const char* key, std::string set) {
    std::string word = key;
    char* keys[] = {word.data(), nullptr};
    pmix_info_t which{};
    std::string_view(PMIX_PSET_NAME).copy(which.key, PMIX_MAX_KEYLEN);
    which.value.type = PMIX_STRING;
    which.value.data.string = set.data();
    pmix_query_t query{};
    query.keys = keys;
    query.qualifiers = set.empty() ? nullptr : &which; // libpmix counts them itself if there are 0
    query.nqual = set.empty() ? 0 : 1;
    if (library().query_info(&query, 1, &info_, &count_) != PMIX_SUCCESS) count_ = 0;
  }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  ~Answers() {
    for (std::size_t i = 0; i < count_; ++i) {
      if (info_[i].value.type == PMIX_STRING) std::free(info_[i].value.data.string);
      if (info_[i].value.type == PMIX_DATA_ARRAY) {
        std::free(info_[i].value.data.darray->array);
        std::free(info_[i].value.data.darray);
      }
    }
    std::free(info_);
  }

  [[nodiscard]] std::string_view text() const {
    const bool is_text = count_ > 0 && info_->value.type == PMIX_STRING;
    return is_text && info_->value.data.string != nullptr ? info_->value.data.string : "";
  }
  // Ranks of this job, in order.
  [[nodiscard]] std::vector<std::uint32_t> ranks(std::string_view job, std::uint32_t size) const {
    std::vector<std::uint32_t> found;
    if (count_ == 0 || info_->value.type != PMIX_DATA_ARRAY) return found;
    const pmix_data_array_t& array = *info_->value.data.darray;
    if (array.type != PMIX_PROC) return found;
    const auto* const members = static_cast<const pmix_proc_t*>(array.array);
    for (std::size_t i = 0; i < array.size; ++i)
      if (job == members[i].nspace && members[i].rank < size) found.push_back(members[i].rank);
    std::ranges::sort(found);
    return found;
  }

 private:
  pmix_info_t* info_ = nullptr;
  std::size_t count_ = 0;
};

} // namespace

std::vector<NamedRanks> sets_of(const char* job, std::uint32_t size) {
  std::vector<NamedRanks> sets;
  const Answers names(PMIX_QUERY_PSET_NAMES, {});
  std::string_view left = names.text();
  while (!left.empty()) {
    const std::string set(left.substr(0, left.find(',')));
    left.remove_prefix(std::min(set.size() + 1, left.size()));
    if (set.empty() || set.size() > longest_set_name) continue;
    NamedRanks row{set, 0, 0};
    for (const std::uint32_t rank : Answers(PMIX_QUERY_PSET_MEMBERSHIP, set).ranks(job, size)) {
      if (row.ranks > 0 && rank != row.first + row.ranks)
        sets.push_back(std::exchange(row, {set, 0, 0}));
      if (row.ranks++ == 0) row.first = rank;
    }
    if (row.ranks > 0) sets.push_back(std::move(row));
  }
  return sets;
}

} // namespace macadam::boot::pmix
