// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace macadam::boot::pmi2 {

// The machine of each of `ranks` ranks, numbered from 0 as they first appear, from
// PMI_process_mapping: "(vector,(first machine,machines,ranks on each),...)", whose blocks are
// dealt one after the other, and again from the first until all ranks have a place. Throws
// MPI_ERR_OTHER.
std::vector<std::uint32_t> parse_mapping(std::string_view text, std::uint32_t ranks);

} // namespace macadam::boot::pmi2
