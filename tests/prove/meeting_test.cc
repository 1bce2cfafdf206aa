// SPDX-License-Identifier: BSD-3-Clause
// Jobs that meet, talk and part, and one that spawns the other, by MPI's own code (mpi/joint.cc and
// all below it), in every order of messages, answers of the launcher and news of deaths; one
// process disappears at any moment. Nobody hangs, and nothing is left.
#include "base/error.h"
#include "boot/universe.h"
#include "mpi/process.h"
#include "sim/fiber.h"
#include "support/choices.h"
#include "support/null_transport.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace macadam::prove {
namespace {

using engine::Rank;
using test::Choices;

constexpr const char* port = "port"; // of process 0

// Jobs of one process each, by number: what they share, and the order of what happens.
class World {
 public:
  using Program = std::function<void(int process)>;

  World(int processes, Choices& choices, std::set<int> victims)
      : choices_(choices), victims_(std::move(victims)) {
    for (int i = 0; i < processes; ++i)
      all_.push_back(std::make_unique<Process>(*this, i));
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Runs it on process 0 and, but for a child, on all others. Empty, or what is wrong.
  std::string run(const Program& program, int first) {
    program_ = program;
    for (int i = 0; i < first; ++i)
      start(i);
    for (;;) {
      std::vector<Event> possible = events();
      if (possible.empty()) break;
      if (!victim_)
        for (const int each : victims_)
          if (at(each).fiber && !at(each).over) possible.push_back({Event::What::death, each, -1});
      happen(possible[choices_.choose(static_cast<unsigned>(possible.size()))]);
      if (!wrong_.empty()) return wrong_;
    }
    for (const auto& process : all_)
      if (process->fiber && !process->over)
        return "process " + std::to_string(process->number) + " waits for ever";
    return wrong_;
  }
  void fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }
  [[nodiscard]] bool somebody_died() const { return victim_.has_value(); }
  // Messages to processes that have not died.
  [[nodiscard]] std::size_t left() {
    std::size_t sum = 0;
    for (const auto& process : all_)
      for (const auto& [from, messages] : process->inbox)
        if (!process->dead) sum += messages.size();
    return sum;
  }
  [[nodiscard]] std::size_t others_known(int process) {
    return at(process).processes_->others().size();
  }

 private:
  struct Process;

  // A question to the launcher.
  struct Question {
    enum class What { accept, connect, spawn } what;
    int asker;
    bool open = true;
    int error = MPI_SUCCESS;
    int other = -1; // who was met, or has been started
    bool kept = false;
  };
  template <class Result>
  class Answer final : public boot::Pending<Result> {
   public:
    Answer(World& world, std::shared_ptr<Question> asked, std::function<Result(Question&)> what)
        : world_(world), asked_(std::move(asked)), what_(std::move(what)) {}
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;
    ~Answer() override { world_.drop(*asked_); }
    [[nodiscard]] bool done() noexcept override { return !asked_->open; }
    Result take() override {
      if (asked_->error != MPI_SUCCESS) base::fail(asked_->error, "there is nobody");
      return what_(*asked_);
    }
    void keep() noexcept override { asked_->kept = true; }

   private:
    World& world_;
    std::shared_ptr<Question> asked_;
    std::function<Result(Question&)> what_;
  };

  static boot::JobTicket ticket_of(int job) {
    boot::JobTicket ticket{};
    ticket[0] = static_cast<std::byte>(job);
    return ticket;
  }
  static boot::Secret secret_of(int job) {
    boot::Secret secret{};
    secret[0] = static_cast<std::uint8_t>(job + 1);
    return secret;
  }

  // A job as another one sees it.
  class SeenJob final : public boot::Job {
   public:
    explicit SeenJob(const Process& of) : of_(of) {}
    [[nodiscard]] int rank() const override { return MPI_UNDEFINED; }
    [[nodiscard]] int size() const override { return 1; }
    [[nodiscard]] boot::Secret secret() const override { return secret_of(of_.number); }
    void publish(std::span<const std::byte>) override {}
    [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int) const override {
      return std::nullopt;
    }
    [[nodiscard]] int cores() const override { return 1; }
    [[nodiscard]] boot::Life life(int) const override {
      if (of_.dead) return boot::Life::failed;
      return of_.over ? boot::Life::over : boot::Life::running;
    }

   private:
    const Process& of_;
  };

