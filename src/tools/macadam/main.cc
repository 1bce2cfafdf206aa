// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/info.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace {

// Becomes the simulator, a program of its own beside this one: it is as large as the library.
void run_simulator(char** arguments) {
  const auto here = std::filesystem::canonical("/proc/self/exe").parent_path();
  const std::string program = here / "macadam-simulate";
  execv(program.c_str(), arguments);
  throw std::runtime_error(program + " cannot be started: " + std::strerror(errno) +
                           "; it is installed together with macadam");
}

} // namespace

int main(int argc, char** argv) {
  using namespace macadam::tools;
  CLI::App app("Questions to and about the MPI library Macadam", "macadam");
  app.require_subcommand(1);
  app.set_version_flag("--version,-V", "Macadam " MACADAM_VERSION);
  CLI::App* const info = app.add_subcommand(
      "info", "Version, transports, protocols by message size, settings with their values");
  bool api = false;
  info->add_flag("--api", api, "The functions of MPI instead: which are written, and how many");
  CLI::App* const simulate = app.add_subcommand(
      "simulate", "Run an MPI program on a simulated RDMA network, in virtual time");
  simulate->prefix_command()->set_help_flag(); // all that follows is for the simulator
  CLI11_PARSE(app, argc, argv);
  try {
    if (simulate->parsed()) run_simulator(argv + 1);
    const Installation installation = find_installation();
    std::fputs((api ? api_page(installation) : info_page(installation)).c_str(), stdout);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "macadam: %s\n", error.what());
    return 1;
  }
  return 0;
}
