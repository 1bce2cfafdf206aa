// SPDX-License-Identifier: BSD-3-Clause
// The adapter gives no memory regions any more, as the control group REGIONS_GROUP that this job
// runs in may have none: what needs one is refused, and says why, what can do without goes on, and
// when there are regions again all is as before.
#include "check.h"

#include <fstream>

namespace {

// Rank 0 sets it for all.
void limit_objects(const std::string& most) {
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (check::rank == 0) {
    std::ofstream file(std::string(std::getenv("REGIONS_GROUP")) + "/rdma.max");
    file << "rxe0 hca_object=" << most << std::flush;
    CHECK(file.good());
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

// As many as the group has now: "rxe0 hca_handle=2 hca_object=24".
std::string objects_in_use() {
  std::ifstream file(std::string(std::getenv("REGIONS_GROUP")) + "/rdma.current");
  std::string device, handles, objects;
  file >> device >> handles >> objects;
  return objects.substr(objects.find('=') + 1);
}

void exchange(std::size_t bytes, std::uint64_t seed) {
  const int peer = 1 - check::rank;
  const std::vector<unsigned char> out =
      check::message(bytes, seed + static_cast<std::uint64_t>(check::rank));
  std::vector<unsigned char> in(bytes);
  const int count = static_cast<int>(bytes);
  OK(MPI_Sendrecv(out.data(), count, MPI_BYTE, peer, 1, in.data(), count, MPI_BYTE, peer, 1,
                  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  HOLDS(in.data(), bytes, seed + static_cast<std::uint64_t>(peer));
}

int make_window(std::vector<unsigned char>& memory, MPI_Win* window) {
  return MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size()), 1, MPI_INFO_NULL,
                        MPI_COMM_WORLD, window);
}

void write_to_peer(MPI_Win window, std::vector<unsigned char>& memory) {
  const unsigned char own = static_cast<unsigned char>(10 + check::rank);
  OK(MPI_Win_fence(0, window));
  OK(MPI_Put(&own, 1, MPI_BYTE, 1 - check::rank, 7, 1, MPI_BYTE, window));
  OK(MPI_Win_fence(0, window));
  CHECK_EQUAL(int{memory[7]}, 11 - check::rank);
}

void no_regions_left() {
  if (std::getenv("REGIONS_FATAL") == nullptr)
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  std::vector<unsigned char> first(10'000), second(10'000);
  MPI_Win window, refused = MPI_WIN_NULL;
  exchange(8, 1);
  OK(make_window(first, &window));
  limit_objects(objects_in_use());
  const int code = make_window(second, &refused);
  std::printf("rank %d: %s\n", check::rank, check::error_text(code).c_str());
  std::fflush(stdout);
  CHECK(code != MPI_SUCCESS);
  CHECK(refused == MPI_WIN_NULL);
  exchange(1'000'000, 3);
  write_to_peer(window, first);
  limit_objects("max");
  OK(make_window(second, &refused));
  write_to_peer(refused, second);
  exchange(1'000'000, 5);
  OK(MPI_Win_free(&refused));
  OK(MPI_Win_free(&window));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"no_regions_left", no_regions_left}});
}