  class Universe final : public boot::Universe {
   public:
    Universe(World& world, int own) : world_(world), own_(own) {
      for (const auto& process : world.all_)
        seen_.push_back(std::make_unique<SeenJob>(*process));
    }
    [[nodiscard]] std::optional<int> size() const override { return std::nullopt; }
    [[nodiscard]] std::optional<boot::Met> parent() const override {
      if (!world_.at(own_).is_child) return std::nullopt;
      return boot::Met{ticket_of(0), 0, 0};
    }
    boot::PendingResult<boot::Spawned> spawn(std::vector<boot::SpawnCommand>) override {
      return ask<boot::Spawned>(Question::What::spawn, [](Question& asked) {
        return boot::Spawned{ticket_of(asked.other), {1}};
      });
    }
    std::string open_port() override { return port; }
    void close_port(std::string_view) override {}
    boot::PendingResult<boot::Met> accept(std::string_view, std::optional<double>) override {
      return ask<boot::Met>(Question::What::accept, met);
    }
    boot::PendingResult<boot::Met> connect(std::string_view, std::optional<double>) override {
      return ask<boot::Met>(Question::What::connect, met);
    }
    boot::PendingResult<boot::Met> join(int) override { return nullptr; }
    boot::PendingResult<bool> publish(std::string_view, std::string_view) override {
      return nullptr;
    }
    boot::PendingResult<bool> unpublish(std::string_view, std::string_view) override {
      return nullptr;
    }
    boot::PendingResult<std::string> look_up(std::string_view) override { return nullptr; }
    [[nodiscard]] boot::JobTicket own_ticket() override { return ticket_of(own_); }
    boot::PendingResult<const boot::Job*> meet(const boot::JobTicket& ticket) override {
      auto asked = std::make_shared<Question>(Question{.what = {}, .asker = own_});
      const auto job = static_cast<std::size_t>(ticket[0]);
      asked->open = false;
      if (world_.all_[job]->over) asked->error = MPI_ERR_OTHER;
      return std::make_unique<Answer<const boot::Job*>>(
          world_, asked, [this, job](Question&) -> const boot::Job* {
            if (static_cast<int>(job) == own_) return world_.at(own_).process->job.get();
            return seen_[job].get();
          });
    }
    void forget(const boot::Job&) override {}

   private:
    static boot::Met met(Question& asked) { return {ticket_of(asked.other), 0, 1}; }
    template <class Result>
    boot::PendingResult<Result> ask(Question::What what, std::function<Result(Question&)> answer) {
      auto asked = std::make_shared<Question>(Question{.what = what, .asker = own_});
      world_.asked_.push_back(asked);
      return std::make_unique<Answer<Result>>(world_, std::move(asked), std::move(answer));
    }
    World& world_;
    const int own_;
    std::vector<std::unique_ptr<SeenJob>> seen_;
  };

  // A job of one, as its process sees it.
  class OwnJob final : public boot::LaunchedJob {
   public:
    OwnJob(World& world, int number) : world_(world), number_(number), universe_(world, number) {}
    [[nodiscard]] int rank() const override { return 0; }
    [[nodiscard]] int size() const override { return 1; }
    [[nodiscard]] boot::Secret secret() const override { return secret_of(number_); }
    void publish(std::span<const std::byte>) override {}
    [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int) const override {
      return std::nullopt;
    }
    [[nodiscard]] int cores() const override { return 1; }
    [[nodiscard]] bool alone() const override { return false; }
    [[nodiscard]] int app_number() const override { return 0; }
    [[nodiscard]] boot::Universe* universe() override { return &universe_; }
    std::uint32_t enter() override { return 1; }
    void leave() override {}
    [[nodiscard]] bool is_over(std::uint32_t) const override { return true; }
    void barrier(const std::function<void()>&) override {}
    void finalize() override {}
    [[nodiscard]] bool report_wanted() const override { return false; }
    void write_report(std::string_view) const override {}
    void write_final_report(std::string_view) override {}

   private:
    void end_job(int, std::string_view text, boot::Blame) override {
      if (!world_.somebody_died()) world_.fail(std::string(text));
      world_.die(number_);
      sim::Fiber::leave();
    }
    World& world_;
    const int number_;
    Universe universe_;
  };

