// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace macadam::sim {

// The folder that one rank runs in, while the simulator and all other ranks have theirs. Until it
// enters one it is the simulator's.
class Folder {
 public:
  Folder() = default;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();

  // For the rank itself, while it runs: as chdir(). False: errno says why not.
  bool enter(const char* path);
  // The rank goes on, or gives way.
  void go_there() const;
  void go_back() const;

 private:
  int descriptor_ = -1; // of it; -1: the simulator's
};

} // namespace macadam::sim
