// SPDX-License-Identifier: BSD-3-Clause
#include "sim/device.h"

#include "base/error.h"
#include "sim/queue_pair.h"

#include <algorithm>

namespace macadam::sim {

using net::rdma::Access;
using net::rdma::PortAddress;
using net::rdma::QueuePairOptions;
using net::rdma::Segment;

namespace {

constexpr std::uint64_t page_bytes = 4096;

class SimulatedRegion final : public net::rdma::MemoryRegion {
 public:
  SimulatedRegion(SimulatedDevice& device, void* memory, std::size_t bytes, Access access)
      : device_(device) {
    local_key = device.regions.add(memory, bytes, access);
    remote_key = access == Access::remote ? local_key : 0;
  }
  ~SimulatedRegion() override {
    device_.spend(from_ns(device_.fabric().model().deregistration_ns));
    device_.regions.remove(local_key);
  }

 private:
  SimulatedDevice& device_;
};

void check_depth(const SimulatedDevice& device, const char* what, std::uint32_t depth,
                 std::uint32_t most) {
  if (depth == 0 || depth > most)
    base::fail(MPI_ERR_OTHER, "{}: a {} of depth {} was asked for; the device has 1 to {}",
               device.name(), what, depth, most);
}

} // namespace

SimulatedDevice::Interruptible::Interruptible(SimulatedDevice& device) : device_(device) {
  device.interruptible_ = true;
  if (device.beside_ != nullptr) device.beside_->interruptible_ = true;
  device.run_progress_threads();
}

SimulatedDevice::Interruptible::~Interruptible() {
  device_.interruptible_ = false;
  if (device_.beside_ != nullptr) device_.beside_->interruptible_ = false;
}

SimulatedDevice::SimulatedDevice(Fabric& fabric, Processor& processor, std::string name)
    : fabric_(fabric), processor_(processor), glance_(from_ns(fabric.model().latency_ns / 4)),
      name_(std::move(name)), limits_(device_limits(fabric.model())) {
  address_.lid = fabric.attach(*this);
  address_.gid = {0xfe, 0x80};
  for (std::size_t i = 0; i < sizeof(address_.lid); ++i)
    address_.gid[15 - i] = static_cast<std::uint8_t>(address_.lid >> (8 * i));
  // Not the same on all ports: a packet to the wrong port must not meet a queue pair there.
  next_number_ = 0x40 + static_cast<std::uint32_t>(fabric.random().below(1 << 20));
}

SimulatedDevice::~SimulatedDevice() {
  fabric_.detach(address_.lid);
  if (beside_ != nullptr) beside_->beside_ = nullptr;
}

std::unique_ptr<net::rdma::MemoryRegion>
SimulatedDevice::register_memory(void* memory, std::size_t bytes, Access access) {
  if (memory == nullptr || bytes == 0)
    base::fail(MPI_ERR_INTERN, "{}: no memory was given to register", name_);
  if (regions.count() >= limits_.regions)
    base::fail(MPI_ERR_NO_MEM,
               "{}: all {} memory regions are in use; give some back, or raise "
               "\"regions\" of the model",
               name_, limits_.regions);
  if (limits_.registered != 0 && regions.bytes() + bytes > limits_.registered)
    base::fail(MPI_ERR_NO_MEM,
               "{}: {} bytes cannot be pinned beyond the {} that are, of at most {}; give some "
               "back, or raise \"registered_mb\" of the model",
               name_, bytes, regions.bytes(), limits_.registered);
  const Model& model = fabric_.model();
  // By the size alone: where in its page the memory begins must not change a run.
  const auto pages = static_cast<double>((bytes + page_bytes - 1) / page_bytes);
  spend(from_ns(model.registration_ns + model.registration_page_ns * pages));
  ++counters_.registrations;
  return std::make_unique<SimulatedRegion>(*this, memory, bytes, access);
}

std::unique_ptr<net::rdma::CompletionQueue>
SimulatedDevice::make_completion_queue(std::uint32_t depth, bool async) {
  check_depth(*this, "completion queue", depth, limits_.completion_depth);
  return std::make_unique<SimulatedCompletionQueue>(*this, depth, async);
}

std::unique_ptr<net::rdma::SharedReceiveQueue>
SimulatedDevice::make_shared_receive_queue(std::uint32_t depth) {
  if (limits_.shared_depth == 0)
    base::fail(MPI_ERR_OTHER, "{}: the device has no shared receive queues", name_);
  check_depth(*this, "shared receive queue", depth, limits_.shared_depth);
  return std::make_unique<SimulatedSharedReceiveQueue>(*this, depth);
}

std::unique_ptr<net::rdma::QueuePair>
SimulatedDevice::make_queue_pair(const QueuePairOptions& options) {
  if (queue_pairs_.size() >= limits_.queue_pairs)
    base::fail(MPI_ERR_NO_MEM,
               "{}: all {} queue pairs are in use; close connections, or raise \"queue_pairs\" of "
               "the model",
               name_, limits_.queue_pairs);
  check_depth(*this, "send queue", options.send_depth, limits_.send_depth);
  if (options.shared == nullptr)
    check_depth(*this, "receive queue", options.receive_depth, limits_.receive_depth);
  if (options.inline_bytes > limits_.inline_bytes)
    base::fail(MPI_ERR_OTHER, "{}: {} inline bytes were asked for; the device has {}", name_,
               options.inline_bytes, limits_.inline_bytes);
  if (options.sends == nullptr || options.receives == nullptr)
    base::fail(MPI_ERR_INTERN, "{}: a queue pair needs two completion queues", name_);
  spend(from_ns(fabric_.model().queue_pair_create_ns));
  const std::uint32_t number = next_number_++;
  std::unique_ptr<SimulatedQueuePair> made;
  if (options.datagrams)
    made = std::make_unique<DatagramQueuePair>(*this, number, options);
  else
    made = std::make_unique<ReliableQueuePair>(*this, number, options);
  queue_pairs_.emplace_back(number, made.get());
  counters_.queue_pairs_most =
      std::max<std::uint64_t>(counters_.queue_pairs_most, queue_pairs_.size());
  return made;
}

std::unique_ptr<net::rdma::AddressHandle>
SimulatedDevice::make_address_handle(const PortAddress& to) {
  spend(from_ns(fabric_.model().post_ns));
  return std::make_unique<SimulatedAddressHandle>(to);
}

// ------------------------------------------------------------------ time

Time SimulatedDevice::time() const {
  const SimulatedDevice* const device = interrupting();
  return device != nullptr ? device->progress_thread_time_ : processor_.now();
}

void SimulatedDevice::spend(Time cost) const {
  if (const SimulatedDevice* const device = interrupting())
    device->progress_thread_time_ += cost;
  else
    processor_.spend(cost);
}

void SimulatedDevice::spend_posting(std::size_t receives) const {
  const Model& model = fabric_.model();
  spend(from_ns(model.post_ns + model.receive_ns * static_cast<double>(receives)));
}

double SimulatedDevice::now() const {
  spend(from_ns(fabric_.model().clock_ns));
  return seconds(time());
}

void SimulatedDevice::let_catch_up(Time distance) {
  if (interrupting() != nullptr) return;
  if (processor_.now() - fabric_.scheduler().now() >= distance) processor_.synchronize();
}

void SimulatedDevice::enter_poll(bool may_run_progress_thread) {
  if (interrupting() != nullptr) return;
  // Most would find nothing: a quarter of the network's latency later is soon enough.
  let_catch_up(glance_);
  if (may_run_progress_thread) run_progress_threads();
  activity_ = false;
}

void SimulatedDevice::on_activity() {
  activity_ = true;
  if (wakes_on_activity_ || (beside_ != nullptr && beside_->wakes_on_activity_)) processor_.wake();
}

void SimulatedDevice::on_event() {
  event_ = true;
  processor_.wake();
}

void SimulatedDevice::yield() {
  spin(from_ns(fabric_.model().spin_ns));
}

void SimulatedDevice::spin(Time longest) {
  processor_.synchronize();
  const Interruptible interruptible(*this);
  // A process that spins sees what comes at once; until then nothing changes for it.
  if (activity_ || (beside_ != nullptr && std::exchange(beside_->activity_, false))) return;
  wakes_on_activity_ = true;
  processor_.sleep(processor_.now() + longest);
  wakes_on_activity_ = false;
}

void SimulatedDevice::before_look(std::size_t places) {
  enter_poll(true);
  spend(from_ns(fabric_.model().look_ns * static_cast<double>(places)));
}

void SimulatedDevice::wait(unsigned longest_us) {
  processor_.synchronize();
  const Interruptible interruptible(*this);
  const Time until = processor_.now() + Time{longest_us} * microsecond;
  bool slept = false;
  while (!event_) {
    slept = true;
    if (!processor_.sleep(until)) break;
  }
  const bool woken = event_;
  event_ = false;
  if (!slept) return;
  ++counters_.sleeps;
  if (woken) spend(from_ns(fabric_.model().wake_ns));
}

void SimulatedDevice::wake() {
  on_event();
}

void SimulatedDevice::lose(std::string reason) {
  loss_ = std::move(reason);
  notify({Event::Kind::loss, 0});
}

void SimulatedDevice::compute(Time duration) {
  const Interruptible interruptible(*this);
  processor_.compute(duration);
}

// ------------------------------------------------------------------ the progress thread

void SimulatedDevice::set_event_sink(net::rdma::EventSink* sink) {
  sink_ = sink;
  if (sink == nullptr) {
    while (!due_.empty())
      static_cast<void>(due_.pop());
  }
}

void SimulatedDevice::notify(Event event) {
  const Model& model = fabric_.model();
  const double late = fabric_.faults().progress_thread_jitter_ns * fabric_.random().fraction();
  const Time awake = std::max(fabric_.scheduler().now(), progress_thread_time_) +
                     from_ns(model.progress_thread_ns + late);
  fabric_.scheduler().at(awake, [&fabric = fabric_, lid = lid(), event] {
    SimulatedDevice* device = fabric.find(lid);
    if (device == nullptr || device->sink_ == nullptr) return;
    device->due_.push(event);
    if (device->interruptible_) device->run_progress_thread();
  });
}

void SimulatedDevice::run_progress_thread() {
  while (!due_.empty() && sink_ != nullptr) {
    const Event event = due_.pop();
    const Time began = std::max(fabric_.scheduler().now(), progress_thread_time_);
    progress_thread_time_ = began;
    in_progress_thread_ = true;
    ++counters_.progress_thread_calls;
    if (event.kind == Event::Kind::loss) {
      sink_->on_failure(net::rdma::all_queue_pairs, loss_);
    } else if (event.kind == Event::Kind::limit) {
      if (auto* queue = shared_queues.find(event.id)) sink_->on_limit(*queue);
    } else if (auto* queue = completion_queues.find(event.id)) {
      sink_->on_completions(*queue);
    }
    in_progress_thread_ = false;
    processor_.steal(from_ns(fabric_.model().interrupt_ns) + progress_thread_time_ - began);
  }
}

// ------------------------------------------------------------------ for the queues

void SimulatedDevice::release_places(std::uint32_t queue_pair, std::uint32_t places) {
  if (SimulatedQueuePair* found = find_queue_pair(queue_pair)) found->release_places(places);
}

bool SimulatedDevice::allows(const Segment& segment) const {
  return segment.bytes == 0 ||
         regions.allows(segment.local_key, reinterpret_cast<std::uint64_t>(segment.memory),
                        segment.bytes, Access::local);
}

void SimulatedDevice::check_receives(std::span<const net::rdma::ReceiveWork> work) const {
  for (const net::rdma::ReceiveWork& each : work) {
    if (!allows(each.segment))
      base::fail(MPI_ERR_INTERN,
                 "{}: a receive was posted into {} bytes that its key does not open", name_,
                 each.segment.bytes);
  }
}

SimulatedQueuePair* SimulatedDevice::find_queue_pair(std::uint32_t number) const {
  const auto found =
      std::lower_bound(queue_pairs_.begin(), queue_pairs_.end(), number,
                       [](const auto& entry, std::uint32_t n) { return entry.first < n; });
  return found != queue_pairs_.end() && found->first == number ? found->second : nullptr;
}

void SimulatedDevice::remove_queue_pair(std::uint32_t number) {
  std::erase_if(queue_pairs_, [&](const auto& entry) { return entry.first == number; });
}

} // namespace macadam::sim