  // The network of a process: messages of a pair in order, and nothing else.
  class Wire final : public test::NullTransport {
   public:
    Wire(World& world, int own) : world_(world), own_(own) { world.at(own).wire = this; }
    ~Wire() override { world_.at(own_).wire = nullptr; }
    const engine::Limits& limits() const noexcept override { return limits_; }
    engine::Link& connect(Rank peer, engine::PeerState& state) override {
      state = engine::PeerState::connected;
      links[peer].rank = peer;
      return links[peer];
    }
    bool forget(Rank first, Rank count) override {
      links.erase(links.lower_bound(first), links.lower_bound(first + count));
      return true;
    }
    Posted send(engine::Link& to, const void* header, std::size_t header_bytes, const void* payload,
                std::size_t payload_bytes) noexcept override {
      std::vector<std::byte> message(header_bytes + payload_bytes);
      std::memcpy(message.data(), header, header_bytes);
      if (payload_bytes > 0) std::memcpy(message.data() + header_bytes, payload, payload_bytes);
      Process& other = world_.at(world_.process_of(own_, to.rank));
      if (!other.over) other.inbox[own_].push_back(std::move(message));
      return Posted::done;
    }
    bool poll(engine::Sink& sink) noexcept override {
      if (from < 0) return false;
      const int sender = std::exchange(from, -1);
      const Rank rank = *world_.index_of(own_, sender);
      auto& messages = world_.at(own_).inbox[sender];
      if (news_of_death) {
        news_of_death = false;
        messages.clear(); // what it had sent besides is lost
        sink.on_peer(rank, engine::PeerState::failed);
      } else {
        const std::vector<std::byte> message = std::move(messages.front());
        messages.pop_front();
        sink.on_message(rank, message.data(), message.size());
      }
      return true;
    }
    bool idle(unsigned, unsigned) override {
      sim::Fiber::suspend();
      return false;
    }

    std::map<Rank, engine::Link> links;
    int from = -1; // what the next poll delivers
    bool news_of_death = false;

   private:
    World& world_;
    const int own_;
    const engine::Limits limits_{
        .name = "proof", .message = 8192, .eager = 4096, .hybrid = 4096, .polls_before_idle = 1};
  };

  class ProcessFiber final : public sim::Fiber {
   public:
    ProcessFiber(Process& process, std::function<void()> body)
        : Fiber(256 << 10, std::move(body)), process_(process) {}

   private:
    void switching_in() override {
      mpi::running = process_.running;
      mpi::standing = process_.process.get();
    }
    void switching_out() override {
      process_.running = mpi::running.exchange(nullptr);
      mpi::standing = nullptr;
    }
    Process& process_;
  };

  struct Process final : mpi::Runtime {
    Process(World& its, int number_of) : world(its), number(number_of) {}
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    std::unique_ptr<boot::LaunchedJob> join() override {
      auto job = std::make_unique<OwnJob>(world, number);
      known.emplace(*job);
      processes_ = &*known;
      return job;
    }
    std::vector<std::unique_ptr<engine::Transport>>
    make_transports(const base::Settings&) override {
      std::vector<std::unique_ptr<engine::Transport>> list;
      list.push_back(std::make_unique<Wire>(world, number));
      return list;
    }
    [[nodiscard]] boot::Processes& processes() override { return *processes_; }
    [[nodiscard]] bool has_real_time() const override { return false; }

    World& world;
    const int number;
    bool is_child = false;
    bool dead = false, over = false; // it has disappeared; it runs no more
    bool must_look = false;          // something has changed that no message tells
    std::set<int> told;              // of whose death
    std::map<int, std::deque<std::vector<std::byte>>> inbox; // by sender
    std::unique_ptr<ProcessFiber> fiber; // first: objects on its stack may be linked in the others
    std::optional<boot::Processes> known;
    boot::Processes* processes_ = nullptr;
    Wire* wire = nullptr;
    std::unique_ptr<mpi::Process> process;
    mpi::Process* running = nullptr;
  };

  struct Event {
    enum class What { message, news, look, introduction, start, nobody, end, death } what;
    int at;
    int other;
  };

  [[nodiscard]] Process& at(int process) { return *all_[static_cast<std::size_t>(process)]; }
  // How a process numbers another one, if it knows it, and back.
  std::optional<Rank> index_of(int own, int other) {
    Process& process = at(own);
    if (process.processes_ == nullptr) return std::nullopt;
    return process.processes_->find({boot::number_of(secret_of(other)), 0});
  }
  int process_of(int own, Rank index) {
    const std::uint32_t number = at(own).processes_->name(index).job;
    for (const auto& each : all_)
      if (boot::number_of(secret_of(each->number)) == number) return each->number;
    return -1;
  }

