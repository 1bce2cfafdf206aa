// SPDX-License-Identifier: BSD-3-Clause
#include "boot/pmix/client.h"

#include "base/error.h"
#include "base/thread.h"
#include "boot/control.h"
#include "boot/memory_server.h"
#include "boot/pmix/library.h"
#include "boot/pmix/sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>
#include <vector>

namespace macadam::boot::pmix {
namespace {

// Keys that ranks put, by their names (key_of).
constexpr const char* address_key = "address";
constexpr const char* word_key = "job";        // of rank 0
constexpr const char* reports_key = "reports"; // of the first rank of a machine
constexpr const char* memory_key = "memory";   // of the first rank of a machine: a socket
constexpr const char* page_key = "page";       // of the first rank of a machine
// Of all: how many programs have been that rank.
constexpr const char* programs_key = "macadam.programs";

constexpr std::chrono::milliseconds nap{2}; // before it is asked again
constexpr std::chrono::milliseconds long_nap{50};
// What a launcher takes at most to end a process; one that does not lets it end by itself.
constexpr std::chrono::seconds to_be_ended{5};

// The memory of the job, for events. They come in a thread of libpmix.
std::atomic<const JobMemory*> watched{nullptr};
// The end of this process is no failure: it is not in MPI. libpmix does not start again once it has
// ended, so it ends with the process.
std::atomic<bool> may_end{true};
// How many programs were this rank before, one after the other (sh -c 'a; b'). The server keeps
// what they have put.
std::uint32_t earlier_programs = 0;

[[noreturn]] void fail(const char* what, pmix_status_t status) {
  base::fail(MPI_ERR_OTHER,
             "the PMIx server that has started this program does not serve it: {}: {} ({}); start "
             "it {}, or with Macadam's mpiexec",
             what, library().error_string(status), status,
             status == PMIX_ERR_NOT_FOUND && std::getenv("SLURM_JOB_ID") != nullptr
                 ? "by an srun of its own, as Slurm's serves only the first MPI program of a task "
                   "(sh -c 'a; b')"
                 : "anew");
}

void set_name(pmix_proc_t& proc, const char* job, pmix_rank_t rank) {
  std::memset(&proc, 0, sizeof proc);
  std::string_view(job).copy(proc.nspace, PMIX_MAX_NSLEN);
  proc.rank = rank;
}

// That this program puts: the others count programs alike.
std::string key_of(const char* name) {
  return fmt::format("macadam.{}.{}", earlier_programs, name);
}

// A wish of this name, and what value it has: 0.
pmix_info_t wish(std::string_view key, pmix_data_type_t type) {
  pmix_info_t info{};
  key.copy(info.key, PMIX_MAX_KEYLEN);
  info.value.type = type;
  return info;
}

// One that is granted.
pmix_info_t yes(std::string_view key) {
  pmix_info_t info = wish(key, PMIX_BOOL);
  info.value.data.flag = true;
  return info;
}

pmix_info_t within_job() {
  pmix_info_t info = wish(PMIX_RANGE, PMIX_DATA_RANGE);
  info.value.data.range = PMIX_RANGE_NAMESPACE;
  return info;
}

// A value that libpmix has allocated.
struct Freed {
  void operator()(pmix_value_t* value) const {
    if (value->type == PMIX_STRING) std::free(value->data.string);
    if (value->type == PMIX_BYTE_OBJECT) std::free(value->data.bo.bytes);
    std::free(value);
  }
};
using Value = std::unique_ptr<pmix_value_t, Freed>;

Value get(const char* job, pmix_rank_t rank, const char* key, pmix_status_t& status,
          std::span<const pmix_info_t> wishes = {}) {
  pmix_proc_t proc;
  set_name(proc, job, rank);
  pmix_value_t* value = nullptr;
  status = library().get(&proc, key, wishes.data(), wishes.size(), &value);
  return Value(status == PMIX_SUCCESS ? value : nullptr);
}

// What the server says of the job, or of a rank; numbers come in several widths.
std::optional<std::uint32_t> find_number(const char* job, pmix_rank_t rank, const char* key,
                                         std::span<const pmix_info_t> wishes = {}) {
  pmix_status_t status = PMIX_SUCCESS;
  const Value value = get(job, rank, key, status, wishes);
  if (!value) return std::nullopt;
  switch (value->type) {
  case PMIX_UINT32:
    return value->data.uint32;
  case PMIX_UINT16:
    return value->data.uint16;
  case PMIX_INT:
    return static_cast<std::uint32_t>(value->data.integer);
  case PMIX_INT32:
    return static_cast<std::uint32_t>(value->data.int32);
  case PMIX_SIZE:
    return static_cast<std::uint32_t>(value->data.size);
  default:
    return std::nullopt;
  }
}

std::uint32_t number(const char* job, pmix_rank_t rank, const char* key) {
  const auto found = find_number(job, rank, key);
  if (!found) fail(key, PMIX_ERR_NOT_FOUND);
  return *found;
}

std::string text(const char* job, pmix_rank_t rank, const char* key) {
  pmix_status_t status = PMIX_SUCCESS;
  const Value value = get(job, rank, key, status);
  if (!value || value->type != PMIX_STRING) fail(key, status);
  return value->data.string;
}

// Others see it after commit().
void put(pmix_scope_t scope, const char* name, std::span<const std::byte> bytes) {
  const std::string key = key_of(name);
  std::vector<char> copy(bytes.size() + 1); // never empty
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  pmix_value_t value{};
  value.type = PMIX_BYTE_OBJECT;
  value.data.bo.bytes = copy.data();
  value.data.bo.size = copy.size();
  const pmix_status_t status = library().put(scope, key.c_str(), &value);
  if (status != PMIX_SUCCESS) fail(key.c_str(), status);
}

void commit() {
  const pmix_status_t status = library().commit();
  if (status != PMIX_SUCCESS) fail("PMIx_Commit", status);
}

// What put() has put, waited for. A server waits for the first that a rank puts, and says that
// there is none if it has put other things.
std::string await(const char* job, pmix_rank_t rank, const char* name) {
  const std::string key = key_of(name);
  pmix_status_t status = PMIX_SUCCESS;
  Value value = get(job, rank, key.c_str(), status);
  while (!value && (status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT)) {
    std::this_thread::sleep_for(nap);
    value = get(job, rank, key.c_str(), status);
  }
  if (!value || value->type != PMIX_BYTE_OBJECT || value->data.bo.size == 0)
    fail(key.c_str(), status);
  return {value->data.bo.bytes, value->data.bo.size - 1};
}

// Said to all ranks of the job, in a word that no other job has; unlike what is put it stays when
// this process has ended.
void announce(const std::string& word) {
  pmix_info_t stays = wish(PMIX_PERSISTENCE, PMIX_PERSIST);
  stays.value.data.persist = PMIX_PERSIST_SESSION;
  const std::array<pmix_info_t, 3> said = {yes(word), within_job(), stays};
  const pmix_status_t status = library().publish(said.data(), said.size());
  if (status != PMIX_SUCCESS) fail(word.c_str(), status);
}

// Waits for it.
void hear(const std::string& word) {
  const pmix_info_t until_all_are_said = wish(PMIX_WAIT, PMIX_INT); // 0: as many as are asked for
  const std::array<pmix_info_t, 2> wishes = {until_all_are_said, within_job()};
  pmix_pdata_t heard{};
  word.copy(heard.key, PMIX_MAX_KEYLEN);
  const pmix_status_t status = library().lookup(&heard, 1, wishes.data(), wishes.size());
  if (status != PMIX_SUCCESS) fail(word.c_str(), status);
}

// What fetch() has asked for, and where the answer goes. libpmix makes no copy of the key.
struct Question {
  std::string key;
  RankRow& row;
  std::atomic<std::uint64_t>& wanted;
  std::uint64_t bit;
};

void on_address(pmix_status_t status, pmix_value_t* value, void* context) {
  const std::unique_ptr<Question> question(static_cast<Question*>(context));
  RankRow& row = question->row;
  const bool found = status == PMIX_SUCCESS && value != nullptr &&
                     value->type == PMIX_BYTE_OBJECT && value->data.bo.size > sizeof(Agreement) &&
                     value->data.bo.size - 1 <= sizeof row.address;
  if (!found) { // not yet: somebody will ask again
    question->wanted.fetch_and(~question->bit);
    return;
  }
  const std::size_t bytes = value->data.bo.size - 1;
  row.endpoint_used = static_cast<std::uint32_t>(bytes - sizeof(Agreement));
  std::memcpy(&row.address, value->data.bo.bytes, bytes);
  row.published.store(1, std::memory_order_release);
}

// An answer that await_word() waits for, and what it has asked for, as long as the server needs it.
struct Heard {
  // Nothing if there was none.
  std::optional<std::string> await(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex);
    changed.wait_until(lock, until, [&] { return over; });
    return text;
  }

