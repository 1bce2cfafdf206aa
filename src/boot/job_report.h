// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace macadam::boot {

// The page that MACADAM_REPORT=1 prints when a job has ended. One text for each rank that left one
// (Job::write_final_report), a JSON object; every member may be missing:
//
//   {"rank": 0, "host": "a",
//    "counters": [{"group": "protocol", "name": "eager_sent", "text": "messages sent EAGER",
//                  "value": 12}, ...],
//    "memory": {"resident": 9437184, "shm": 262144, ...},     bytes
//    "transports": ["shm: 3 peers, 1 MiB and more by cma", ...],
//    "fallbacks": ["shm: no cross-memory attach: Operation not permitted", ...],
//    "settings": {"MACADAM_SHM_EAGER": "16K", ...}}           those that differ from the defaults
//
// A text that cannot be read is named on the page and left out of the sums.
// `job` names it where there are several: "job 2", for instance.
std::string job_report(const std::vector<std::string>& ranks, const std::string& job = "the job");

} // namespace macadam::boot
