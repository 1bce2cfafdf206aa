// SPDX-License-Identifier: BSD-3-Clause
#include "boot/pmi2/client.h"

#include "base/error.h"
#include "boot/control.h"
#include "boot/machine.h"
#include "boot/memory_server.h"
#include "boot/pmi2/mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace macadam::boot::pmi2 {
namespace {

// Keys that ranks put. A value is of hexadecimal digits or a name: servers differ about ';' in it.
constexpr const char* word_key = "macadam.job";      // of rank 0
constexpr const char* memory_key = "macadam.memory"; // of the first rank of a machine: a socket
std::string address_key(int rank) {
  return fmt::format("macadam.address.{}", rank);
}
std::string reports_key(int rank, std::size_t part) { // of the first rank of a machine
  return fmt::format("macadam.reports.{}.{}", rank, part);
}
std::string page_key(int rank, std::size_t part) { // ... too
  return fmt::format("macadam.page.{}.{}", rank, part);
}
std::string host_key(std::uint32_t machine) {
  return fmt::format("macadam.host.{}", machine);
}

// In the environment of a rank.
constexpr const char* variables[] = {"PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_JOBID"};

constexpr std::size_t longest_part = 500;       // bytes, of a value: the protocol has 1023 digits
constexpr std::chrono::milliseconds pause{100}; // between two looks for what may have come

// The end of this process is no failure: it is not in MPI.
std::atomic<bool> may_end{true};

int number_of(const char* text) {
  int number = -1;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

std::string show_bytes(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes)
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

// False if it is something else than `bytes` at most.
bool read_bytes(std::string_view text, std::span<std::byte> bytes) {
  if (text.size() % 2 != 0 || text.size() / 2 > bytes.size()) return false;
  for (std::size_t i = 0; i < text.size() / 2; ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) return false;
    bytes[i] = static_cast<std::byte>(value);
  }
  return true;
}

// The server fails while the job runs: the launcher has gone, and with it the job.
[[noreturn]] void end_with_launcher() {
  constexpr std::string_view sentence =
      "macadam: the launcher that has started this program is gone\n";
  [[maybe_unused]] const ssize_t written = write(2, sentence.data(), sentence.size());
  _exit(1);
}

// Whoever else uses the connection: it is the last word.
void send_abort(int fd, int code, std::string text) {
  std::ranges::replace(text, ';', ',');
  try {
    Connection(fd).send(
        "abort", {{"isworld", "TRUE"}, {"exitcode", std::to_string(failing(code))}, {"msg", text}});
  } catch (const base::Error&) { // the launcher has ended before
  }
}

void end_job(int fd, int code, const std::string& text) {
  fmt::print(stderr, "macadam: {}\n", text);
  send_abort(fd, code, text);
}

// At the exit of a rank.
void say_goodbye(int fd, int rank, int exit_status) {
  if (!may_end.load()) return send_abort(fd, 1, say_no_finalize(rank));
  if (exit_status == 0) finish_serving();
  try {
    Connection(fd).ask("finalize", {});
  } catch (const base::Error&) { // the launcher has ended before
  }
}

} // namespace

bool is_started_by_server() {
  const int fd = number_of(std::getenv("PMI_FD"));
  struct stat status {};
  return fd >= 0 && fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) &&
         std::getenv("PMI_RANK") != nullptr;
}

Client::Client() : fd_(number_of(std::getenv("PMI_FD"))), connection_(fd_) {
  connection_.greet();
  const char* const rank = std::getenv("PMI_RANK");
  const char* const job = std::getenv("PMI_JOBID"); // which Slurm wants, and MPICH does not have
  Fields answer = connection_.ask(
      "fullinit",
      {{"pmirank", rank}, {"pmijobid", job != nullptr ? job : "0"}, {"threaded", "FALSE"}});
  rank_ = number_of(answer["rank"].c_str());
  const int size = number_of(answer["size"].c_str());
  if (rank_ < 0 || size <= rank_)
    base::fail(MPI_ERR_OTHER, "the PMI-2 server calls this process rank \"{}\" of \"{}\"",
               answer["rank"], answer["size"]);
  size_ = static_cast<std::uint32_t>(size);
  app_ = std::max(0, number_of(answer["appnum"].c_str()));
  // Programs that this one starts are jobs of their own.
  fcntl(fd_, F_SETFD, FD_CLOEXEC);
  for (const char* const variable : variables)
    unsetenv(variable);
  static const int connection = fd_, own_rank = rank_;
  at_end_of_rank([](int exit_status) { say_goodbye(connection, own_rank, exit_status); });
}