  const std::string key = key_of(page_key);
  const std::array<pmix_info_t, 1> fresh = {yes(PMIX_GET_REFRESH_CACHE)};
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::optional<std::string> text;
};

void on_word(pmix_status_t status, pmix_value_t* value, void* context) {
  const std::unique_ptr<std::shared_ptr<Heard>> held(static_cast<std::shared_ptr<Heard>*>(context));
  Heard& heard = **held;
  const std::lock_guard lock(heard.mutex);
  heard.over = true;
  if (status == PMIX_SUCCESS && value != nullptr && value->type == PMIX_BYTE_OBJECT &&
      value->data.bo.size > 0)
    heard.text.emplace(value->data.bo.bytes, value->data.bo.size - 1);
  heard.changed.notify_all();
}

// A process has ended before its time: its neighbours look at its row. If the server has gone, the
// launcher has, and with it the job.
void on_event(std::size_t, pmix_status_t status, const pmix_proc_t* source, pmix_info_t*,
              std::size_t, pmix_info_t*, std::size_t, pmix_event_notification_cbfunc_fn_t answer,
              void* context) {
  if (status == PMIX_ERR_LOST_CONNECTION) {
    constexpr std::string_view sentence =
        "macadam: the launcher that has started this program is gone\n";
    [[maybe_unused]] const ssize_t written = write(2, sentence.data(), sentence.size());
    _exit(1);
  }
  const JobMemory* const memory = watched.load();
  if (memory != nullptr && source != nullptr && source->rank < memory->header().size)
    note_end(*memory, static_cast<int>(source->rank));
  if (answer != nullptr) answer(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, context);
}

// Ends the job, with this exit status. A process that ends by itself while PRRTE is ending its job,
// of which other machines are part, may leave PRRTE waiting for ever (5 of 100 jobs on a busy
// machine).
void end_job(int code, const std::string& text) {
  if (library().abort(failing(code), text.c_str(), nullptr, 0) == PMIX_SUCCESS)
    std::this_thread::sleep_for(to_be_ended);
}

// At the exit of a rank.
void say_goodbye(int rank, int exit_status) {
  if (!may_end.load()) return end_job(exit_status, say_no_finalize(rank));
  if (exit_status == 0) finish_serving();
  pmix_value_t programs{};
  programs.type = PMIX_UINT32;
  programs.data.uint32 = earlier_programs + 1;
  // prterun's servers on other machines forget what was put for PMIX_LOCAL with the process.
  library().put(PMIX_GLOBAL, programs_key, &programs);
  library().commit();
  library().finalize(nullptr, 0);
}

} // namespace

