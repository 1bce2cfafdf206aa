// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/tune.h"

#include "boot/configuration.h"
#include "boot/machine.h"
#include "net/rdma/ibverbs/device.h"
#include "net/rdma/measure.h"
#include "tools/macadam/command.h"
#include "tools/macadam/level_tuning.h"
#include "tools/macadam/load.h"
#include "tools/macadam/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace macadam::tools {
namespace {

using Times = std::map<std::int64_t, double>; // microseconds by bytes

constexpr std::int64_t first_size = 1 << 10;
// A tie is for the simpler protocol; what sets the sender free at once may cost something.
constexpr double eager_patience = 1.05;
constexpr double hybrid_patience = 1.25;

// A network, and how far its thresholds may go even where the protocol for smaller messages is the
// fastest: EAGER costs the receiver memory (over RDMA that of every receive), HYBRID the sender.
struct Network {
  const char* name;   // of MACADAM_NETWORK, and of its settings
  const char* prefix; // of their variables
  std::int64_t longest_eager;
  std::int64_t longest_hybrid;
};
constexpr Network shared_memory = {"shm", "MACADAM_SHM_", 256 << 10, 1 << 20};
constexpr Network adapters = {"rdma", "MACADAM_RDMA_", 16 << 10, 1 << 20};

std::vector<std::int64_t> sizes(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> all;
  for (std::int64_t bytes = first; bytes <= last; bytes *= 2)
    all.push_back(bytes);
  return all;
}

// Forces protocols by the two thresholds.
struct Forced {
  std::int64_t eager;
  std::int64_t hybrid;
};

// A line on the terminal, if there is one, that is gone at the end.
class Progress {
 public:
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  explicit Progress(std::string what) : what_(std::move(what)) {}
  ~Progress() { show(""); }

  void round(int done, int all) const {
    show(fmt::format("measuring {}: round {} of {}", what_, done, all));
  }

 private:
  static void show(const std::string& text) {
    if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r\033[K%s", text.c_str());
  }

  const std::string what_;
};

class Measurement {
 public:
  Measurement(const Network& network, bool quick)
      : network_(network), rounds_(quick ? 1 : 5), batches_(quick ? 1 : 11) {}

  // The two alternate, so that what disturbs the machine for a while disturbs both.
  [[nodiscard]] std::vector<Comparison> compare(const char* arrival,
                                                const std::vector<std::int64_t>& bytes,
                                                const Forced& smaller, const Forced& larger) const {
    Times of_smaller, of_larger;
    const Progress progress(fmt::format("{}, receiver {}", network_.name, arrival));
    for (int round = 0; round < rounds_; ++round) {
      progress.round(round + 1, rounds_);
      keep_best(of_smaller, run(arrival, bytes, smaller));
      keep_best(of_larger, run(arrival, bytes, larger));
    }
    std::vector<Comparison> result;
    for (const std::int64_t each : bytes)
      result.push_back({each, of_smaller.at(each), of_larger.at(each)});
    return result;
  }

 private:
  static void keep_best(Times& best, const Times& times) {
    for (const auto& [bytes, time] : times) {
      const auto [at, is_new] = best.try_emplace(bytes, time);
      if (!is_new) at->second = std::min(at->second, time);
    }
  }

  [[nodiscard]] Times run(const char* arrival, const std::vector<std::int64_t>& bytes,
                          const Forced& forced) const {
    const auto folder = std::filesystem::canonical("/proc/self/exe").parent_path();
    std::vector<std::string> command = {folder / "mpiexec", "-timeout", "60", "-n", "2"};
    const std::string prefix = network_.prefix;
    const auto set = [&](const std::string& variable, const std::string& value) {
      command.insert(command.end(), {"-env", variable, value});
    };
    set("MACADAM_NETWORK", network_.name);
    set(prefix + "EAGER", std::to_string(forced.eager));
    set(prefix + "HYBRID", std::to_string(forced.hybrid));
    set("MACADAM_PROTOCOLS", "customized");
    set("MACADAM_REPORT", "no");
    command.insert(command.end(), {folder / "macadam-tune", arrival, std::to_string(batches_)});
    for (const std::int64_t each : bytes)
      command.push_back(std::to_string(each));
    std::istringstream lines(output_of(command));
    Times times;
    std::int64_t size = 0;
    for (double time = 0; lines >> size >> time;)
      times[size] = time;
    if (times.size() != bytes.size())
      throw std::runtime_error(fmt::format("'{}' printed {} of {} times", fmt::join(command, " "),
                                           times.size(), bytes.size()));
    return times;
  }

