// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/ranks.h"

#include "base/affinity.h"
#include "boot/local_job.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace macadam::tools {
namespace {

[[noreturn]] void throw_errno(const char* what) {
  throw std::runtime_error(boot::explain_failure(what, errno));
}

// The watchdog's life. Holds nothing open but the pipe, so that it keeps no reader of mpiexec's
// output waiting, and heeds no signal but SIGKILL and SIGSTOP.
[[noreturn]] void keep(int pipe) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "mpi-watchdog");
  dup2(pipe, 0);
  close_range(1, ~0U, 0);
  char byte;
  while (read(0, &byte, 1) < 0 && errno == EINTR) {
  }
  kill(0, SIGKILL);
  _exit(1);
}

// The rank's environment: mpiexec's, then -genv, -env and who it is; the last of a name wins.
class Environment {
 public:
  explicit Environment(std::vector<Variable> changes) {
    for (char** entry = environ; *entry; ++entry)
      if (!is_changed(*entry, changes)) pointers_.push_back(*entry);
    for (std::size_t i = 0; i < changes.size(); ++i)
      if (!is_changed(changes[i].first + "=",
                      {changes.begin() + static_cast<long>(i) + 1, changes.end()}))
        own_.push_back(changes[i].first + "=" + changes[i].second);
    for (std::string& entry : own_)
      pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }

  [[nodiscard]] char** data() { return pointers_.data(); }

 private:
  static bool is_changed(std::string_view entry, const std::vector<Variable>& changes) {
    const std::string_view name = entry.substr(0, entry.find('='));
    for (const Variable& change : changes)
      if (change.first == name) return true;
    return false;
  }

  std::vector<std::string> own_;
  std::vector<char*> pointers_;
};

void redirect(int from, int to) {
  if (from >= 0) dup2(from, to);
}

void pass(const Gate& gate) {
  if (gate.reading_end < 0) return;
  close(gate.writing_end);
  char byte;
  while (read(gate.reading_end, &byte, 1) < 0 && errno == EINTR) {
  }
}

std::string file_name(const std::string& pattern, const std::string& rank,
                      const std::string& host) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[++i] : '\0';
    if (next == 'r')
      name += rank;
    else if (next == 'h')
      name += host;
    else
      name += pattern[i];
  }
  return name;
}

// A stream of the rank goes to a file, if one is wanted, behind what others of this job write
// there. False if there can be none.
bool redirect_to_file(const std::string& name, int stream) {
  if (name.empty()) return true;
  const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  return file >= 0 && dup2(file, stream) >= 0 && close(file) == 0;
}

// Between fork and exec: tells mpiexec by the rank's row what went wrong.
[[noreturn]] void become_rank(const Start& start, const Program& program, int rank,
                              const Streams& streams, pid_t launcher, char** command,
                              char** environment) {
  // Should mpiexec be killed before the watchdog exists or together with it. A parent that is gone
  // already sends no signal any more.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(1);
  setpgid(0, start.watchdog.group());
  redirect(streams.in, 0);
  redirect(streams.out, 1);
  redirect(streams.error, 2);
  if (start.memory.fd() == start.descriptor)
    fcntl(start.descriptor, F_SETFD, 0);
  else
    dup2(start.memory.fd(), start.descriptor);
  if (!start.core_sets.empty())
    base::run_on(start.core_sets[static_cast<std::size_t>(start.memory.local_index(rank))]);
  sigprocmask(SIG_SETMASK, &start.signal_mask, nullptr);
  boot::RankRow& row = start.memory.row(rank);
  row.child = getpid();
  pass(start.gate);
  row.failed_step = boot::StartStep::open_output; // in mpiexec's folder
  bool opened = redirect_to_file(streams.files.out, 1);
  if (opened) {
    row.failed_step = boot::StartStep::open_errors;
    opened = redirect_to_file(streams.files.error, 2);
  }
  if (opened) row.failed_step = boot::StartStep::enter_folder;
  if (opened && (program.folder.empty() || chdir(program.folder.c_str()) == 0)) {
    row.failed_step = boot::StartStep::execute;
    environ = environment; // whose PATH it is that is searched
    if (std::string_view(command[0]).find('/') == std::string_view::npos)
      for (const std::string& folder : program.path)
        execv((folder + "/" + command[0]).c_str(), command);
    execvp(command[0], command);
  }
  row.start_error = errno;
  _exit(127);
}

} // namespace

Watchdog::Watchdog() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_errno("making a pipe");
  pipe_ = ends[1];
  pid_ = fork();
  if (pid_ < 0) throw_errno("starting a process");
  if (pid_ == 0) {
    if (setpgid(0, 0) != 0) _exit(1);
    keep(ends[0]);
  }
  close(ends[0]);
  if (setpgid(pid_, pid_) == 0) return; // here too: whoever comes first
  const int error = errno;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(pipe_);
  errno = error;
  throw_errno("making a process group");
}

Watchdog::~Watchdog() {
  signal_group(SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(pipe_);
}

OutputFiles name_files(const OutputFiles& patterns, const std::string& rank,
                       const std::string& host) {
  return {file_name(patterns.out, rank, host), file_name(patterns.error, rank, host)};
}

boot::Needs needs_of(int ranks, bool piped) {
  constexpr std::uint64_t own = 24; // a dozen, and some that are inherited
  const auto number = static_cast<std::uint64_t>(ranks);
  return {.descriptors =
              own + std::max<std::uint64_t>(boot::first_job_descriptor, piped ? 2 * number : 0),
          .processes = number + 1}; // and the watchdog
}

pid_t start_rank(const Start& start, const Program& program, int rank, const Streams& streams) {
  std::vector<Variable> changes = start.environment;
  changes.insert(changes.end(), program.environment.begin(), program.environment.end());
  changes.emplace_back(boot::job_variable,
                       std::to_string(start.descriptor) + ":" + std::to_string(rank));
  Environment environment(std::move(changes));
  std::vector<char*> command;
  for (const std::string& word : program.command)
    command.push_back(const_cast<char*>(word.data()));
  command.push_back(nullptr);

  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw_errno("starting a rank");
  if (pid == 0)
    become_rank(start, program, rank, streams, launcher, command.data(), environment.data());
  setpgid(pid, start.watchdog.group());
  return pid;
}

} // namespace macadam::tools
