// SPDX-License-Identifier: BSD-3-Clause
#include "boot/configuration.h"

#include "base/descriptor.h"
#include "base/error.h"
#include "base/nearest.h"
#include "boot/local_job.h"
#include "boot/lone_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace macadam::boot {
namespace {

// MACADAM_* variables that are no settings of the library.
constexpr std::array reserved_variables = {job_variable, mpiexec_variable, "MACADAM_SSH",
                                           "MACADAM_CC", "MACADAM_CXX",    "MACADAM_FC"};

constexpr std::size_t longest_file = 64 << 10; // bytes; a written one has about 1,000

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

void parse_line(base::Settings& settings, std::string_view line, int number,
                ReadLevels read_levels) {
  line = trimmed(line.substr(0, line.find('#')));
  if (line.empty()) return;
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos)
    base::fail(MPI_ERR_ARG, "line {}: found '{}', needed 'name = value'", number, line);
  const std::string_view name = trimmed(line.substr(0, equals));
  const std::string value(trimmed(line.substr(equals + 1)));
  const auto read = [&](auto&& set) {
    try {
      set();
    } catch (const base::Error& error) {
      base::fail(MPI_ERR_ARG, "line {}: {}", number, error.text);
    }
  };
  // No settings of users': one is too long for a variable, the other a measurement.
  if (name == "levels") {
    if (read_levels != nullptr) read([&] { read_levels(value); });
    settings.levels = value;
    return;
  }
  if (name == "rdma_driver") {
    settings.rdma_driver = value;
    return;
  }
  const auto rows = base::setting_rows();
  const auto row =
      std::ranges::find_if(rows, [&](const base::SettingRow& each) { return each.name == name; });
  if (row == rows.end()) {
    const base::SettingRow& meant =
        base::nearest(rows, std::string(name),
                      [](const base::SettingRow& each) { return std::string(each.name); });
    base::fail(MPI_ERR_ARG, "line {}: '{}' is no setting; the nearest name is {}", number, name,
               meant.name);
  }
  read([&] { base::set(settings, *row, value); });
}

// The whole file, as only this user (or root) can have written it. Throws base::Error.
std::string read_trusted(int fd) {
  struct stat about = {};
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
    base::fail(MPI_ERR_FILE, "it is no regular file");
  if (about.st_uid != geteuid() && about.st_uid != 0) {
    base::fail(MPI_ERR_FILE, "it belongs to user {}, needed this one ({}) or root", about.st_uid,
               geteuid());
  }
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    base::fail(MPI_ERR_FILE, "others may write to it (mode {:o}); chmod go-w would help",
               about.st_mode & 07777);
  }
  std::string text(longest_file + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t bytes = read(fd, text.data() + length, text.size() - length);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) base::fail(MPI_ERR_FILE, "it cannot be read: {}", std::strerror(errno));
    if (bytes == 0) break;
    length += static_cast<std::size_t>(bytes);
  }
  if (length > longest_file) base::fail(MPI_ERR_FILE, "it is longer than {} bytes", longest_file);
  text.resize(length);
  return text;
}

void read_file(Configuration& configuration, ReadLevels read_levels) {
  const std::string path = tuned_file();
  if (path.empty()) return;
  const base::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open() && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) return;
  try {
    if (!file.is_open()) base::fail(MPI_ERR_FILE, "it cannot be opened: {}", std::strerror(errno));
    parse_tuned(configuration.settings, read_trusted(file.get()), read_levels);
    configuration.file = path;
  } catch (const base::Error& error) {
    configuration.warnings.push_back(fmt::format(
        "{} is ignored: {}; correct it, remove it or run 'macadam tune' again", path, error.text));
  }
}

[[noreturn]] void refuse(const std::string& path, const char* what) {
  base::fail(MPI_ERR_FILE,
             "{} cannot be written: {} ({}); set XDG_CONFIG_HOME to a folder of your own, or pass "
             "--output",
             path, what, std::strerror(errno));
}

} // namespace

std::string tuned_file() {
  const auto variable = [](const char* name) {
    const char* const value = secure_getenv(name);
    return value != nullptr && *value == '/' ? std::string(value) : std::string();
  };
  std::string folder = variable("XDG_CONFIG_HOME");
  if (folder.empty()) {
    folder = variable("HOME");
    if (folder.empty()) return {};
    folder += "/.config";
  }
  return folder + "/macadam/tuned.conf";
}

void parse_tuned(base::Settings& settings, const std::string& text, ReadLevels read_levels) {
  base::Settings parsed = settings;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    parse_line(parsed, std::string_view(text).substr(begin, end - begin), ++number, read_levels);
    begin = end + 1;
  }
  settings = parsed;
}

Configuration read_environment_only() {
  Configuration configuration;
  configuration.warnings =
      base::read_environment(configuration.settings, environ, reserved_variables);
  return configuration;
}

Configuration read_configuration(ReadLevels read_levels) {
  Configuration configuration;
  read_file(configuration, read_levels);
  configuration.without_environment = configuration.settings;
  for (std::string& warning :
       base::read_environment(configuration.settings, environ, reserved_variables))
    configuration.warnings.push_back(std::move(warning));
  return configuration;
}

void write_tuned_file(const std::string& path, const std::string& text) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    errno = error.value();
    refuse(path, "its folder cannot be made");
  }
  struct stat about = {};
  if (lstat(path.c_str(), &about) == 0) {
    if (about.st_uid != geteuid() || !S_ISREG(about.st_mode)) {
      errno = EPERM;
      refuse(path, "there is one that is no file of this user");
    }
    if (access(path.c_str(), W_OK) != 0) refuse(path, "there is one that may not be changed");
  }
  std::string temporary = path + ".XXXXXX"; // of mode 0600
  const base::Descriptor file(mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.is_open()) refuse(path, "no file can be made in its folder");
  const bool written =
      write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      fsync(file.get()) == 0 && rename(temporary.c_str(), path.c_str()) == 0;
  if (written) return;
  const int reason = errno;
  unlink(temporary.c_str());
  errno = reason;
  refuse(path, "it is not there as a whole");
}

} // namespace macadam::boot