  const Network& network_;
  const int rounds_;
  const int batches_;
};

struct Result {
  std::string page; // to print
  std::string file; // lines of it
};

void add(Result& result, const std::string& setting, const char* smaller, const char* larger,
         const std::vector<Comparison>& comparisons, std::int64_t threshold) {
  result.page += fmt::format("\n{}\n  {:>10}{:>16}{:>16}\n", setting, "bytes", smaller, larger);
  for (const Comparison& each : comparisons)
    result.page += fmt::format("  {:>10}{:>13.2f} us{:>13.2f} us{}\n", each.bytes, each.smaller,
                               each.larger, each.bytes == threshold ? "  <- up to here" : "");
  result.file += fmt::format("{} = {}\n", setting, threshold);
}

void measure_thresholds(const Network& network, bool quick, Result& result) {
  constexpr std::int64_t below_all = first_size / 2;
  const std::string name = network.name;
  const Measurement measure(network, quick);
  const std::vector<Comparison> eager = measure.compare(
      "ready", sizes(first_size, network.longest_eager),
      {network.longest_eager, network.longest_hybrid}, {below_all, network.longest_hybrid});
  const std::int64_t eager_bytes = choose_threshold(eager, eager_patience, first_size);
  add(result, name + "_eager", "EAGER", "RECV_RNDV", eager, eager_bytes);
  const std::vector<Comparison> hybrid =
      measure.compare("late", sizes(2 * eager_bytes, network.longest_hybrid),
                      {below_all, network.longest_hybrid}, {below_all, below_all});
  add(result, name + "_hybrid", "HYBRID", "SEND_RNDV", hybrid,
      choose_threshold(hybrid, hybrid_patience, eager_bytes));
}

// Sur et al., section 4.2. A queue of which the watermark is more than three quarters would be
// refilled all the time.
void measure_watermark(const base::Settings& settings, Result& result) {
  const std::unique_ptr<net::rdma::Device> device =
      net::rdma::ibverbs::open_device(settings.rdma_device);
  const net::rdma::ProgressThreadFigures figures = net::rdma::measure_progress_thread(*device);
  const std::int64_t watermark = net::rdma::measured_watermark(figures);
  result.page += fmt::format("\nrdma_watermark\n  {}: the progress thread wakes up in {:.1f} us, "
                             "in which {} of {:.0f} messages "
                             "per second arrive\n",
                             device->name(), figures.wake_up * 1e6, watermark, figures.rate);
  result.file += fmt::format("rdma_watermark = {}\n", watermark);
  const std::int64_t enough = base::Settings{}.rdma_shared;
  std::int64_t shared = enough;
  while (shared * 3 / 4 < watermark)
    shared *= 2;
  if (shared != enough) result.file += fmt::format("rdma_shared = {}\n", shared);
}

// For `macadam model` and reports: M_rc of Sur et al., section 3.3.
void measure_memory(const base::Settings& settings, Result& result) {
  const std::unique_ptr<net::rdma::Device> device =
      net::rdma::ibverbs::open_device(settings.rdma_device);
  const std::string bytes = net::rdma::model::text_of(measure_driver(*device, settings));
  result.page +=
      fmt::format("\nrdma_driver\n  {}: bytes of its driver, for an entry of each queue: {}\n",
                  device->name(), bytes);
  result.file += fmt::format("rdma_driver = {}\n", bytes);
}

void measure_adapter(bool quick, Result& result) {
  const base::Settings settings = boot::read_configuration().settings;
  const net::rdma::ibverbs::Survey survey = net::rdma::ibverbs::survey(settings.rdma_device);
  if (!survey.trouble.empty()) {
    result.page += "\nrdma: not measured: " + survey.trouble + "\n";
    return;
  }
  measure_watermark(settings, result);
  measure_memory(settings, result);
  measure_thresholds(adapters, quick, result);
}

// The preset's values that are known better here: how fast memory is copied and, where there is an
// adapter, its bandwidth.
void measure_network(const TuneQuestion& question, Result& result) {
  if (question.network.empty()) return;
  std::string change = fmt::format("copy_mb_per_s={:.0f}", copy_mb_per_s());
  const base::Settings settings = boot::read_configuration().settings;
  if (net::rdma::ibverbs::survey(settings.rdma_device).trouble.empty()) {
    const auto device = net::rdma::ibverbs::open_device(settings.rdma_device);
    change += fmt::format(",bandwidth_mb_per_s={:.0f}", device->limits().bytes_per_s / 1e6);
  }
  const std::vector<LevelTimes> times = measure_levels(question.network, change, question.quick);
  result.page +=
      fmt::format("\nlevels\n  8 machines of {}, {}, simulated\n  {:<12}{:>8}{:>10}{:>16}"
                  "{:>16}{:>16}\n",
                  question.network, change, "", "ranks", "bytes", "one level", "leaders", "slices");
  for (const LevelTimes& each : times) {
    result.page += fmt::format("  {:<12}{:>8}{:>10}{:>13.2f} us", each.collective, each.per_machine,
                               each.bytes, each.one_level);
    for (const char* const algorithm : {"leaders", "slices"}) {
      const auto found = each.two_levels.find(algorithm);
      result.page += found != each.two_levels.end() ? fmt::format("{:>13.2f} us", found->second)
                                                    : fmt::format("{:>16}", "");
    }
    result.page += '\n';
  }
  result.file += fmt::format("levels = {}\n", choose_levels(times));
}

// Figures of a machine that does something else meanwhile are worth nothing. Says so; empty if it
// does not.
std::string trouble_by(const Load& load) {
  constexpr double most = 0.5; // processors
  const double others = load.of_others();
  if (others < most) return {};
  return fmt::format("other programs use {:.1f} processors of this machine", others);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm date = {};
  char text[16] = "";
  if (localtime_r(&now, &date) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d", &date);
  return text;
}

} // namespace

std::int64_t choose_threshold(std::span<const Comparison> comparisons, double patience,
                              std::int64_t least) {
  std::int64_t threshold = least;
  for (const Comparison& each : comparisons) {
    if (each.smaller > patience * each.larger) break;
    threshold = each.bytes;
  }
  return threshold;
}

TuneAnswer tune(const TuneQuestion& question) {
  constexpr const char* remedy =
      "run this when nothing else runs, with --print to look only, or with --despite-load";
  const std::string path = question.output.empty() ? boot::tuned_file() : question.output;
  if (path.empty() && !question.only_print)
    throw std::runtime_error("neither XDG_CONFIG_HOME nor HOME is set; pass --output");
  if (!question.network.empty()) check_network(question.network);
  const bool must_be_idle = !question.only_print && !question.despite_load;
  const Load before;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  if (const std::string trouble = trouble_by(before); must_be_idle && !trouble.empty())
    throw std::runtime_error(trouble + ", nothing was measured; " + remedy);
  Result result;
  result.page = "Times of one exchange, by protocol\n";
  result.file = fmt::format(
      "# Measured by 'macadam tune' on {}, {}. Variables of the environment go before.\n",
      boot::host_name(), today());
  const Load meanwhile;
  measure_thresholds(shared_memory, question.quick, result);
  const std::string trouble = trouble_by(meanwhile); // what an adapter's driver uses is no trouble
  measure_adapter(question.quick, result);
  measure_network(question, result);
  if (!trouble.empty()) result.page += "\nMeanwhile " + trouble + ".\n";
  if (question.only_print) return {result.page + "\n" + result.file, {}};
  if (must_be_idle && !trouble.empty())
    return {result.page, "meanwhile " + trouble + ", nothing was written; " + remedy};
  boot::write_tuned_file(path, result.file);
  return {result.page + fmt::format("\n{}\nwritten to {}\n", result.file, path), {}};
}

} // namespace macadam::tools
