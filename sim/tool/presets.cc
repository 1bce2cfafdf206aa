// SPDX-License-Identifier: BSD-3-Clause
#include "sim/tool/presets.h"

#include "base/error.h"
#include "boot/job_report.h"
#include "sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace macadam::sim {
namespace {

namespace fs = std::filesystem;

// From the place of the running program, so that the tree may be moved.
fs::path preset_folder() {
  return fs::canonical("/proc/self/exe").parent_path().parent_path() / MACADAM_DATADIR /
         "macadam/presets";
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(preset_folder(), error))
    names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

Model read_file(const fs::path& path) {
  std::ifstream file(path);
  if (!file) base::fail(MPI_ERR_ARG, "{} cannot be read: {}", path.string(), std::strerror(errno));
  Model model =
      read_model({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}, path);
  if (model.name.empty()) model.name = path.stem();
  return model;
}

} // namespace

Model load_preset(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".json")) return read_file(name);
  const std::vector<std::string> names = preset_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    base::fail(MPI_ERR_ARG, "there is no preset {}; there are {}, or give a JSON file", name,
               fmt::join(names, ", "));
  return read_file(preset_folder() / (name + ".json"));
}

std::string describe_presets() {
  std::string page;
  for (const std::string& name : preset_names())
    page += fmt::format("{:<20}{}\n", name, load_preset(name).description);
  return page;
}

void print_reports(const World& world) {
  for (int job = 0; job < world.jobs(); ++job)
    if (const auto& reports = world.final_reports(job); !reports.empty())
      std::fputs(boot::give_report(reports, job > 0 ? fmt::format("job-{}", job + 1) : "",
                                   job > 0 ? fmt::format("job {}", job + 1) : "the job")
                     .c_str(),
                 stderr);
}

} // namespace macadam::sim