Client::~Client() = default;

std::string Client::find_attribute(std::string_view key) {
  return connection_.ask("info-getjobattr", {{"key", key}})["value"];
}

void Client::put(const std::string& key, const std::string& value) {
  connection_.ask("kvs-put", {{"key", key}, {"value", value}});
}

// Empty if it is not there.
std::string Client::get(const std::string& key) {
  constexpr std::string_view command = "kvs-get";
  Fields answer = ask_locked(command, {{"srcid", "-1"}, {"key", key}});
  connection_.check(command, answer);
  return answer["value"];
}

JobMemory Client::make_memory() {
  const std::vector<std::uint32_t> machines =
      size_ == 1 ? std::vector<std::uint32_t>{0}
                 : parse_mapping(find_attribute("PMI_process_mapping"), size_);
  const std::uint32_t own = machines[static_cast<std::size_t>(rank_)];
  std::vector<Node> nodes(std::ranges::max(machines) + 1);
  for (const std::uint32_t machine : machines)
    ++nodes[machine].ranks;
  const bool is_first = std::ranges::find(machines, own) - machines.begin() == rank_;
  const JobWord word = agree_on_word(nodes, own, is_first);
  JobMemory memory = [&] {
    if (!is_first) {
      Fields answer = connection_.ask("info-getnodeattr", {{"key", memory_key}, {"wait", "TRUE"}});
      return fetch_memory(answer["value"]);
    }
    const int universe = number_of(find_attribute("universeSize").c_str());
    JobMemory made = create_for_machine(nodes, machines, rank_,
                                        static_cast<std::uint32_t>(std::max(0, universe)));
    take_word(made.header(), word);
    if (nodes[own].ranks > 1) {
      server_ = std::make_unique<MemoryServer>(made, nodes[own].ranks - 1);
      connection_.ask("info-putnodeattr", {{"key", memory_key}, {"value", server_->name()}});
    }
    return made;
  }();
  memory.row(rank_).app = app_;
  return memory;
}

// Rank 0 tells its word, and the first rank of each machine its name. All ranks take part if
// there are several machines; the others learn neither.
JobWord Client::agree_on_word(std::vector<Node>& nodes, std::uint32_t own, bool is_first) {
  JobWord word = make_word(random_secret());
  if (nodes.size() == 1) return word;
  if (rank_ == 0) put(word_key, show_bytes(std::as_bytes(std::span(&word, 1))));
  if (is_first) put(host_key(own), host_name());
  connection_.ask("kvs-fence", {});
  if (!is_first) return word;
  for (std::uint32_t machine = 0; machine < nodes.size(); ++machine)
    nodes[machine].host = get(host_key(machine));
  const std::string text = get(word_key);
  if (text.size() != 2 * sizeof word ||
      !read_bytes(text, std::as_writable_bytes(std::span(&word, 1))))
    base::fail(MPI_ERR_OTHER, "the PMI-2 server has lost what rank 0 has put; start the job anew");
  return word;
}

void Client::enter(const JobMemory&) {
  may_end.store(false);
}

void Client::leave() {
  may_end.store(true);
}

void Client::look_for_ended(const JobMemory& memory) {
  const auto now = std::chrono::steady_clock::now();
  if (now < look_again_.load()) return;
  look_again_.store(now + pause);
  for (const std::uint32_t member : memory.members()) {
    const auto rank = static_cast<int>(member);
    const RankRow& row = memory.row(rank);
    const bool ended =
        row.state.load() == RankState::running && kill(row.pid, 0) != 0 && errno == ESRCH;
    if (ended && note_end(memory, rank)) end_job(fd_, 1, no_finalize(rank));
  }
}

void Client::publish(std::span<const std::byte> address) {
  const std::lock_guard lock(mutex_);
  put(address_key(rank_), show_bytes(address));
  ++fences_wanted_;
  advance_fences();
}

void Client::fetch(const JobMemory& memory, int rank) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return; // somebody else is at it
  if (!advance_fences() && fences_over_ == 0) return;
  const auto index = static_cast<unsigned>(rank);
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  if ((memory.wanted()[index / 64].fetch_or(bit) & bit) != 0) return;
  RankRow& row = memory.row(rank);
  try { // a word of the machine's server, which has it
    const std::string text = get(address_key(rank));
    const std::size_t bytes = text.size() / 2;
    if (!read_bytes(text, std::as_writable_bytes(std::span(&row.address, 1))) ||
        bytes < sizeof(Agreement))
      end_with_launcher();
    row.endpoint_used = static_cast<std::uint32_t>(bytes - sizeof(Agreement));
  } catch (const base::Error&) {
    end_with_launcher();
  }
  row.published.store(1, std::memory_order_release);
}

