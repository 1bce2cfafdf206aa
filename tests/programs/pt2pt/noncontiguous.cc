// SPDX-License-Identifier: BSD-3-Clause
// Messages whose data is not one block, on either side or both, at sizes of every protocol.
#include "check.h"

namespace {

const std::vector<int> element_counts =
    check::light() ? std::vector<int>{0, 1, 100, 2048, 20000}
                   : std::vector<int>{0, 1, 2, 100, 1000, 2048, 5000, 20000, 100000, 600000};

enum class Layout { block, strided, resized, indexed, reversed };
const std::vector<Layout> layouts = {Layout::block, Layout::strided, Layout::resized,
                                     Layout::indexed, Layout::reversed};

// A datatype of `n` ints in a layout, and where element i of the message lies in the buffer.
struct Shape {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::vector<std::size_t> place;
  std::size_t length = 0; // of the buffer, in ints
  std::size_t origin = 0; // where the buffer argument points

  Shape(Layout layout, int n) {
    const auto count = static_cast<std::size_t>(n);
    for (std::size_t i = 0; i < count; ++i)
      place.push_back(i);
    length = 3 * count + 8;
    MPI_Datatype part;
    switch (layout) {
    case Layout::block:
      OK(MPI_Type_contiguous(n, MPI_INT, &type));
      break;
    case Layout::strided:
      OK(MPI_Type_vector(n, 1, 3, MPI_INT, &type));
      for (std::size_t i = 0; i < count; ++i)
        place[i] = 3 * i;
      break;
    case Layout::resized:
      OK(MPI_Type_create_resized(MPI_INT, 0, 8, &part));
      OK(MPI_Type_contiguous(n, part, &type));
      OK(MPI_Type_free(&part));
      for (std::size_t i = 0; i < count; ++i)
        place[i] = 2 * i;
      break;
    case Layout::indexed:
      indexed(n);
      break;
    case Layout::reversed:
      OK(MPI_Type_create_hvector(n, 1, -static_cast<MPI_Aint>(sizeof(int)), MPI_INT, &type));
      origin = count;
      for (std::size_t i = 0; i < count; ++i)
        place[i] = count - i;
      break;
    }
    OK(MPI_Type_commit(&type));
  }
  ~Shape() { MPI_Type_free(&type); }
  Shape(const Shape&) = delete;
  Shape& operator=(const Shape&) = delete;

 private:
  // Blocks of 1, 2, 3, 1, 2, 3 ... ints with one int between them.
  void indexed(int n) {
    std::vector<int> lengths, displacements;
    std::size_t element = 0;
    for (int at = 0, left = n; left > 0;) {
      const int block = std::min(left, 1 + static_cast<int>(lengths.size()) % 3);
      lengths.push_back(block);
      displacements.push_back(at);
      for (int i = 0; i < block; ++i)
        place[element++] = static_cast<std::size_t>(at + i);
      at += block + 1;
      left -= block;
    }
    OK(MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), displacements.data(),
                        MPI_INT, &type));
  }
};

void transfer(Layout from, Layout to, int n, bool sender_early) {
  Shape shape(check::rank == 0 ? from : to, n);
  std::vector<int> buffer(shape.length, -1);
  MPI_Request request;
  if (check::rank == 0) {
    for (std::size_t i = 0; i < shape.place.size(); ++i)
      buffer[shape.place[i]] = static_cast<int>(i) * 7;
    if (!sender_early) check::token_recv(1);
    OK(MPI_Isend(buffer.data() + shape.origin, 1, shape.type, 1, 0, MPI_COMM_WORLD, &request));
    if (sender_early) check::token_send(1);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return;
  }
  if (sender_early) check::token_recv(0);
  OK(MPI_Irecv(buffer.data() + shape.origin, 1, shape.type, 0, 0, MPI_COMM_WORLD, &request));
  if (!sender_early) check::token_send(0);
  MPI_Status status;
  OK(MPI_Wait(&request, &status));
  int elements = -1;
  OK(MPI_Get_elements(&status, shape.type, &elements));
  CHECK_EQUAL(elements, n);
  for (std::size_t i = 0; i < shape.place.size(); ++i) {
    CHECK_EQUAL(buffer[shape.place[i]], static_cast<int>(i) * 7);
    buffer[shape.place[i]] = -1;
  }
  for (int gap : buffer)
    CHECK_EQUAL(gap, -1);
}

void every_pair_of_layouts() {
  if (check::rank > 1) return;
  for (Layout from : layouts)
    for (Layout to : layouts)
      for (int n : element_counts)
        for (bool sender_early : {true, false})
          transfer(from, to, n, sender_early);
}

