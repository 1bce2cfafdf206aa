// SPDX-License-Identifier: BSD-3-Clause
#include "sim/tool/programs.h"

#include "base/error.h"
#include "tools/mpiexec/program_file.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <unistd.h>

namespace macadam::sim {
namespace {

namespace fs = std::filesystem;

constexpr int not_started = 127; // as a shell says it

// The arguments as one rank's main() gets them, its own to change.
class Arguments {
 public:
  explicit Arguments(const std::vector<std::string>& words) : words_(words) {
    for (std::string& word : words_)
      pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }
  [[nodiscard]] int count() const { return static_cast<int>(words_.size()); }
  char** values() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

} // namespace

World::Program Programs::make(const std::string& path, const std::vector<std::string>& command,
                              const std::string& folder) {
  std::error_code missing;
  const fs::path file = fs::canonical(path, missing);
  // What is wrong with a file that is not there, the module tells.
  Module& module = modules_.try_emplace(missing ? path : file.string(), path).first->second;
  return [&module, command, file = file.string(), folder](int) {
    Rank& self = *Rank::current();
    self.executable = file;
    // Loaded in the rank itself: its initialisers may ask for the time, or call MPI_Initialized.
    if (!folder.empty() && !self.enter_folder(folder.c_str())) return not_started;
    Module::Main* const main = module.load();
    const auto arguments = std::make_unique<Arguments>(command);
    return main(arguments->count(), arguments->values(), environ);
  };
}

World::Program Programs::first(const std::vector<std::string>& command) {
  World::Program program = make(command.front(), command, {});
  beside_ = fs::canonical(command.front()).parent_path();
  return program;
}

World::Program Programs::find(const boot::SpawnProgram& asked) {
  tools::Program program;
  program.command = asked.command;
  program.folder = asked.folder;
  program.path = asked.path;
  const char* const path = std::getenv("PATH");
  try {
    const std::string file =
        tools::find_program(program, beside_ + ':' + (path != nullptr ? path : ""));
    return make(file, asked.command, asked.folder == fs::current_path() ? "" : asked.folder);
  } catch (const base::Error& error) {
    throw base::Error(MPI_ERR_SPAWN, error.text);
  }
}

} // namespace macadam::sim
