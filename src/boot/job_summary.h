// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace macadam::boot {

// The half page that a report begins with: how long the job took, where its time went, who waited
// for whom, who sent what to whom, and what follows from that. `ranks` are texts of ranks as
// job_report.h describes them, parsed. Empty if none of them has kept the time.
// Throws nlohmann::json::exception if a member is not what it should be.
std::string job_summary(const std::vector<nlohmann::json>& ranks);

// The last of it by itself, a sentence each.
std::vector<std::string> job_advice(const std::vector<nlohmann::json>& ranks);

// A member that may be missing: then nothing to go through.
const nlohmann::json& member(const nlohmann::json& object, const char* name);
// "1.23 s", "45.6 ms", "7.89 us"
std::string show_time(double seconds);
// "12.5 MiB": four digits, enough to hold a measurement against `macadam model`.
std::string show_bytes(std::uint64_t bytes);

} // namespace macadam::boot
