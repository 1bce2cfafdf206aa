// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"

#include <string>
#include <vector>

namespace macadam::boot {

// The settings of a process and where they come from: the defaults, then the file that
// `macadam tune` writes, then the environment.
struct Configuration {
  base::Settings settings;
  base::Settings without_environment; // ... of defaults and file alone
  std::string file;                   // its path, if it is used
  std::vector<std::string> warnings;  // one line each, with the remedy
};

// Reads `levels` (coll/level_rules.h), which this layer does not understand; throws base::Error.
using ReadLevels = void (*)(const std::string& levels);

// Warns of misspelt variables and refused values. A file that is damaged, or that another user may
// have written, is ignored as a whole, with a warning. Without `read_levels` that line is not read.
Configuration read_configuration(ReadLevels read_levels = nullptr);
// The same without the file, for runs that must not depend on the machine.
Configuration read_environment_only();

// $XDG_CONFIG_HOME/macadam/tuned.conf, or that below ~/.config; empty if neither is known.
std::string tuned_file();

// Writes `text` to `path`, with the folders that are missing; a file that is there is replaced at
// once and as a whole. Throws base::Error if it cannot be written or belongs to another user.
void write_tuned_file(const std::string& path, const std::string& text);

// Sets what the lines of a tuned file say: `name = value`, `#` begins a comment. Beside settings
// there is `levels`. Throws base::Error for the first line that is neither, with its number; then
// `settings` is as before.
void parse_tuned(base::Settings& settings, const std::string& text,
                 ReadLevels read_levels = nullptr);

} // namespace macadam::boot
