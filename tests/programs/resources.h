// SPDX-License-Identifier: BSD-3-Clause
// What a process has of the system, for programs that must not grow.
#pragma once

#include "check.h"

#include <dirent.h>
#include <fstream>
#include <string>

namespace check {

struct Resources {
  int mappings = 0, descriptors = 0, threads = 0;
  long resident_kib = 0;
};

inline int entries(const std::string& folder) {
  int count = 0;
  DIR* const open = opendir(folder.c_str());
  CHECK(open != nullptr);
  while (readdir(open) != nullptr)
    ++count;
  closedir(open);
  return count;
}

// Of a process of this user.
inline Resources resources(const std::string& process = "self") {
  const std::string folder = "/proc/" + process;
  Resources now;
  std::ifstream maps(folder + "/maps");
  for (std::string line; std::getline(maps, line);)
    ++now.mappings;
  now.descriptors = entries(folder + "/fd");
  now.threads = entries(folder + "/task");
  std::ifstream status(folder + "/status");
  for (std::string word; status >> word;)
    if (word == "VmRSS:") status >> now.resident_kib;
  return now;
}

} // namespace check
