// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace macadam::tools {

inline constexpr int most_ranks_of_job = 1 << 20;

// A machine that a user has named, and how many ranks of a job should be on it.
struct Host {
  std::string name; // this machine is boot::host_name(), however it was named
  int slots = 1;
};

// What a user says of machines, in the forms that MPI launchers share: `name,name:4` after -host,
// and a file with a line `name`, `name:4` or `name slots=4` for each. A machine that is named
// several times has the sum of the slots, up to as many as a job can have ranks. Throws
// std::runtime_error for what is written otherwise.
void add_host(std::vector<Host>& hosts, Host host);
void add_hosts(std::vector<Host>& hosts, const std::string& list);
void add_host_file(std::vector<Host>& hosts, const std::string& path);

} // namespace macadam::tools