struct Client::Name {
  pmix_proc_t proc{};
};

bool is_started_by_server() {
  return std::getenv("PMIX_NAMESPACE") != nullptr && std::getenv("PMIX_RANK") != nullptr;
}

Client::Client() : name_(std::make_unique<Name>()) {
  connect();
}

Client::~Client() {
  watched.store(nullptr);
  if (meeting_.joinable()) meeting_.detach(); // the process ends
}

void Client::connect() {
  const pmix_status_t status = library().init(&name_->proc, nullptr, 0);
  if (status != PMIX_SUCCESS) fail("connecting with it", status);
  rank_ = static_cast<int>(name_->proc.rank);
  static const std::array<pmix_info_t, 1> at_once = {yes(PMIX_IMMEDIATE)}; // it may not be there
  earlier_programs =
      find_number(name_->proc.nspace, name_->proc.rank, programs_key, at_once).value_or(0);
  static const int own_rank = rank_;
  at_end_of_rank([](int exit_status) { say_goodbye(own_rank, exit_status); });
  watch();
}

void Client::watch() {
  pmix_status_t codes[] = {PMIX_ERR_LOST_CONNECTION, PMIX_EVENT_PROC_TERMINATED,
                           PMIX_ERR_PROC_ABORTED_BY_SIG, PMIX_ERR_PROC_TERM_WO_SYNC,
                           PMIX_ERR_PROC_REQUESTED_ABORT};
  library().register_event_handler(codes, std::size(codes), nullptr, 0, on_event, nullptr, nullptr);
}

