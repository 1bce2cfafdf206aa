// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace macadam::sim {

// A program to be simulated: a shared object with a main(), built from the source of an MPI program
// with `mpicc -shared -fPIC`. Its MPI functions are found in the simulator.
//
// A program that has no variables of its own outside of functions is loaded once for all ranks; any
// other once for each rank, from copies of the file, so that each rank has its own variables.
class Module {
 public:
  using Main = int(int argc, char** argv, char** environment);

  // Looks at the file. Throws base::Error (MPI_ERR_ARG): what it is, what is needed.
  explicit Module(std::string path);

  // The main() for one more rank. Runs the initialisers of its variables. Throws base::Error.
  Main* load();

  [[nodiscard]] bool has_variables() const { return has_variables_; }

 private:
  std::string path_;
  std::string loaded_; // the same, as the loader wants it
  std::string file_;   // what is in it, as copies want it
  bool has_variables_ = true;
  Main* shared_ = nullptr;
  int copies_ = 0;
};

} // namespace macadam::sim
