// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"
#include "net/shm/system.h"
#include "net/shm/transport.h"
#include "sim/device.h"
#include "sim/processor.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

// Shared memory among the simulated processes of a node: the library's own transport (net/shm) over
// memory of the one real process, and a system whose clock, waits and copies by the kernel are the
// simulator's. Processes give way to each other where they enter the transport and where it calls
// the system, and where they have copied for a while (charges.h), never between two stores: races
// of that kind are for `make prove`.
namespace macadam::sim {

class SimulatedSystem;

// A machine: the processes on it, and the memory that each of them shares with the others, which
// stays when its process ends.
class Node {
 public:
  static constexpr std::uint64_t capacity = std::uint64_t{4} << 30; // of a process, sparse

  explicit Node(int processes) { add(processes); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  // So many more; gives the place of the first.
  int add(int processes);

  // Of a process by its place here. All zero at first, and after clear().
  [[nodiscard]] boot::SharedMemory memory(int process);
  void clear(int process);
  // Where it is; null: nowhere.
  [[nodiscard]] const std::byte* memory_of(int process) const;
  // Processes are called 1, 2, ... in the order of their places.
  [[nodiscard]] static pid_t pid(int process) { return process + 1; }

  // A process has ended before its time: the kernel knows it no more.
  void fail(int process);
  [[nodiscard]] bool has_failed(int process) const { return failed_[index(process)]; }
  [[nodiscard]] unsigned failures() const { return failures_; }

 private:
  friend class SimulatedSystem;
  static std::size_t index(int process) { return static_cast<std::size_t>(process); }

  // Those of one add(), whose memory is one mapping, as a process may have 65,530.
  struct Group {
    int first;
    int processes;
    std::byte* memory; // null: never asked for

    [[nodiscard]] std::size_t bytes() const { return index(processes) * capacity; }
    [[nodiscard]] std::byte* of(int process) const {
      return memory + index(process - first) * capacity;
    }
  };
  [[nodiscard]] int size() const {
    return groups_.empty() ? 0 : groups_.back().first + groups_.back().processes;
  }
  Group& group_of(int process);

  std::vector<Group> groups_;
  std::vector<SimulatedSystem*> systems_; // null: the process has none now
  std::vector<bool> failed_;
  unsigned failures_ = 0;
};

// What net/shm asks of the system, for one process.
class SimulatedSystem final : public net::shm::System {
 public:
  // The others outlive it.
  SimulatedSystem(Node& node, int process, SimulatedDevice& device, Processor& processor);
  SimulatedSystem(const SimulatedSystem&) = delete;
  SimulatedSystem& operator=(const SimulatedSystem&) = delete;
  ~SimulatedSystem();

  [[nodiscard]] double now() noexcept override;
  void relax() noexcept override;
  void yield() noexcept override;
  void sleep(std::atomic<std::uint32_t>& word, std::uint32_t value,
             unsigned longest_us) noexcept override;
  void wake(std::atomic<std::uint32_t>& word) noexcept override;
  // Each process has a core.
  [[nodiscard]] unsigned core() noexcept override { return static_cast<unsigned>(process_); }
  bool leave(unsigned, std::span<const unsigned>) noexcept override { return false; }
  [[nodiscard]] bool enter_barriers() noexcept override { return true; }
  void pass_barrier() noexcept override { give_way(); }
  [[nodiscard]] double kernel_copy_cost() noexcept override { return 1; } // as the ranks copy
  [[nodiscard]] ssize_t copy(net::shm::Direction direction, pid_t process,
                             std::span<const iovec> local,
                             std::span<const iovec> remote) noexcept override;
  [[nodiscard]] bool has_ended(pid_t process) noexcept override {
    return node_.has_failed(process - 1);
  }
  [[nodiscard]] unsigned running_threads() noexcept override { return 0; }
  [[nodiscard]] unsigned cores() noexcept override { return 0; }

