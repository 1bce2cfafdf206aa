// SPDX-License-Identifier: BSD-3-Clause
#include "sim/neighbors.h"

#include "base/error.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

namespace macadam::sim {
namespace {

using engine::Link;
using engine::Posted;
using engine::RemoteMemory;

std::size_t bytes_of(std::span<const iovec> blocks) {
  std::size_t bytes = 0;
  for (const iovec& block : blocks)
    bytes += block.iov_len;
  return bytes;
}

// Copies the first bytes of blocks that have at least as many.
void copy_blocks(std::span<const iovec> to, std::span<const iovec> from, std::size_t bytes) {
  std::size_t into = 0, out_of = 0; // of the first blocks
  while (bytes > 0) {
    const std::size_t piece =
        std::min({to.front().iov_len - into, from.front().iov_len - out_of, bytes});
    std::memmove(static_cast<std::byte*>(to.front().iov_base) + into,
                 static_cast<const std::byte*>(from.front().iov_base) + out_of, piece);
    bytes -= piece;
    if ((into += piece) == to.front().iov_len) {
      to = to.subspan(1);
      into = 0;
    }
    if ((out_of += piece) == from.front().iov_len) {
      from = from.subspan(1);
      out_of = 0;
    }
  }
}

} // namespace

int Node::add(int processes) {
  const int before = size();
  groups_.push_back({before, processes, nullptr});
  systems_.resize(index(size()));
  failed_.resize(index(size()));
  return before;
}

Node::~Node() {
  for (const Group& group : groups_)
    if (group.memory != nullptr) munmap(group.memory, group.bytes());
}

Node::Group& Node::group_of(int process) {
  return *std::ranges::find_if(
      groups_, [&](const Group& group) { return process < group.first + group.processes; });
}

boot::SharedMemory Node::memory(int process) {
  Group& group = group_of(process);
  if (group.memory == nullptr) {
    void* const mapped = mmap(nullptr, group.bytes(), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
      base::fail(MPI_ERR_NO_MEM,
                 "the simulator has no {} GiB of address space for what {} processes of a node "
                 "share: {}; simulate fewer ranks, or set MACADAM_NETWORK=rdma",
                 group.bytes() >> 30, group.processes, std::strerror(errno));
    group.memory = static_cast<std::byte*>(mapped);
  }
  return {.fd = -1, .offset = 0, .capacity = capacity, .here = group.of(process)};
}

const std::byte* Node::memory_of(int process) const {
  for (const Group& group : groups_)
    if (process < group.first + group.processes)
      return group.memory != nullptr ? group.of(process) : nullptr;
  return nullptr;
}

void Node::clear(int process) {
  const Group& group = group_of(process);
  if (group.memory != nullptr) madvise(group.of(process), capacity, MADV_REMOVE);
}

void Node::fail(int process) {
  failed_[index(process)] = true;
  ++failures_;
}

SimulatedSystem::SimulatedSystem(Node& node, int process, SimulatedDevice& device,
                                 Processor& processor)
    : node_(node), process_(process), device_(device), processor_(processor) {
  node_.systems_[Node::index(process_)] = this;
}

SimulatedSystem::~SimulatedSystem() {
  node_.systems_[Node::index(process_)] = nullptr;
}

// Sometimes for longer: another program gets the core.
void SimulatedSystem::give_way() {
  const Faults& faults = device_.fabric().faults();
  Random& random = device_.fabric().random();
  if (faults.core_loss > 0 && random.fraction() < faults.core_loss)
    processor_.spend(from_ns(faults.core_loss_ns * random.fraction()));
  processor_.synchronize();
}

void SimulatedSystem::enter(Time cost) {
  processor_.spend(cost);
  give_way();
}

void SimulatedSystem::look(Time cost) {
  processor_.spend(cost);
  if (device_.fabric().faults().core_loss > 0) give_way();
  device_.enter_poll(true);
  stirred_ = false;
}

void SimulatedSystem::look_again() {
  stirred_ = true;
  device_.on_activity();
}

void SimulatedSystem::stir(pid_t process) {
  processor_.scheduler().trace(device_.lid());
  if (SimulatedSystem* const other = neighbor(process)) other->look_again();
}

void SimulatedSystem::stir_all() {
  processor_.scheduler().trace(device_.lid());
  for (SimulatedSystem* const system : node_.systems_)
    if (system != nullptr && system != this) system->look_again();
}

void SimulatedSystem::stir_dependents() {
  processor_.scheduler().trace(device_.lid());
  for (SimulatedSystem* const system : node_.systems_)
    if (system != nullptr && system != this && system->depends_) system->look_again();
}

bool SimulatedSystem::touch(pid_t process) {
  SimulatedSystem* const other = neighbor(process);
  if (other == nullptr) return false;
  other->stirred_ = true;
  return other->spins_;
}

void SimulatedSystem::tell(pid_t process) {
  if (SimulatedSystem* const other = neighbor(process)) other->told_ = other->spins_;
  stir(process);
}

double SimulatedSystem::now() noexcept {
  return device_.now();
}

// Until something has changed for it: what others do to its memory, they tell (stir(), tell()).
void SimulatedSystem::spin() {
  give_way();
  if (stirred_) return;
  spins_ = true;
  device_.spin(from_ns(model().spin_ns));
  spins_ = false;
  if (std::exchange(told_, false)) processor_.spend(from_ns(model().line_ns));
}

void SimulatedSystem::relax() noexcept {
  spin();
}

void SimulatedSystem::yield() noexcept {
  spin();
}

void SimulatedSystem::sleep(std::atomic<std::uint32_t>& word, std::uint32_t value,
                            unsigned longest_us) noexcept {
  give_way();
  bool woken = false;
  {
    const SimulatedDevice::Interruptible interruptible(device_);
    if (word.load() != value) return;
    sleeps_on_ = &word;
    woken = processor_.rest(processor_.now() + Time{longest_us} * microsecond);
    sleeps_on_ = nullptr;
  }
  if (woken) processor_.spend(from_ns(model().wake_ns));
}

// Maybe called by the progress thread, which has no processor of its own to wait with.
void SimulatedSystem::wake(std::atomic<std::uint32_t>& word) noexcept {
  device_.spend(from_ns(model().post_ns));
  for (SimulatedSystem* const system : node_.systems_)
    if (system != nullptr && system->sleeps_on_ == &word) system->processor_.wake();
}

ssize_t SimulatedSystem::copy(net::shm::Direction direction, pid_t process,
                              std::span<const iovec> local,
                              std::span<const iovec> remote) noexcept {
  if (!may_copy_) return -EPERM;
  std::size_t bytes = std::min(bytes_of(local), bytes_of(remote));
  const Faults& faults = device_.fabric().faults();
  Random& random = device_.fabric().random();
  if (bytes > 1 && random.fraction() < faults.cut_copies)
    bytes = 1 + static_cast<std::size_t>(random.fraction() * static_cast<double>(bytes - 1));
  // Half of the time before the bytes, half behind: neighbours get on in between, and may end.
  const Time half =
      (from_ns(model().kernel_copy_ns) + transfer_time(bytes, model().copy_mb_per_s)) / 2;
  enter(half);
  const int other = process - 1;
  if (other < 0 || Node::index(other) >= node_.failed_.size() || node_.has_failed(other))
    return -ESRCH;
  if (direction == net::shm::Direction::write)
    copy_blocks(remote, local, bytes);
  else
    copy_blocks(local, remote, bytes);
  enter(half);
  return static_cast<ssize_t>(bytes);
}

// ------------------------------------------------------------------ the transport

// One operation, which takes its time and tells the neighbours that it may concern, `only` one or
// all, if it has written something.
template <class Operation>
auto SimulatedNeighbors::turn(Operation&& operation, const Link* only) {
  simulated_.enter(from_ns(simulated_.model().line_ns));
  const auto result = operation();
  bool wrote = true;
  if constexpr (std::is_same_v<decltype(operation()), Posted>) wrote = result != Posted::busy;
  simulated_.depend(simulated_.depends() || !wrote || is_unfinished());
  if (!wrote) return result;
  if (only != nullptr)
    simulated_.stir(static_cast<const net::shm::Peer*>(only)->pid);
  else
    simulated_.stir_all();
  return result;
}

Posted SimulatedNeighbors::send(Link& link, const void* header, std::size_t header_bytes,
                                const void* payload, std::size_t payload_bytes) noexcept {
  return turn([&] { return Transport::send(link, header, header_bytes, payload, payload_bytes); },
              &link);
}

Posted SimulatedNeighbors::put(Link& link, const void* local, RemoteMemory target,
                               std::size_t bytes, std::uint64_t cookie) noexcept {
  return turn([&] { return Transport::put(link, local, target, bytes, cookie); }, &link);
}

Posted SimulatedNeighbors::put_notified(Link& link, const void* local, RemoteMemory target,
                                        std::size_t bytes, std::uint64_t cookie,
                                        std::uint32_t notification) noexcept {
  return turn(
      [&] { return Transport::put_notified(link, local, target, bytes, cookie, notification); },
      &link);
}

Posted SimulatedNeighbors::get(Link& link, void* local, RemoteMemory target, std::size_t bytes,
                               std::uint64_t cookie) noexcept {
  return turn([&] { return Transport::get(link, local, target, bytes, cookie); }, &link);
}

bool SimulatedNeighbors::use(Link& issuer, std::uint64_t permit) noexcept {
  return turn([&] { return Transport::use(issuer, permit); });
}

engine::Revoked SimulatedNeighbors::revoke(Link& link, std::uint64_t permit) noexcept {
  return turn([&] { return Transport::revoke(link, permit); });
}

Posted SimulatedNeighbors::write(Link& link, const void* local, RemoteMemory target,
                                 std::size_t bytes, std::uint64_t cookie) noexcept {
  return turn([&] { return Transport::write(link, local, target, bytes, cookie); });
}

Posted SimulatedNeighbors::read(Link& link, void* local, RemoteMemory target, std::size_t bytes,
                                std::uint64_t cookie) noexcept {
  return turn([&] { return Transport::read(link, local, target, bytes, cookie); });
}

Posted SimulatedNeighbors::atomic(Link& link, const engine::Atomic& what, RemoteMemory target,
                                  std::uint64_t* result, std::uint64_t cookie) noexcept {
  return turn([&] { return Transport::atomic(link, what, target, result, cookie); });
}

bool SimulatedNeighbors::poll(engine::Sink& sink) noexcept {
  simulated_.look(from_ns(simulated_.model().poll_ns));
  const bool moved = Transport::poll(sink);
  simulated_.depend(is_unfinished());
  if (moved) simulated_.stir_dependents();
  return moved;
}

void SimulatedNeighbors::wake_peer(Link& link) noexcept {
  simulated_.tell(static_cast<const net::shm::Peer&>(link).pid);
  Transport::wake_peer(link);
}

// One that spins is told of words as one that sleeps.
bool SimulatedNeighbors::peer_sleeps(Link& link) noexcept {
  return simulated_.touch(static_cast<const net::shm::Peer&>(link).pid) ||
         Transport::peer_sleeps(link);
}

} // namespace macadam::sim
