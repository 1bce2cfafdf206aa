// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/info.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  using namespace macadam::tools;
  CLI::App app("Questions to and about the MPI library Macadam", "macadam");
  app.require_subcommand(1);
  app.set_version_flag("--version,-V", "Macadam " MACADAM_VERSION);
  CLI::App* const info = app.add_subcommand(
      "info", "Version, transports, protocols by message size, settings with their values");
  bool api = false;
  info->add_flag("--api", api, "The functions of MPI instead: which are written, and how many");
  CLI11_PARSE(app, argc, argv);
  try {
    const Installation installation = find_installation();
    std::fputs((api ? api_page(installation) : info_page(installation)).c_str(), stdout);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "macadam: %s\n", error.what());
    return 1;
  }
  return 0;
}
