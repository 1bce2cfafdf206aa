// SPDX-License-Identifier: BSD-3-Clause
// What travels between processes and mpiexecs: packets, tickets, ports, calls that fail.
#include "base/error.h"
#include "boot/call.h"
#include "boot/control.h"
#include "boot/job_memory.h"
#include "boot/spawn_request.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

int ends_seen_too_early = 0;

} // namespace

// In place of the system's: recv() may say "end" though there is a packet, if that and the end came
// after it had looked for one.
extern "C" ssize_t recv(int socket, void* data, std::size_t bytes, int flags) {
  if (ends_seen_too_early > 0) {
    --ends_seen_too_early;
    return 0;
  }
  return recvfrom(socket, data, bytes, flags, nullptr, nullptr);
}

namespace macadam::boot {
namespace {

using namespace std::chrono_literals;

base::Error error_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const base::Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing has failed";
  return {0, ""};
}

void expect_error(const std::function<void()>& what, int error_class, const std::string& part) {
  const base::Error error = error_of(what);
  EXPECT_EQ(error.error_class, error_class);
  EXPECT_NE(error.text.find(part), std::string::npos) << error.text;
}

class Listener {
 public:
  Listener() : name_(random_socket_name()), socket_(listen_at(name_)) {}
  ~Listener() { close(socket_); }
  [[nodiscard]] const std::string& name() const { return name_; }
  // The next one, whose request has come.
  [[nodiscard]] int accept() const {
    for (;;)
      if (const int client = ::accept(socket_, nullptr, nullptr); client >= 0) return client;
  }

 private:
  std::string name_;
  int socket_;
};

PacketWriter some_request() {
  PacketWriter packet;
  packet.value(RequestHead{});
  return packet;
}

PacketWriter answer_of(std::int32_t error_class, const std::string& text) {
  PacketWriter packet;
  packet.value(AnswerHead{.error_class = error_class});
  packet.text(text);
  return packet;
}

TEST(Packet, EndsWithinAField) {
  PacketWriter writer;
  writer.text("four");
  writer.value(7);
  PacketReader whole(writer.bytes());
  EXPECT_EQ(whole.text(), "four");
  EXPECT_EQ(whole.value<int>(), 7);
  expect_error([&] { whole.value<char>(); }, MPI_ERR_OTHER, "ends within a field");
  for (std::size_t bytes = 0; bytes < writer.bytes().size(); ++bytes) {
    PacketReader cut(
        std::vector(writer.bytes().begin(), writer.bytes().begin() + static_cast<long>(bytes)));
    expect_error(
        [&] {
          cut.text();
          cut.value<int>();
        },
        MPI_ERR_OTHER, "ends within a field");
  }
}

TEST(Packet, ClaimsATextThatIsLongerThanItself) {
  PacketWriter writer;
  writer.value(~std::uint32_t{0});
  PacketReader reader(writer.bytes());
  expect_error([&] { reader.text(); }, MPI_ERR_OTHER, "ends within a field");
}

// Who answers closes the connection at once.
TEST(Packet, IsNotHiddenByTheEndThatFollowsIt) {
  const PacketWriter packet = some_request();
  for (const bool is_sent : {true, false}) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    if (is_sent) send_packet(ends[1], packet.bytes());
    close(ends[1]);
    ends_seen_too_early = 1;
    const std::optional<Packet> received = receive_packet(ends[0]);
    EXPECT_EQ(received.has_value(), is_sent);
    EXPECT_TRUE(is_sent || errno == 0);
    close(ends[0]);
  }
  ends_seen_too_early = 0;
}

TEST(Ticket, IsReadAsItWasMade) {
  const Secret secret = random_secret();
  const Ticket ticket = read_ticket(make_ticket(secret, "a socket", std::string(100, 'h')));
  EXPECT_EQ(ticket.job, secret);
  EXPECT_STREQ(ticket.socket.data(), "a socket");
  EXPECT_EQ(std::string(ticket.host.data()), std::string(63, 'h'));
}

TEST(Ticket, OfAnotherVersionOrNone) {
  expect_error([] { read_ticket(JobTicket{}); }, MPI_ERR_OTHER, "no ticket");
  JobTicket ticket = make_ticket(random_secret(), "socket", "there");
  ticket[8] = std::byte{9};
  expect_error([&] { read_ticket(ticket); }, MPI_ERR_OTHER, "there speaks version 9");
}

