// SPDX-License-Identifier: BSD-3-Clause
#include "sim/compute_times.h"

#include "base/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sys/syscall.h>
#include <unistd.h>

namespace macadam::sim {
namespace {

using Json = nlohmann::json;

constexpr const char* format = "macadam compute times 1";

std::vector<Time> smoothed(const std::vector<Time>& times) {
  std::vector<Time> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  std::map<Time, Time> median; // of each group, by the least of it
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto last = std::upper_bound(first, sorted.end(), 2 * *first);
    median[*first] = *(first + (last - first) / 2);
    first = last;
  }
  std::vector<Time> result;
  for (const Time time : times)
    result.push_back(std::prev(median.upper_bound(time))->second);
  return result;
}

// As [time, how often in a row], in nanoseconds.
Json in_runs(const std::vector<Time>& times) {
  Json runs = Json::array();
  for (const Time time : times) {
    const Time ns = time / nanosecond;
    if (!runs.empty() && runs.back()[0] == ns)
      runs.back()[1] = runs.back()[1].get<int>() + 1;
    else
      runs.push_back({ns, 1});
  }
  return runs;
}

} // namespace

ComputeTimes::ComputeTimes(const std::string& path, int ranks)
    : ranks_(ranks), mode_(Mode::repeat) {
  std::ifstream stream(path);
  if (!stream)
    base::fail(MPI_ERR_ARG, "{} cannot be read: {}; --measure writes it", path,
               std::strerror(errno));
  try {
    const Json file = Json::parse(stream);
    if (file.at("format") != format)
      base::fail(MPI_ERR_ARG, "{}: the format is {}, needed \"{}\"", path, file.at("format").dump(),
                 format);
    if (file.at("ranks") != ranks)
      base::fail(MPI_ERR_ARG, "{} was measured with {} ranks, not {}; --measure writes another",
                 path, file.at("ranks").dump(), ranks);
    for (const Json& row : file.at("times")) {
      Place& place = places_[{row.at(0).get<int>(), row.at(1).get<std::uint64_t>(),
                              row.at(2).get<std::uint64_t>()}];
      for (const Json& run : row.at(3))
        place.times.insert(place.times.end(), run.at(1).get<std::size_t>(),
                           run.at(0).get<Time>() * nanosecond);
    }
  } catch (const Json::exception& error) {
    base::fail(MPI_ERR_ARG, "{} is no file of compute times: {}; --measure writes one", path,
               error.what());
  }
}

Time ComputeTimes::between(int rank, std::uint64_t from, std::uint64_t to, Time measured) {
  if (mode_ == Mode::measure) {
    places_[{rank, from, to}].times.push_back(measured);
    return measured;
  }
  const auto found = places_.find({rank, from, to});
  if (found == places_.end() || found->second.times.empty()) {
    ++missing_;
    return 0;
  }
  Place& place = found->second;
  const Time time = place.times[place.next];
  place.next = std::min(place.next + 1, place.times.size() - 1);
  return time;
}

void ComputeTimes::write(const std::string& path) const {
  Json rows = Json::array();
  for (const auto& [key, place] : places_)
    rows.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), in_runs(smoothed(place.times))});
  std::ofstream stream(path);
  stream << Json{{"format", format}, {"ranks", ranks_}, {"times", rows}}.dump() << '\n';
  stream.close();
  if (!stream) base::fail(MPI_ERR_OTHER, "{} cannot be written: {}", path, std::strerror(errno));
}

// Not the C library's function, which in the simulator is one of ours.
Time ComputeTimes::now() {
  timespec time;
  ::syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
  return (time.tv_sec * 1'000'000'000 + time.tv_nsec) * nanosecond;
}

Time ComputeTimes::cost_of_now() {
  Time least = never;
  for (int i = 0; i < 1000; ++i) {
    const Time before = now();
    least = std::min(least, now() - before);
  }
  return least;
}

} // namespace macadam::sim