// A noncontiguous struct, several of them in one message, received as bytes of the same signature.
void structs() {
  struct Particle {
    char kind;
    double position[3];
    int id;
  };
  MPI_Datatype exact, particle;
  const int lengths[3] = {1, 3, 1};
  const MPI_Aint places[3] = {offsetof(Particle, kind), offsetof(Particle, position),
                              offsetof(Particle, id)};
  const MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
  OK(MPI_Type_create_struct(3, lengths, places, types, &exact));
  OK(MPI_Type_create_resized(exact, 0, sizeof(Particle), &particle));
  OK(MPI_Type_commit(&particle));
  for (int n : {1, 10, 1000, 30000}) {
    std::vector<Particle> particles(static_cast<std::size_t>(n));
    if (check::rank == 0) {
      for (int i = 0; i < n; ++i)
        particles[static_cast<std::size_t>(i)] = {
            static_cast<char>(i), {i + 0.5, i * 2.0, -1.0 * i}, i};
      OK(MPI_Send(particles.data(), n, particle, 1, 0, MPI_COMM_WORLD));
    } else if (check::rank == 1) {
      std::memset(static_cast<void*>(particles.data()), 0x55, particles.size() * sizeof(Particle));
      MPI_Status status;
      OK(MPI_Recv(particles.data(), n, particle, 0, 0, MPI_COMM_WORLD, &status));
      int count = 0, elements = 0;
      OK(MPI_Get_count(&status, particle, &count));
      OK(MPI_Get_elements(&status, particle, &elements));
      CHECK_EQUAL(count, n);
      CHECK_EQUAL(elements, 5 * n);
      for (int i = 0; i < n; ++i) {
        const Particle& p = particles[static_cast<std::size_t>(i)];
        CHECK_EQUAL(p.kind, static_cast<char>(i));
        CHECK_EQUAL(p.position[0], i + 0.5);
        CHECK_EQUAL(p.position[2], -1.0 * i);
        CHECK_EQUAL(p.id, i);
        UNTOUCHED(reinterpret_cast<const char*>(&p) + 1, offsetof(Particle, position) - 1, 0x55);
      }
    }
  }
  OK(MPI_Type_free(&exact));
  OK(MPI_Type_free(&particle));
}

// Fewer elements than a whole datatype: Get_count is undefined, Get_elements exact.
void part_of_a_datatype() {
  MPI_Datatype pair;
  OK(MPI_Type_vector(2, 1, 2, MPI_INT, &pair));
  OK(MPI_Type_commit(&pair));
  int data[16] = {1, 2, 3};
  if (check::rank == 0) OK(MPI_Send(data, 3, MPI_INT, 1, 0, MPI_COMM_WORLD));
  if (check::rank == 1) {
    MPI_Status status;
    OK(MPI_Recv(data, 4, pair, 0, 0, MPI_COMM_WORLD, &status));
    int count = 0, elements = 0;
    OK(MPI_Get_count(&status, pair, &count));
    OK(MPI_Get_elements(&status, pair, &elements));
    CHECK_EQUAL(count, MPI_UNDEFINED);
    CHECK_EQUAL(elements, 3);
    CHECK_EQUAL(data[2], 2);
    CHECK_EQUAL(data[3], 3); // the second pair starts one int after the first one's end
  }
  OK(MPI_Type_free(&pair));
}

// The datatype may be freed while its message is under way.
void freed_datatype() {
  const int n = 100000;
  std::vector<int> data(2 * n, check::rank);
  MPI_Datatype type;
  OK(MPI_Type_vector(n, 1, 2, MPI_INT, &type));
  OK(MPI_Type_commit(&type));
  MPI_Request request = MPI_REQUEST_NULL;
  if (check::rank == 0) {
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<int>(i);
    OK(MPI_Isend(data.data(), 1, type, 1, 0, MPI_COMM_WORLD, &request));
  } else if (check::rank == 1) {
    OK(MPI_Irecv(data.data(), 1, type, 0, 0, MPI_COMM_WORLD, &request));
  }
  OK(MPI_Type_free(&type));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  if (check::rank == 1)
    for (std::size_t i = 0; i < data.size(); i += 2)
      CHECK_EQUAL(data[i], static_cast<int>(i));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"every_pair_of_layouts", every_pair_of_layouts},
                     {"structs", structs},
                     {"part_of_a_datatype", part_of_a_datatype},
                     {"freed_datatype", freed_datatype}});
}