TEST(Port, IsReadAsItWasShown) {
  const Port port{"host", random_socket_name(), random_secret()};
  const std::string text = show_port(port);
  EXPECT_LT(text.size(), 1024u);
  EXPECT_EQ(read_port(text).host, port.host);
  EXPECT_EQ(read_port(text).socket, port.socket);
  EXPECT_EQ(read_port(text).key, port.key);
  EXPECT_NE(text, show_port({port.host, port.socket, random_secret()}));
}

TEST(Call, IsAnsweredWithADescriptor) {
  const Listener listener;
  Call call({listener.name(), MPI_ERR_OTHER, "gone"}, some_request());
  EXPECT_FALSE(call.done());
  const int client = listener.accept();
  EXPECT_TRUE(receive_packet(client));
  EXPECT_FALSE(call.done());
  EXPECT_TRUE(send_packet(client, answer_of(MPI_SUCCESS, "yes").bytes(), 0));
  EXPECT_EQ(call.wait().text(), "yes");
  const int descriptor = call.take_descriptor();
  EXPECT_GE(descriptor, 0);
  EXPECT_EQ(fcntl(descriptor, F_GETFD), FD_CLOEXEC);
  close(descriptor);
  close(client);
}

TEST(Call, Fails) {
  const Listener listener;
  const auto answered = [&](const std::vector<std::byte>& bytes) {
    Call call({listener.name(), MPI_ERR_PORT, "it has gone"}, some_request());
    static_cast<void>(call.done());
    const int client = listener.accept();
    EXPECT_TRUE(receive_packet(client));
    if (!bytes.empty()) send_packet(client, bytes);
    close(client);
    static_cast<void>(call.wait());
  };
  expect_error([&] { answered(answer_of(MPI_ERR_NAME, "unknown").bytes()); }, MPI_ERR_NAME,
               "unknown");
  expect_error([&] { answered({}); }, MPI_ERR_PORT, "it has gone");
  expect_error([&] { answered(std::vector(3, std::byte{1})); }, MPI_ERR_OTHER, "ends within");
  expect_error([&] { answered(std::vector(30, std::byte{1})); }, MPI_ERR_OTHER, "something else");
  PacketWriter other;
  other.value(AnswerHead{.version = 7});
  expect_error([&] { answered(other.bytes()); }, MPI_ERR_OTHER, "version 7");
  expect_error(
      [] {
        Call({"macadam-nobody", MPI_ERR_NAME, "nobody"}, some_request()).wait();
      },
      MPI_ERR_NAME, "nobody");
  PacketWriter long_one = some_request();
  long_one.text(std::string(longest_packet, 'x'));
  expect_error(
      [&] {
        Call({listener.name(), MPI_ERR_OTHER, ""}, long_one).wait();
      },
      MPI_ERR_ARG, "is the most");
}

// An answer that was sent before the time was over is not lost, and after it none can be sent.
TEST(Call, TimeIsOver) {
  const Listener listener;
  for (const bool in_time : {true, false}) {
    Call call({listener.name(), MPI_ERR_OTHER, "gone"}, some_request(), 0.02);
    EXPECT_FALSE(call.done());
    const int client = listener.accept();
    if (in_time) {
      EXPECT_TRUE(send_packet(client, answer_of(MPI_SUCCESS, "yes").bytes()));
    }
    std::this_thread::sleep_for(40ms);
    EXPECT_TRUE(call.done());
    if (in_time) {
      EXPECT_EQ(call.take().text(), "yes");
    } else {
      expect_error([&] { call.take(); }, MPI_ERR_OTHER, "did not come within 0.02 s");
    }
    EXPECT_EQ(send_packet(client, answer_of(MPI_SUCCESS, "late").bytes()), in_time);
    close(client);
  }
}

TEST(Call, TellsAnotherUserNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "another user is needed";
  const std::string name = random_socket_name();
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t other = fork();
  if (other == 0) {
    const bool is_other = setuid(65534) == 0;
    const int socket = is_other ? listen_at(name) : -1;
    fcntl(socket, F_SETFL, 0);
    if (write(told[1], "r", 1) != 1) _exit(1);
    const int client = accept(socket, nullptr, nullptr);
    char byte;
    _exit(recv(client, &byte, 1, 0) > 0 ? 1 : 0);
  }
  char ready = 0;
  ASSERT_EQ(read(told[0], &ready, 1), 1);
  expect_error(
      [&] {
        Call({name, MPI_ERR_PORT, "gone"}, some_request()).wait();
      },
      MPI_ERR_PORT, "user 65534 listens");
  int status = 0;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0) << "it was told something";
  close(told[0]);
  close(told[1]);
}

