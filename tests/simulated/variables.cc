// SPDX-License-Identifier: BSD-3-Clause
// Every kind of variable that a program can have outside of functions: each simulated rank must
// have its own, with its initial value, whatever the others write to theirs.
#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

int in_data = 42;
int in_bss;
int* const to_itself = &in_data;
std::string constructed = "as built";

} // namespace

inline std::vector<int> one_of_a_name = {1, 2, 3}; // of all copies with this name, for a loader
thread_local int of_the_thread = 7;
int exported = 5;

static int count_calls() {
  static int calls = 0;
  return ++calls;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  bool right = in_data == 42 && in_bss == 0 && constructed == "as built" && exported == 5 &&
               of_the_thread == 7 && one_of_a_name.size() == 3 && to_itself == &in_data;
  for (int round = 1; round <= 10; ++round) {
    in_data = in_bss = exported = of_the_thread = 100 * rank + round;
    constructed = std::to_string(in_data);
    one_of_a_name.assign(static_cast<std::size_t>(rank + round), round);
    MPI_Barrier(MPI_COMM_WORLD); // others run, and write to theirs
    const int mine = 100 * rank + round;
    right = right && in_data == mine && in_bss == mine && exported == mine && *to_itself == mine &&
            of_the_thread == mine && constructed == std::to_string(mine) &&
            one_of_a_name.size() == static_cast<std::size_t>(rank + round) &&
            count_calls() == round;
  }
  if (!right) std::printf("rank %d does not find its own variables\n", rank);
  MPI_Finalize();
  return right ? 0 : 1;
}
