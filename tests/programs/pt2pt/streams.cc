// SPDX-License-Identifier: BSD-3-Clause
// Many messages of a size one after the other, all one way and then both ways: every byte of each
// is what was sent, wherever in a line it begins.
#include "check.h"

namespace {

constexpr int messages = 300; // more than any ring or set of chunks takes

std::uint64_t seed_of(int sender, int bytes, int i) {
  return static_cast<std::uint64_t>((sender * messages + i) * 131071 + bytes);
}

class Window {
 public:
  Window(int bytes, std::size_t shift)
      : bytes_(bytes), shift_(shift), data_(messages * (static_cast<std::size_t>(bytes) + shift)),
        requests_(messages) {}

  void send(int to) {
    for (int i = 0; i < messages; ++i) {
      check::fill(at(i), static_cast<std::size_t>(bytes_), seed_of(check::rank, bytes_, i));
      OK(MPI_Isend(at(i), bytes_, MPI_BYTE, to, 1, MPI_COMM_WORLD, request(i)));
    }
  }
  void receive(int from) {
    for (int i = 0; i < messages; ++i)
      OK(MPI_Irecv(at(i), bytes_, MPI_BYTE, from, 1, MPI_COMM_WORLD, request(i)));
  }
  void wait() { OK(MPI_Waitall(messages, requests_.data(), MPI_STATUSES_IGNORE)); }
  void look(int from) {
    for (int i = 0; i < messages; ++i)
      HOLDS(at(i), bytes_, seed_of(from, bytes_, i));
  }

 private:
  unsigned char* at(int i) {
    return data_.data() + static_cast<std::size_t>(i) * (static_cast<std::size_t>(bytes_) + shift_);
  }
  MPI_Request* request(int i) { return &requests_[static_cast<std::size_t>(i)]; }
  int bytes_;
  std::size_t shift_;
  std::vector<unsigned char> data_;
  std::vector<MPI_Request> requests_;
};

// From even to odd ranks, back, and both ways.
void stream(int bytes, std::size_t shift) {
  const int peer = check::rank ^ 1;
  if (peer >= check::size) return;
  for (int giver = 0; giver < 3; ++giver) {
    const bool gives = giver == 2 || check::rank % 2 == giver;
    const bool takes = giver == 2 || check::rank % 2 != giver;
    Window out(bytes, shift), in(bytes, shift);
    if (takes) in.receive(peer);
    if (gives) out.send(peer);
    if (takes) in.wait();
    if (gives) out.wait();
    if (takes) in.look(peer);
  }
}

void stream_all(std::initializer_list<int> sizes) {
  for (const int bytes : sizes)
    for (const std::size_t shift : {0, 1, 24})
      stream(bytes, shift);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"lines",
                      [] {
                        stream_all({52, 1000});
                      }},
                     {"in_rings",
                      [] {
                        stream_all({2047, 2048, 2111, 4096});
                      }},
                     {"in_chunks", [] {
                        stream_all({4159, 4161, 8192, 40000});
                      }}});
}
