// SPDX-License-Identifier: BSD-3-Clause
// A process that a rank forks has the rank's memory but is no rank: MPI refuses it, and the job
// goes on as if it were not there.
#include "check.h"

#include <array>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// What a child that calls `call` says before it ends; `status` as waitpid() has it.
std::string said_by_child(const std::function<void()>& call, int& status) {
  std::array<int, 2> ends{};
  CHECK(pipe(ends.data()) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    call();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 256> some;
  for (ssize_t n; (n = read(ends[0], some.data(), some.size())) > 0;)
    text.append(some.data(), static_cast<std::size_t>(n));
  close(ends[0]);
  CHECK(waitpid(child, &status, 0) == child);
  return text;
}

void ring() {
  int got = -1;
  OK(MPI_Sendrecv(&check::rank, 1, MPI_INT, (check::rank + 1) % check::size, 3, &got, 1, MPI_INT,
                  (check::rank + check::size - 1) % check::size, 3, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  CHECK_EQUAL(got, (check::rank + check::size - 1) % check::size);
}

void refused() {
  if (!check::is_macadam()) return;
  const std::string parent = std::to_string(getpid());
  char byte = 0;
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"MPI_Send", [&] { MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD); }},
      {"MPI_Comm_dup",
       [] {
         MPI_Comm dup;
         MPI_Comm_dup(MPI_COMM_SELF, &dup);
       }},
      {"MPI_Abort", [] { MPI_Abort(MPI_COMM_WORLD, 9); }},
      {"MPI_Init", [] { MPI_Init(nullptr, nullptr); }},
      {"MPI_Finalize", [] { MPI_Finalize(); }}};
  for (const auto& [name, call] : calls) {
    int status = 0;
    const std::string text = said_by_child(call, status);
    if (text.find(name) == std::string::npos || text.find("fork") == std::string::npos ||
        text.find(parent) == std::string::npos || !WIFEXITED(status) || WEXITSTATUS(status) == 0)
      check::fail(__FILE__, __LINE__,
                  std::string(name) + ": status " + std::to_string(status) + ", said: " + text);
  }
  ring();
}

// What needs no job is not refused, nor is a child that calls nothing.
void harmless() {
  int status = -1;
  CHECK_EQUAL(said_by_child([] {}, status), "");
  CHECK_EQUAL(status, 0);
  const std::string text = said_by_child(
      [] {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_free(&info);
      },
      status);
  CHECK_EQUAL(text, "");
  CHECK_EQUAL(status, 0);
  ring();
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"refused", refused}, {"harmless", harmless}});
}
