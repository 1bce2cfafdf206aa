// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace macadam::tools {

// `macadam trace`: of which folder that MACADAM_TRACE has named, and where the timeline is to go.
struct TraceQuestion {
  std::string folder;
  std::string output; // empty: trace.json in the folder
};

// Merges the files of the newest run in the folder, and of the jobs that ran beside it, to one
// timeline in the Trace Event Format of Chrome, which Perfetto reads. Returns what is to be said of
// it. Throws std::runtime_error.
std::string trace(const TraceQuestion& question);

} // namespace macadam::tools