void Client::enter(const JobMemory& memory) {
  watched.store(&memory);
  may_end.store(false);
}

void Client::leave() {
  may_end.store(true);
}

JobMemory Client::make_memory() {
  const char* const job = name_->proc.nspace;
  // Slurm's server says nothing to the second program of a task: each rank is to learn that, as
  // those that wait for the first would wait for ever.
  static_cast<void>(text(job, name_->proc.rank, PMIX_HOSTNAME));
  const std::string peers = text(job, PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS);
  int leader = -1;
  std::from_chars(peers.data(), peers.data() + peers.size(), leader);
  JobMemory memory = leader == rank_ ? create_memory() : receive_memory(leader);
  memory.row(rank_).app =
      static_cast<std::int32_t>(find_number(job, name_->proc.rank, PMIX_APPNUM).value_or(0));
  return memory;
}

JobMemory Client::create_memory() {
  const char* const job = name_->proc.nspace;
  const std::uint32_t size = number(job, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
  std::vector<Node> nodes;
  std::vector<std::uint32_t> machines;
  // By their names: not every server numbers the machines (Slurm does not number other ranks').
  std::map<std::string, std::uint32_t> known;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    const auto [node, is_new] =
        known.emplace(text(job, rank, PMIX_HOSTNAME), static_cast<std::uint32_t>(nodes.size()));
    if (is_new) nodes.push_back({node->first, 0});
    ++nodes[node->second].ranks;
    machines.push_back(node->second);
  }
  JobMemory memory = create_for_machine(
      std::move(nodes), machines, rank_,
      find_number(job, PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE).value_or(0), sets_of(job, size));
  JobHeader& header = memory.header();
  JobWord word = make_word(header.secret);
  if (rank_ == 0) { // before anybody waits for more of it
    put(PMIX_GLOBAL, word_key, std::as_bytes(std::span(&word, 1)));
  } else {
    const std::string bytes = await(job, 0, word_key);
    if (bytes.size() != sizeof word) fail(key_of(word_key).c_str(), PMIX_ERR_NOT_FOUND);
    std::memcpy(&word, bytes.data(), sizeof word);
  }
  take_word(header, word);
  if (const std::uint32_t others = memory.own_node().ranks - 1; others > 0) {
    server_ = std::make_unique<MemoryServer>(memory, others);
    put(PMIX_LOCAL, memory_key, std::as_bytes(std::span(server_->name())));
  }
  commit();
  return memory;
}

JobMemory Client::receive_memory(int leader) {
  const std::string name = await(name_->proc.nspace, static_cast<pmix_rank_t>(leader), memory_key);
  return fetch_memory(name);
}

void Client::publish(std::span<const std::byte> address) {
  put(PMIX_GLOBAL, address_key, address);
  commit();
}

void Client::fetch(const JobMemory& memory, int rank) {
  const auto index = static_cast<unsigned>(rank);
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  std::atomic<std::uint64_t>& word = memory.wanted()[index / 64];
  if ((word.load(std::memory_order_relaxed) & bit) != 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < ask_again_.load() || (word.fetch_or(bit) & bit) != 0) return;
  ask_again_.store(now + nap / 4);
  pmix_proc_t proc;
  set_name(proc, name_->proc.nspace, static_cast<pmix_rank_t>(rank));
  auto question = std::make_unique<Question>(key_of(address_key), memory.row(rank), word, bit);
  if (library().get_nb(&proc, question->key.c_str(), nullptr, 0, on_address, question.get()) ==
      PMIX_SUCCESS)
    (void)question.release(); // on_address() has it
}