void Client::begin_fence(const JobMemory&) {
  const std::lock_guard lock(mutex_);
  ++fences_wanted_;
  advance_fences();
}

bool Client::fence_is_over(const JobMemory&) {
  const std::lock_guard lock(mutex_);
  return advance_fences();
}

// One after the other. Whether all that are wanted are over.
bool Client::advance_fences() {
  try {
    while (fences_over_ < fences_wanted_) {
      if (!std::exchange(fence_waits_, true)) connection_.send("kvs-fence", {});
      if (!connection_.has_answer()) return false;
      connection_.receive("kvs-fence");
      fence_waits_ = false;
      ++fences_over_;
    }
  } catch (const base::Error&) {
    end_with_launcher();
  }
  return true;
}

// In parts that every server takes; the first is their number.
void Client::put_reports(std::string_view texts) {
  const std::lock_guard lock(mutex_);
  std::size_t parts = 0;
  for (std::string_view left = texts; !left.empty();
       left.remove_prefix(std::min(left.size(), longest_part)))
    put(reports_key(rank_, ++parts),
        show_bytes(std::as_bytes(std::span(left.substr(0, longest_part)))));
  put(reports_key(rank_, 0), std::to_string(parts));
}

std::string Client::get_reports(int rank) {
  const std::lock_guard lock(mutex_);
  std::string texts;
  const int parts = number_of(get(reports_key(rank, 0)).c_str());
  for (int part = 1; part <= parts; ++part) {
    const std::string digits = get(reports_key(rank, static_cast<std::size_t>(part)));
    std::string bytes(digits.size() / 2, 0);
    if (!read_bytes(digits, std::as_writable_bytes(std::span(bytes))))
      base::fail(MPI_ERR_OTHER, "the PMI-2 server has changed what rank {} has put", rank);
    texts += bytes;
  }
  return texts;
}

Fields Client::ask_beside_fence(std::string_view command, Connection::Pairs pairs) {
  const std::lock_guard lock(mutex_);
  return ask_locked(command, pairs);
}

// While a fence waits, whose end may come first.
Fields Client::ask_locked(std::string_view command, Connection::Pairs pairs) {
  connection_.send(command, pairs);
  for (;;) {
    Fields answer = connection_.receive();
    if (answer["cmd"] == fmt::format("{}-response", command)) return answer;
    if (answer["cmd"] != "kvs-fence-response" || !std::exchange(fence_waits_, false))
      base::fail(MPI_ERR_OTHER, "the PMI-2 server answers {} by \"{}\"", command, answer["cmd"]);
    ++fences_over_;
  }
}

// As names that are published: unlike what is put, others can look them up at once. In parts; the
// first, which comes last, is their number.
void Client::leave_word(std::string_view text) {
  std::size_t parts = 0;
  for (std::string_view left = text; !left.empty();
       left.remove_prefix(std::min(left.size(), longest_part)))
    ask_beside_fence(
        "name-publish",
        {{"name", page_key(rank_, ++parts)},
         {"port", show_bytes(std::as_bytes(std::span(left.substr(0, longest_part))))}});
  ask_beside_fence("name-publish", {{"name", page_key(rank_, 0)}, {"port", std::to_string(parts)}});
}

std::string Client::await_word(int rank, std::chrono::steady_clock::time_point until) {
  const auto look_up = [&](std::size_t part) { // Slurm's server says "value", MPICH's "port"
    Fields answer = ask_beside_fence("name-lookup", {{"name", page_key(rank, part)}});
    return answer["rc"] != "0" ? "" : answer.contains("value") ? answer["value"] : answer["port"];
  };
  std::string parts;
  while ((parts = look_up(0)).empty()) {
    if (std::chrono::steady_clock::now() > until) return {};
    std::this_thread::sleep_for(pause);
  }
  std::string text;
  for (int part = 1; part <= number_of(parts.c_str()); ++part) {
    const std::string digits = look_up(static_cast<std::size_t>(part));
    std::string bytes(digits.size() / 2, 0);
    if (!read_bytes(digits, std::as_writable_bytes(std::span(bytes)))) return {};
    text += bytes;
  }
  return text;
}

void Client::abort(int code, const std::string& text) {
  send_abort(fd_, code, text);
}

} // namespace macadam::boot::pmi2
