// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/program_file.h"

#include "base/error.h"

#include <cerrno>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace macadam::tools {
namespace {

bool is_program(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

} // namespace

std::string hint_for_path(const Program& program, int error) {
  const std::string& name = program.command.front();
  const bool by_path = name.find('/') != std::string::npos;
  if (error != (by_path ? EACCES : ENOENT)) return {};
  const std::string folder = program.folder.empty() ? "." : program.folder;
  const std::string here = name.starts_with('/') ? name : folder + "/" + name;
  struct stat about {};
  if (stat(here.c_str(), &about) != 0) return {};
  if (S_ISDIR(about.st_mode)) return by_path ? "; it is a folder" : "";
  const bool runs = access(here.c_str(), X_OK) == 0;
  if (by_path) return runs ? "" : "; it is not executable: chmod +x " + name;
  return "; the folder has one of this name, which is " +
         (runs ? "started as ./" + name : "not executable: chmod +x " + name);
}

std::string find_program(const Program& program, const std::string& path) {
  struct stat about {};
  if (stat(program.folder.c_str(), &about) != 0 || !S_ISDIR(about.st_mode))
    base::fail(MPI_ERR_SPAWN, "the folder {}, in which {} should run, cannot be entered",
               program.folder, program.command.front());
  const std::string& name = program.command.front();
  const auto within = [&](const std::string& folder, const std::string& file) {
    const std::string below = folder.empty() ? file : folder + "/" + file;
    return below.starts_with('/') ? below : program.folder + "/" + below;
  };
  if (name.find('/') != std::string::npos) {
    if (is_program(within("", name))) return within("", name);
    base::fail(MPI_ERR_SPAWN, "{} is no program that can be run", within("", name));
  }
  std::vector<std::string> folders = program.path;
  std::istringstream list(path);
  for (std::string folder; std::getline(list, folder, ':');)
    folders.push_back(folder);
  for (const std::string& folder : folders)
    if (is_program(within(folder, name))) return within(folder, name);
  base::fail(MPI_ERR_SPAWN, "no program {} is in {}{}{}", name,
             program.path.empty() ? "" : "the folders of the info key path, or ", "PATH",
             hint_for_path(program, ENOENT));
}

} // namespace macadam::tools