// Others see by the lock that mpiexec has the job, also when it is killed.
TEST(JobMemory, IsHeldByTheLauncherAlone) {
  JobMemory memory = JobMemory::create({{"here", 1}}, 0, 1);
  EXPECT_FALSE(memory.is_held());
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t launcher = fork();
  if (launcher == 0) {
    memory.hold();
    if (fork() == 0) { // a rank does not hold it
      if (write(ready[1], "r", 1) != 1) _exit(1);
      sleep(1);
      _exit(0);
    }
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(memory.is_held());
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  EXPECT_FALSE(memory.is_held());
  close(ready[0]);
  close(ready[1]);
}

// What was in it stays in its place, and another mapping sees what is written from then on.
TEST(JobMemory, OfAProgramAloneIsShared) {
  JobMemory memory = JobMemory::alone(2, "here");
  RankRow& row = memory.row(0);
  row.pid = 77;
  EXPECT_FALSE(memory.shared());
  memory.share();
  EXPECT_TRUE(memory.shared());
  EXPECT_EQ(&memory.row(0), &row);
  EXPECT_EQ(row.pid, 77);
  const JobMemory other = receive_memory(dup(memory.fd()));
  EXPECT_EQ(other.header().secret, memory.header().secret);
  row.pid = 78;
  EXPECT_EQ(other.row(0).pid, 78);
}

TEST(SpawnRequest, ReadsItsInfo) {
  const auto read = [](std::vector<std::pair<std::string, std::string>> info) {
    return read_commands({{"program", {"a", "b"}, {1, 2}, std::move(info)}}, "host.domain").at(0);
  };
  EXPECT_EQ(read({{"wdir", "/there/../here"}}).folder, "/here");
  EXPECT_EQ(read({{"path", "/a: /b :"}}).path, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(read({{"host", "host"}, {"other", "key"}}).command,
            (std::vector<std::string>{"program", "a", "b"}));
  EXPECT_EQ(read({{"host", "localhost, far"}}).hosts,
            (std::vector<std::string>{"host.domain", "far"}));
  expect_error([&] { read({{"file", "/no/such"}}); }, MPI_ERR_INFO_VALUE, "/no/such");
  expect_error([&] { read({{"file", "/dev/zero"}}); }, MPI_ERR_INFO_VALUE, "no regular file");
}

TEST(SpawnRequest, ChoosesAHostThatSuitsAll) {
  const std::vector<std::string> machines = {"one.domain", "two.domain"};
  const auto choose = [&](std::vector<std::string> first, std::vector<std::string> second) {
    return choose_host(
        {{{"a"}, {1}, "/", {}, std::move(first)}, {{"b"}, {1}, "/", {}, std::move(second)}},
        machines);
  };
  EXPECT_EQ(choose({}, {}), "");
  EXPECT_EQ(choose({}, {"two"}), "two.domain");
  EXPECT_EQ(choose({"far", "two.domain"}, {"one", "two"}), "two.domain");
  expect_error([&] { choose({"one"}, {"two"}); }, MPI_ERR_SPAWN, "one machine");
  expect_error([&] { choose({}, {"far"}); }, MPI_ERR_SPAWN, "far");
}

TEST(SpawnRequest, TravelsAndIsChecked) {
  const std::vector<SpawnProgram> programs = {{{"a", "b"}, {1, 3}, "/f", {"/p"}, {"h"}},
                                              {{"c"}, {2}, "/", {}, {}}};
  PacketWriter packet;
  write_commands(packet, programs);
  PacketReader reader(packet.bytes());
  const std::vector<SpawnProgram> same = read_programs(reader);
  ASSERT_EQ(same.size(), 2u);
  EXPECT_EQ(same[0].command, programs[0].command);
  EXPECT_EQ(same[0].counts, programs[0].counts);
  EXPECT_EQ(same[0].path, programs[0].path);
  EXPECT_EQ(same[0].hosts, programs[0].hosts);
  EXPECT_EQ(same[1].folder, "/");
  for (const SpawnProgram& bad :
       {SpawnProgram{{}, {1}, "", {}, {}}, SpawnProgram{{"a"}, {}, "", {}, {}},
        SpawnProgram{{"a"}, {2, 1}, "", {}, {}}, SpawnProgram{{"a"}, {-1}, "", {}, {}}}) {
    PacketWriter damaged;
    write_commands(damaged, {bad});
    PacketReader other(damaged.bytes());
    expect_error([&] { read_programs(other); }, MPI_ERR_ARG, "no program or no number");
  }
}

} // namespace
} // namespace macadam::boot
