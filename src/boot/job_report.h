// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace macadam::boot {

// The page that MACADAM_REPORT=yes prints when a job has ended. One text for each rank that left
// one (Job::write_final_report), a JSON object; every member may be missing:
//
//   {"rank": 0, "host": "a",
//    "file": "report.json",                                   where the report is to be written
//    "time": {"run": 2.5, "functions": [{"name": "MPI_Recv", "calls": 7, "seconds": 0.5}, ...]},
//    "waits": [{"peer": 1, "cause": "late sender", "times": 3, "seconds": 0.4}, ...],
//             causes: "late sender", "late receiver", "collective"
//    "sent": [{"peer": 1, "messages": 12, "bytes": 96,        to which ranks
//              "successive": 9, "successive_bytes": 72}, ...], right after another short one
//             peer -1, here and there: all ranks of other jobs
//    "sizes": [{"below": 16, "protocol": "EAGER", "messages": 12}, ...],
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

// The same texts as one JSON object, for programs and `macadam report`: {"ranks": [...]}.
std::string job_report_file(const std::vector<std::string>& ranks);

// Writes the file that the ranks ask for, and returns what is to be printed: where it is, or the
// page where none is wanted or it cannot be written. `part` tells apart the files of machines, or
// of spawned jobs, that have one each, else it is empty.
std::string give_report(const std::vector<std::string>& ranks, const std::string& part,
                        const std::string& job = "the job");

} // namespace macadam::boot