// A later program of the same ranks (sh -c 'a; b') does not use the server's fence, which may pass
// without a rank or never: a server that sees a connection close right behind its rank's goodbye
// counts one rank less for good (libpmix 5.0.11; openpmix, issues 3931 and 4113; 2 to 5 of 100 jobs
// of three programs on a busy machine).
void Client::begin_fence(const JobMemory& memory) {
  if (earlier_programs > 0) return arrive(memory);
  fence_is_over_.store(false);
  const auto over = [](pmix_status_t, void* is_over) {
    static_cast<std::atomic<bool>*>(is_over)->store(true);
  };
  // Slurm's plugin lets a fence that collects nothing pass on each machine as soon as the ranks
  // there have come.
  static const std::array<pmix_info_t, 1> collects = {yes(PMIX_COLLECT_DATA)};
  if (library().fence_nb(nullptr, 0, collects.data(), collects.size(), over, &fence_is_over_) !=
      PMIX_SUCCESS)
    fence_is_over_.store(true);
}

bool Client::fence_is_over(const JobMemory& memory) {
  return earlier_programs > 0 ? have_met(memory) : fence_is_over_.load();
}

// The ranks of a machine meet in its memory, the first ones of all machines by words.
void Client::arrive(const JobMemory& memory) {
  JobHeader& header = memory.header();
  round_ = header.barrier_round.load(std::memory_order_acquire);
  header.barrier_arrived.fetch_add(1, std::memory_order_acq_rel);
}

bool Client::have_met(const JobMemory& memory) {
  if (memory.header().barrier_round.load(std::memory_order_acquire) != round_) {
    if (meeting_.joinable()) meeting_.join();
    return true;
  }
  if (memory.local_index(rank_) == 0 && !meeting_.joinable() && memory.have_arrived())
    meeting_ = base::start_thread("macadam-meet", [this, &memory] { meet_machines(memory); });
  return false;
}

// By a thread of the first rank of a machine, as it waits.
void Client::meet_machines(const JobMemory& memory) try {
  const std::string met = fmt::format("{}.{}.{}", name_->proc.nspace, key_of("met"), round_);
  const auto here = [&](std::uint32_t machine) { return fmt::format("{}.{}", met, machine); };
  if (rank_ != 0) {
    announce(here(memory.header().node));
    hear(met);
  } else {
    for (std::uint32_t machine = 1; machine < memory.header().nodes; ++machine)
      hear(here(machine));
    announce(met);
  }
  memory.open_barrier();
} catch (const base::Error& error) {
  end_job(1, error.what());
}

void Client::put_reports(std::string_view texts) {
  put(PMIX_GLOBAL, reports_key, std::as_bytes(std::span(texts)));
  commit();
}

std::string Client::get_reports(int rank) {
  return await(name_->proc.nspace, static_cast<pmix_rank_t>(rank), reports_key);
}

void Client::leave_word(std::string_view text) {
  put(PMIX_GLOBAL, page_key, std::as_bytes(std::span(text)));
  commit();
}

// What the server of this machine has of the rank already may be older.
std::string Client::await_word(int rank, std::chrono::steady_clock::time_point until) {
  pmix_proc_t proc;
  set_name(proc, name_->proc.nspace, static_cast<pmix_rank_t>(rank));
  while (std::chrono::steady_clock::now() < until) {
    auto heard = std::make_shared<Heard>();
    auto context = std::make_unique<std::shared_ptr<Heard>>(heard);
    if (library().get_nb(&proc, heard->key.c_str(), heard->fresh.data(), heard->fresh.size(),
                         on_word, context.get()) == PMIX_SUCCESS)
      (void)context.release(); // on_word() has it
    if (const auto text = heard->await(until)) return *text;
    std::this_thread::sleep_for(long_nap);
  }
  return {};
}

void Client::abort(int code, const std::string& text) {
  end_job(code, text);
}

} // namespace macadam::boot::pmix