  // The process is about to use shared memory: what happens before its time happens first. That
  // takes so long.
  void enter(Time cost);
  // It looks at all that others have written. That it finds a little later what they have, harms
  // nobody, so a poll lets them go on before only if it is far ahead.
  void look(Time cost);
  // It has written something for a neighbour, or maybe for any: those that spin look at once.
  void stir(pid_t process);
  void stir_all();
  // It has polled and so made room, or a step of long data, which concerns those that wait for it.
  void stir_dependents();
  void depend(bool on_polls) { depends_ = on_polls; }
  [[nodiscard]] bool depends() const { return depends_; }
  // Whether that is in the memory that this process shares.
  [[nodiscard]] bool shares(const void* place) const {
    const auto* const own = node_.memory_of(process_);
    return place >= own && place < own + Node::capacity;
  }
  // It has stored a word that a neighbour may wait for. Whether that one spins, and has to be told.
  [[nodiscard]] bool touch(pid_t process);
  // The neighbour looks at its words; one that spins sees a line of memory change so much later.
  void tell(pid_t process);
  // The kernel refuses this process's copies from now on.
  void forbid_copies() { may_copy_ = false; }

  [[nodiscard]] const Model& model() const { return device_.fabric().model(); }

 private:
  void give_way();
  void spin();
  void look_again();
  // Null: it has ended, or never was.
  [[nodiscard]] SimulatedSystem* neighbor(pid_t process) const {
    return process > 0 ? node_.systems_[Node::index(process - 1)] : nullptr;
  }

  Node& node_;
  const int process_;
  SimulatedDevice& device_;
  Processor& processor_;
  const std::atomic<std::uint32_t>* sleeps_on_ = nullptr;
  bool stirred_ = false; // since it looked
  bool spins_ = false;
  bool depends_ = false; // waits for what neighbours do in their polls
  bool told_ = false;    // by tell(), while it spun
  bool may_copy_ = true;
};

// The library's transport; each operation takes its time and lets others go on before.
class SimulatedNeighbors : public net::shm::Transport {
 public:
  SimulatedNeighbors(const boot::Processes& processes, const base::Settings& settings,
                     SimulatedSystem& system)
      : Transport(processes, settings, system), simulated_(system) {}

  engine::Posted send(engine::Link& link, const void* header, std::size_t header_bytes,
                      const void* payload, std::size_t payload_bytes) noexcept override;
  engine::Posted put(engine::Link& link, const void* local, engine::RemoteMemory target,
                     std::size_t bytes, std::uint64_t cookie) noexcept override;
  engine::Posted put_notified(engine::Link& link, const void* local, engine::RemoteMemory target,
                              std::size_t bytes, std::uint64_t cookie,
                              std::uint32_t notification) noexcept override;
  engine::Posted get(engine::Link& link, void* local, engine::RemoteMemory target,
                     std::size_t bytes, std::uint64_t cookie) noexcept override;
  bool use(engine::Link& issuer, std::uint64_t permit) noexcept override;
  engine::Revoked revoke(engine::Link& link, std::uint64_t permit) noexcept override;
  engine::Posted write(engine::Link& link, const void* local, engine::RemoteMemory target,
                       std::size_t bytes, std::uint64_t cookie) noexcept override;
  engine::Posted read(engine::Link& link, void* local, engine::RemoteMemory target,
                      std::size_t bytes, std::uint64_t cookie) noexcept override;
  engine::Posted atomic(engine::Link& link, const engine::Atomic& what, engine::RemoteMemory target,
                        std::uint64_t* result, std::uint64_t cookie) noexcept override;
  bool poll(engine::Sink& sink) noexcept override;
  void wake_peer(engine::Link& link) noexcept override;
  [[nodiscard]] bool peer_sleeps(engine::Link& link) noexcept override;

 private:
  template <class Operation>
  auto turn(Operation&& operation, const engine::Link* only = nullptr);
  SimulatedSystem& simulated_;
};

} // namespace macadam::sim
