// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/info.h"

#include "base/settings.h"
#include "boot/configuration.h"
#include "boot/machine.h"
#include "coll/level_rules.h"
#include "net/shm/bulk/copy.h"
#include "tools/macadam/adapters.h"

#include <mpi.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace macadam::tools {
namespace {

using Json = nlohmann::json;

// What the library says of itself, or why it cannot be loaded.
std::string library_line(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return fmt::format("cannot be loaded: {}", dlerror());
  using GetVersion = int(char*, int*);
  auto* const get_version =
      reinterpret_cast<GetVersion*>(dlsym(library, "MPI_Get_library_version"));
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  if (!get_version || get_version(version.data(), &length) != MPI_SUCCESS)
    return path + " does not tell its version";
  return fmt::format("{}\n            {}", path, version.data());
}

// Whether one process may copy from another's memory, tried out by a child on this process: so
// would one rank try it on another. Empty if it may.
std::string why_no_cross_copy() {
  const std::uint64_t word = 0x6d61636164616d;
  int ends[2];
  if (pipe(ends) != 0) return "no pipe to try it with";
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    const std::string reason = net::shm::probe_cross_copy(
        net::shm::real_system(), parent, reinterpret_cast<std::uint64_t>(&word), word);
    const ssize_t written = write(ends[1], reason.data(), reason.size());
    _exit(written == static_cast<ssize_t>(reason.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::array<char, 512> reason{};
  const ssize_t bytes = read(ends[0], reason.data(), reason.size() - 1);
  close(ends[0]);
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || bytes < 0)
    return "it could not be tried";
  return {reason.data(), static_cast<std::size_t>(bytes)};
}

std::string transports_section(const base::Settings& settings) {
  const std::string reason = why_no_cross_copy();
  return fmt::format("transports\n"
                     "  shm       ranks on this machine; cross-memory attach {}\n{}{}",
                     reason.empty() ? "works" : "does not work: " + reason, rdma_section(settings),
                     ofi_section(settings));
}

std::string settings_section(const boot::Configuration& configuration) {
  std::string text = fmt::format("settings (* from the environment, t from {})\n",
                                 configuration.file.empty() ? boot::tuned_file() + ", not used"
                                                            : configuration.file);
  const base::Settings defaults;
  for (const base::SettingRow& row : base::setting_rows()) {
    std::string name = std::string("MACADAM_") + row.name;
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    const std::string value = base::show(configuration.settings, row);
    const std::string tuned = base::show(configuration.without_environment, row);
    const char origin = value != tuned ? '*' : value != base::show(defaults, row) ? 't' : ' ';
    const std::string_view unit = row.unit; // or the choices
    text += fmt::format("{} {:<25}{:<12}{}{}\n", origin, name, value, row.help,
                        unit.empty() || unit == "count" ? "" : fmt::format(" ({})", unit));
  }
  return text;
}

// Small & Yuan's Table 1 with this machine's thresholds.
std::string protocols_section(const base::Settings& settings) {
  const std::string late =
      settings.rendezvous == base::Rendezvous::read ? "SEND_RNDV read" : "SEND_RNDV write";
  const auto row = [](const std::string& size, std::string_view sender, std::string_view receiver,
                      std::string_view both) {
    return fmt::format("  {:<22}{:<18}{:<18}{}\n", size, sender, receiver, both);
  };
  const auto up_to = [](std::int64_t bytes) { return fmt::format("up to {} bytes", bytes); };
  std::string text = "protocols by size and by who is early (shm)\n" +
                     row("", "sender", "receiver", "both") +
                     row(up_to(settings.shm_eager), "EAGER", "EAGER", "EAGER");
  if (settings.protocols == base::Protocols::sender) return text + row("larger", late, late, late);
  if (settings.shm_hybrid > settings.shm_eager)
    text += row(up_to(settings.shm_hybrid), "HYBRID", "RECV_RNDV", "HYBRID");
  return text + row("larger", late, "RECV_RNDV", "RECV_RNDV");
}

std::string collectives_section(const base::Settings& settings) {
  const std::string over_tcp =
      settings.levels.empty()
          ? fmt::format(
                "  on several machines over TCP (algorithm, bytes, ranks of a machine):\n  {}\n",
                coll::levels_over_tcp)
          : "";
  return fmt::format(
      "collectives: the first line that fits is taken (bytes of the vector for bcast "
      "and reductions,\nof one rank's block for the others)\n"
      "  {:<16}{:<12}{:<16}{}\n{}{}",
      "", "ranks", "bytes", "algorithm", coll::describe(coll::RuleTable(settings.levels).rules()),
      over_tcp);
}

} // namespace

Installation find_installation() {
  const auto prefix = std::filesystem::canonical("/proc/self/exe").parent_path().parent_path();
  return {prefix / MACADAM_LIBDIR / "libmpi_abi.so.1",
          prefix / MACADAM_DATADIR / "macadam/api.json",
          prefix / MACADAM_DATADIR / "macadam/report.html"};
}

std::string info_page(const Installation& installation) {
  const boot::Configuration configuration = boot::read_configuration(coll::read_levels);
  const base::Settings& settings = configuration.settings;
  std::string warnings;
  for (const std::string& warning : configuration.warnings)
    warnings += "warning: " + warning + "\n";
  return fmt::format("Macadam {}, MPI 5.0 with the standard ABI\n"
                     "  library   {}\n"
                     "  host      {}, {} hardware threads for ranks\n\n{}\n{}\n{}\n{}{}",
                     MACADAM_VERSION, library_line(installation.library), boot::host_name(),
                     boot::usable_cores(), transports_section(settings),
                     protocols_section(settings), collectives_section(settings),
                     settings_section(configuration), warnings.empty() ? "" : "\n" + warnings);
}

std::string api_page(const Installation& installation) {
  std::ifstream file(installation.functions);
  if (!file)
    throw std::runtime_error(installation.functions +
                             " cannot be read; it is installed with the library");
  std::vector<std::string> order;
  std::map<std::string, std::string> chapters;
  std::size_t total = 0;
  try {
    const Json table = Json::parse(file);
    for (const Json& function : table.at("functions")) {
      const auto chapter = function.at("chapter").get<std::string>();
      if (!chapters.contains(chapter)) order.push_back(chapter);
      chapters[chapter] += fmt::format("  {}\n", function.at("name").get<std::string>());
      ++total;
    }
  } catch (const Json::exception& error) {
    throw std::runtime_error(installation.functions + " is damaged: " + error.what());
  }
  std::string page;
  for (const std::string& name : order)
    page += fmt::format("{}\n{}\n", name, chapters[name]);
  return page + fmt::format("{} functions of MPI 5.0, all of them written\n", total);
}

} // namespace macadam::tools
