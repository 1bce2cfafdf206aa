// SPDX-License-Identifier: BSD-3-Clause
// The whole test framework of the MPI programs: a program is a list of named parts; each part
// checks itself on all ranks. A failed check prints rank, place and values and aborts the job, so
// that a wrong result is never hidden behind a hang. `program part...` runs only those parts.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace check {

inline int rank = 0; // in MPI_COMM_WORLD
inline int size = 1;
inline const char* part = "start"; // the part that runs

[[noreturn]] inline void fail(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "rank %d: %s:%d: in \"%s\": %s\n", rank, file, line, part, what.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

inline std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::to_string(code) + " (" + text + ")";
}

inline int error_class(int code) {
  int result = code;
  MPI_Error_class(code, &result);
  return result;
}

inline void succeeded(int code, const char* call, const char* file, int line) {
  if (code != MPI_SUCCESS) fail(file, line, std::string(call) + " returned " + error_text(code));
}

inline void failed_with(int code, int expected, const char* call, const char* file, int line) {
  if (error_class(code) != expected)
    fail(file, line,
         std::string(call) + " returned " + error_text(code) + ", expected " +
             error_text(expected));
}

template <class Found, class Expected>
void equal(const Found& found, const Expected& expected, const char* text, const char* file,
           int line) {
  if (found == static_cast<Found>(expected)) return;
  std::ostringstream message;
  message << text << " is " << found << ", expected " << static_cast<Found>(expected);
  fail(file, line, message.str());
}

// A reproducible byte for place `i` of the message number `seed`.
inline std::uint64_t pattern_word(std::uint64_t seed, std::size_t word) {
  const std::uint64_t x = (seed + 1) * 0x9E3779B97F4A7C15u + word * 0xBF58476D1CE4E5B9u;
  return x ^ x >> 29;
}
inline unsigned char pattern(std::uint64_t seed, std::size_t i) {
  return static_cast<unsigned char>(pattern_word(seed, i / 8) >> (8 * (i % 8)));
}

inline void fill(void* buffer, std::size_t bytes, std::uint64_t seed) {
  auto* data = static_cast<unsigned char*>(buffer);
  std::size_t i = 0;
  for (; i + 8 <= bytes; i += 8) { // little-endian, as all that this runs on
    const std::uint64_t word = pattern_word(seed, i / 8);
    std::memcpy(data + i, &word, 8);
  }
  for (; i < bytes; ++i)
    data[i] = pattern(seed, i);
}

inline std::vector<unsigned char> message(std::size_t bytes, std::uint64_t seed) {
  std::vector<unsigned char> data(bytes);
  fill(data.data(), bytes, seed);
  return data;
}

inline void holds_pattern(const void* buffer, std::size_t bytes, std::uint64_t seed,
                          const char* file, int line) {
  const auto* data = static_cast<const unsigned char*>(buffer);
  std::size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + i, 8);
    if (word != pattern_word(seed, i / 8)) break;
  }
  for (; i < bytes; ++i)
    if (data[i] != pattern(seed, i))
      fail(file, line,
           "byte " + std::to_string(i) + " of " + std::to_string(bytes) + " of message " +
               std::to_string(seed) + " is " + std::to_string(data[i]) + ", expected " +
               std::to_string(pattern(seed, i)));
}

inline void all_bytes(const void* buffer, std::size_t bytes, unsigned char value, const char* file,
                      int line) {
  const auto* data = static_cast<const unsigned char*>(buffer);
  for (std::size_t i = 0; i < bytes; ++i)
    if (data[i] != value)
      fail(file, line, "byte " + std::to_string(i) + " was written, but must not be");
}

// With PROGRAMS_LIGHT in the environment the same is tested with fewer messages: for an emulated
// machine, where each costs a hundred times what it does elsewhere.
inline bool light() {
  static const bool wanted = std::getenv("PROGRAMS_LIGHT") != nullptr;
  return wanted;
}
inline int times(int usually, int if_light) {
  return light() ? if_light : usually;
}

// The list, if light without its last and longest.
inline std::vector<int> sizes(std::vector<int> all, std::size_t left_out = 1) {
  if (light()) all.resize(all.size() - left_out);
  return all;
}

// Sizes around every threshold a transport may have; if light, of those that RDMA has.
inline const std::vector<int>& message_sizes() {
  static const std::vector<int> all = {
      0,     1,     7,     8,     9,     63,    64,    65,     255,    256,    257,     1024,
      2047,  2048,  2049,  4095,  4096,  4097,  8191,  8192,   8193,   12288,  16384,   16385,
      32767, 32768, 32769, 40000, 65535, 65536, 65537, 131072, 131073, 262145, 1048576, 4194307};
  static const std::vector<int> few = {0,    1,    9,    236,  237,   256,   257,   4095,
                                       4097, 8191, 8192, 8193, 40000, 65536, 65537, 262145};
  return light() ? few : all;
}

inline void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// Keeps the processor busy without MPI.
inline void compute_ms(double ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(ms * 1e-3);
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Whether the library under test is ours: a few parts check what only Macadam promises.
inline bool is_macadam() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::strstr(text, "Macadam") != nullptr;
}

// Tells the processes of `comm` apart in time: returns in rank `later` only after all others have
// been told to go on, without a message on `comm` itself that could disturb what is tested.
inline void token_send(int to) {
  MPI_Send(nullptr, 0, MPI_BYTE, to, 32001, MPI_COMM_WORLD);
}
inline void token_recv(int from) {
  MPI_Recv(nullptr, 0, MPI_BYTE, from, 32001, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

struct Part {
  const char* name;
  std::function<void()> run;
};

inline int run_parts(int argc, char** argv, const std::vector<Part>& parts) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int done = 0;
  for (const Part& each : parts) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i)
      wanted = wanted || std::strcmp(argv[i], each.name) == 0;
    if (!wanted) continue;
    part = each.name;
    each.run();
    succeeded(MPI_Barrier(MPI_COMM_WORLD), "the barrier after a part", __FILE__, __LINE__);
    ++done;
  }
  part = "end";
  if (done == 0) fail(__FILE__, __LINE__, "no part has the name that was asked for");
  const int last_rank = rank;
  succeeded(MPI_Finalize(), "MPI_Finalize", __FILE__, __LINE__);
  if (last_rank == 0) std::printf("%s: %d parts passed on %d ranks\n", argv[0], done, size);
  return 0;
}

inline int run(int argc, char** argv, const std::vector<Part>& parts) {
  succeeded(MPI_Init(&argc, &argv), "MPI_Init", __FILE__, __LINE__);
  return run_parts(argc, argv, parts);
}

} // namespace check

#define CHECK(condition)                                                                           \
  ((condition) ? void() : check::fail(__FILE__, __LINE__, "not true: " #condition))
#define CHECK_EQUAL(found, expected) check::equal(found, expected, #found, __FILE__, __LINE__)
// The MPI call must succeed.
#define OK(...) check::succeeded((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
// The MPI call must return an error of this class.
#define FAILS(error, ...) check::failed_with((__VA_ARGS__), error, #__VA_ARGS__, __FILE__, __LINE__)
#define HOLDS(buffer, bytes, seed)                                                                 \
  check::holds_pattern(buffer, static_cast<std::size_t>(bytes), seed, __FILE__, __LINE__)
#define UNTOUCHED(buffer, bytes, value)                                                            \
  check::all_bytes(buffer, static_cast<std::size_t>(bytes), value, __FILE__, __LINE__)
