// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace macadam::tools {

// `macadam report`: what is to be made of a file that MACADAM_REPORT has written.
struct ReportQuestion {
  std::string file;   // the report, as boot/job_report.h describes it
  std::string output; // the page; empty: beside the file, under its name with .html
  bool text = false;  // the page as mpiexec prints it, in place of HTML
};

// Writes an HTML page that needs nothing but itself, and returns the line that says where it is; or
// returns the page as text. `page` is the form that it is made from (report.html). Throws
// std::runtime_error.
std::string report(const ReportQuestion& question, const std::string& page);

} // namespace macadam::tools
