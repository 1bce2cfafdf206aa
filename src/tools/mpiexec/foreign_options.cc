// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/foreign_options.h"

#include <array>
#include <iostream>
#include <string>

namespace macadam::tools {
namespace {

struct Foreign {
  const char* names;
  int values; // that follow it
  bool refused;
  const char* remark; // why it changes nothing, or what to do instead

  [[nodiscard]] std::string name() const {
    const std::string all = names;
    return all.substr(0, all.find(','));
  }
};

constexpr std::array foreign{
    Foreign{"--oversubscribe", 0, false, "there may always be more ranks than cores"},
    Foreign{"--allow-run-as-root", 0, false, "root may always"},
    Foreign{"--mca,--gmca,--pmca", 2, false,
            "parameters of Open MPI mean nothing to Macadam; \"macadam info\" lists its settings"},
    Foreign{"--envall,--genvall", 0, false, "all variables are always passed on"},
    Foreign{"--quiet,-q", 0, false, "mpiexec prints nothing unasked"},
    Foreign{"--configfile", 1, true, "it stands alone, in front: mpiexec -configfile FILE"},
};

} // namespace

void add_foreign_options(CLI::App& app) {
  for (const Foreign& option : foreign) {
    CLI::Option* const added = option.values == 0
                                   ? app.add_flag(option.names)
                                   : app.add_option(option.names)
                                         ->type_size(option.values)
                                         ->option_text(option.values == 1 ? "FILE" : "NAME VALUE");
    added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->description(option.remark);
    added->group(option.refused ? "" : "Options of other launchers, which change nothing here");
  }
}

void check_foreign_options(const CLI::App& app, bool verbose,
                           const std::map<std::string, std::string>& typed) {
  for (const Foreign& option : foreign) {
    if (app.count(option.name()) == 0) continue;
    const std::string& name = typed.at(app.get_option(option.name())->get_name());
    if (option.refused)
      throw CLI::ValidationError(name + " is for other launchers: " + option.remark);
    if (verbose) std::cerr << "mpiexec: " << name << " changes nothing: " << option.remark << '\n';
  }
}

} // namespace macadam::tools