  void start(int number) {
    Process& process = at(number);
    process.process = std::make_unique<mpi::Process>();
    process.process->runtime = &process;
    process.process->settings_read = true;
    process.fiber = std::make_unique<ProcessFiber>(process, [this, &process] {
      program_(process.number);
      process.over = true;
      changed();
      sim::Fiber::leave();
    });
    process.fiber->resume();
  }
  // Something that those who wait may look at.
  void changed() {
    for (const auto& process : all_)
      process->must_look = process->fiber != nullptr && !process->over;
  }
  void die(int number) {
    at(number).dead = at(number).over = true;
    for (const auto& asked : asked_)
      if (asked->asker == number) drop(*asked);
    changed();
  }
  // Nobody waits for the answer any more. What was started and is not kept is ended by the
  // launcher.
  void drop(Question& asked) {
    asked.open = false;
    if (asked.what == Question::What::spawn && asked.other >= 0 && !asked.kept)
      doomed_.insert(asked.other);
  }

  std::shared_ptr<Question> open(Question::What what) {
    const auto found = std::ranges::find_if(
        asked_, [&](const auto& asked) { return asked->open && asked->what == what; });
    return found == asked_.end() ? nullptr : *found;
  }

  std::vector<Event> events() {
    std::vector<Event> possible;
    for (const auto& process : all_) {
      if (process->fiber == nullptr || process->over) continue;
      const int own = process->number;
      for (const auto& [from, messages] : process->inbox)
        if (!messages.empty() && !process->told.contains(from) && index_of(own, from))
          possible.push_back({Event::What::message, own, from});
      for (const auto& other : all_)
        if (const auto index = index_of(own, other->number);
            other->dead && index && process->wire->links.contains(*index) &&
            !process->told.contains(other->number))
          possible.push_back({Event::What::news, own, other->number});
      if (process->must_look) possible.push_back({Event::What::look, own, -1});
      if (doomed_.contains(own)) possible.push_back({Event::What::end, own, -1});
    }
    const auto accepting = open(Question::What::accept), connecting = open(Question::What::connect);
    if (accepting && connecting) possible.push_back({Event::What::introduction, -1, -1});
    if (accepting && !connecting && somebody_died())
      possible.push_back({Event::What::nobody, accepting->asker, -1});
    if (connecting && at(0).over) possible.push_back({Event::What::nobody, connecting->asker, -1});
    if (open(Question::What::spawn)) possible.push_back({Event::What::start, 0, 1});
    return possible;
  }

  void happen(const Event& event) {
    switch (event.what) {
    case Event::What::news:
      at(event.at).told.insert(event.other);
      at(event.at).wire->news_of_death = true;
      [[fallthrough]];
    case Event::What::message:
      at(event.at).wire->from = event.other;
      return at(event.at).fiber->resume();
    case Event::What::look:
      at(event.at).must_look = false;
      return at(event.at).fiber->resume();
    case Event::What::introduction: {
      const auto one = open(Question::What::accept), other = open(Question::What::connect);
      one->open = other->open = false;
      one->other = other->asker;
      other->other = one->asker;
      return changed();
    }
    case Event::What::nobody:
      for (const auto& asked : asked_)
        if (asked->open && asked->asker == event.at) {
          asked->open = false;
          asked->error = MPI_ERR_PORT;
        }
      return changed();
    case Event::What::start: {
      const auto asked = open(Question::What::spawn);
      asked->open = false;
      asked->other = event.other;
      at(event.other).is_child = true;
      start(event.other);
      return changed();
    }
    case Event::What::end:
      doomed_.erase(event.at);
      return die(event.at);
    case Event::What::death:
      victim_ = event.at;
      return die(event.at);
    }
  }

  Choices& choices_;
  const std::set<int> victims_;
  std::optional<int> victim_;
  Program program_;
  std::string wrong_;
  std::vector<std::shared_ptr<Question>> asked_;
  std::set<int> doomed_; // processes that the launcher ends
  std::vector<std::unique_ptr<Process>> all_;
};

// --- Programs ------------------------------------------------------------------------------------

int class_of(int code) {
  int its = MPI_SUCCESS;
  MPI_Error_class(code, &its);
  return its;
}

class Meeting : public testing::Test {
 protected:
  enum class End { disconnect, leaves_short, leaves_long, finalize };

