// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace macadam::sim {

// What a user gave after a pattern's name: "bytes=64K,iterations=10".
class Parameters {
 public:
  // Throws base::Error (MPI_ERR_ARG) for what is no name=value.
  explicit Parameters(std::span<const std::string> words);

  // The value, or the pattern's own default. Throws base::Error for what is no such number.
  std::int64_t number(const std::string& name, std::int64_t otherwise);
  // Several numbers, "1:2:3".
  std::vector<std::int64_t> numbers(const std::string& name, std::vector<std::int64_t> otherwise);
  std::string text(const std::string& name, const std::string& otherwise);

  // Throws base::Error for a name that nobody has asked for, with those that were.
  void all_known() const;

 private:
  const std::string* find(const std::string& name);
  std::map<std::string, std::string> values_;
  std::map<std::string, bool> asked_;
};

// One measured line of a pattern: what was varied, and the results.
struct Row {
  std::string what;
  std::map<std::string, double> values; // names with their units: "time_us"
};

// The surroundings of a pattern in one rank, between MPI_Init and MPI_Finalize.
struct Context {
  int rank;
  int size;
  Parameters parameters;
  std::vector<Row>& rows; // for rank 0 to add to
};

// A built-in program: the communication of a benchmark or an experiment, without its arithmetic.
struct Pattern {
  const char* name;
  const char* text;
  void (*run)(Context&);
  int ranks = 0; // that it needs, 0: any number
};

// All of them.
std::span<const Pattern> patterns();
// Throws base::Error with the names that there are.
const Pattern& find_pattern(const std::string& name);

// By source file.
std::span<const Pattern> collective_patterns();
std::span<const Pattern> nas_patterns();
std::span<const Pattern> experiment_patterns();
std::span<const Pattern> gravel_patterns();
std::span<const Pattern> topology_patterns();
std::span<const Pattern> level_patterns();

} // namespace macadam::sim
