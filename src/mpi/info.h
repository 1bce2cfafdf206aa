// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/object.h"

#include <mpi.h>

#include <string>
#include <utility>
#include <vector>

namespace macadam::mpi {

class Library;

// An info object: keys and values in the order in which the keys were first set.
struct Info : base::Object {
  explicit Info(MPI_Info predefined = nullptr)
      : base::Object(base::ObjectKind::info), constant(predefined) {}

  [[nodiscard]] const std::string* find(const char* key) const;
  void set(std::string key, std::string value);
  bool remove(const char* key);

  [[nodiscard]] MPI_Info handle() const {
    return constant != nullptr ? constant : reinterpret_cast<MPI_Info>(const_cast<Info*>(this));
  }

  MPI_Info constant; // MPI_INFO_ENV
  std::vector<std::pair<std::string, std::string>> entries;
};

// Of info arguments, which may be none. Null if it has no such key.
inline const std::string* find(const Info* info, const char* key) {
  return info != nullptr ? info->find(key) : nullptr;
}

// A new info object with these entries, owned by whoever gets the handle.
MPI_Info make_info(Library& self, std::vector<std::pair<std::string, std::string>> entries);

// The same for what an object is used with: its hints, and the kinds of memory that may be given to
// MPI with it. They are all that there are without accelerators, whatever is asked for.
MPI_Info make_info_used(Library& self, std::vector<std::pair<std::string, std::string>> hints);

// "MPI_THREAD_SINGLE" and so on.
const char* level_name(int thread_level);

// Fills MPI_INFO_ENV once the job is known.
void fill_info_env(Library& self, int thread_level);

} // namespace macadam::mpi