  // Every order, and in it the death of each of `victims` at every moment.
  void explore(int first, const std::set<int>& victims, const std::function<void(int)>& program) {
    Choices choices;
    std::size_t runs = 0;
    do {
      World world(2, choices, victims);
      world_ = &world;
      std::string wrong = world.run(program, first);
      if (wrong.empty() && !world.somebody_died() && world.left() != 0)
        wrong = "a message is left that nobody has taken";
      ++runs;
      ASSERT_EQ(wrong, "") << "in run " << runs;
    } while (choices.advance());
    EXPECT_GT(runs, 20u); // of two leaders one answers, which leaves few orders
    orders_ += static_cast<int>(runs);
    RecordProperty("orders", orders_);
  }
  void check(bool holds, const char* what) {
    if (!holds) world_->fail(what);
  }
  // An error is one of those that a death may bring, and there is none without.
  bool succeeded(int code, std::set<int> classes = {MPI_ERR_PROC_ABORTED}) {
    if (code == MPI_SUCCESS) return true;
    check(world_->somebody_died(), "an error, though nobody has died");
    if (!classes.contains(class_of(code)))
      world_->fail("an error of class " + std::to_string(class_of(code)));
    return false;
  }
  // Talks over it, parts, and knows nobody any more.
  void use(MPI_Comm inter, int self, End end) {
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    int mine = self + 7, theirs = -1;
    if (succeeded(MPI_Sendrecv(&mine, 1, MPI_INT, 0, 0, &theirs, 1, MPI_INT, 0, 0, inter,
                               MPI_STATUS_IGNORE)))
      check(theirs == 1 - self + 7, "the wrong message has come");
    if (end == End::leaves_short || end == End::leaves_long) { // a message that nobody receives
      MPI_Request request = MPI_REQUEST_NULL;
      if (succeeded(MPI_Isend(data_.data(), end == End::leaves_short ? 8 : 20'000, MPI_BYTE, 0, 1,
                              inter, &request)))
        MPI_Request_free(&request);
    }
    if (end != End::finalize) {
      succeeded(MPI_Comm_disconnect(&inter));
      check(inter == MPI_COMM_NULL, "the handle is there still");
      check(world_->others_known(self) == 0, "the other job is known still");
    }
    succeeded(MPI_Finalize());
  }
  void meet(int self, End end) {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm inter = MPI_COMM_NULL;
    const int code = self == 0 ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)
                               : MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    if (succeeded(code, {MPI_ERR_PROC_ABORTED, MPI_ERR_PORT, MPI_ERR_OTHER}))
      use(inter, self, end);
    else
      MPI_Finalize();
  }
  void spawn(int self) {
    MPI_Init(nullptr, nullptr);
    MPI_Comm inter = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (self == 1) {
      MPI_Comm_get_parent(&inter);
      return use(inter, self, End::disconnect);
    }
    int error = -1;
    const int code =
        MPI_Comm_spawn("child", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, &error);
    check(error == (code == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_SPAWN), "the wrong error code");
    if (succeeded(code, {MPI_ERR_SPAWN}))
      use(inter, self, End::disconnect);
    else
      MPI_Finalize();
  }

  World* world_ = nullptr;
  int orders_ = 0;
  std::vector<char> data_ = std::vector<char>(20'000);
};

TEST_F(Meeting, of_two_jobs_ends_by_disconnect) {
  explore(2, {}, [this](int self) { meet(self, End::disconnect); });
}
TEST_F(Meeting, of_two_jobs_ends_by_finalize) {
  explore(2, {}, [this](int self) { meet(self, End::finalize); });
}
TEST_F(Meeting, is_over_for_whose_other_side_dies) {
  for (const int victim : {0, 1})
    explore(2, {victim}, [this](int self) { meet(self, End::disconnect); });
}
TEST_F(Meeting, is_finalized_by_whose_other_side_dies) {
  for (const int victim : {0, 1})
    explore(2, {victim}, [this](int self) { meet(self, End::finalize); });
}
TEST_F(Meeting, leaves_messages_that_were_never_received) {
  for (const End end : {End::leaves_short, End::leaves_long})
    for (const std::set<int>& victims : {std::set<int>(), {0}, {1}})
      explore(2, victims, [this, end](int self) { meet(self, end); });
}
TEST_F(Meeting, of_a_parent_and_its_child) {
  explore(1, {}, [this](int self) { spawn(self); });
}
TEST_F(Meeting, of_a_parent_that_dies_while_its_child_starts) {
  explore(1, {0}, [this](int self) { spawn(self); });
}
TEST_F(Meeting, of_a_parent_with_a_child_that_dies) {
  explore(1, {1}, [this](int self) { spawn(self); });
}

} // namespace
} // namespace macadam::prove
