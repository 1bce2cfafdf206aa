// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/trace.h"

#include "mpi/process.h"
#include "mpi/report.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <new>
#include <unordered_map>
#include <utility>

namespace macadam::mpi {
namespace {

using boot::TraceRecord;
using engine::Protocol;
using engine::Step;

// What the longer path of a short message takes beside the records themselves: seconds.
constexpr double longer_path = 40e-9;

constexpr std::array<const char*, Step::kinds> step_names = {
    "sent",        "crossed",   "matched",      "kept",      "taken",
    "released",    "announced", "announcement", "data",      "FIN sent",
    "FIN arrived", "finished",  "connecting",   "connected", "failed"};

bool is_short(const Step& step) {
  return step.protocol == Protocol::eager &&
         (step.kind == Step::Kind::sent || step.kind == Step::Kind::matched ||
          step.kind == Step::Kind::kept || step.kind == Step::Kind::taken);
}

bool has_context(Step::Kind kind) {
  return kind < Step::Kind::connecting;
}

} // namespace

Trace::Trace(Process& process, std::string folder, std::unique_ptr<Alarm> alarm)
    : process_(process), folder_(std::move(folder)), alarm_(std::move(alarm)),
      ring_(std::make_unique_for_overwrite<TraceRecord[]>(capacity)) {}

void Trace::start(engine::Engine& engine, const engine::Transport& clock, bool alone) {
  engine_ = &engine;
  clock_ = &clock;
  alone_ = alone;
  cost_ = alarm_ ? cost_of_record() : 0;
  left_ = burst;
  last_ = clock.now();
}

void Trace::stop() {
  if (resting_) go_on(clock_->now());
  engine_ = nullptr;
  clock_ = nullptr;
}

// The best of some looks at the clock: others may have the processor in between.
double Trace::cost_of_record() const {
  constexpr int looks = 32;
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < 4; ++round) {
    const double begun = clock_->now();
    double ended = begun;
    for (int look = 0; look < looks; ++look)
      ended = clock_->now();
    best = std::min(best, (ended - begun) / looks);
  }
  return 2 * best + longer_path;
}

TraceRecord& Trace::add(double now) noexcept {
  left_ = std::min(burst, left_ + (now - last_) * share) - cost_;
  last_ = now;
  TraceRecord& record = ring_[added_++ % capacity];
  record = {};
  record.at = now;
  return record;
}

void Trace::enter(Call& call, const char* function) noexcept {
  call.function = function;
  call.begun = clock_ == nullptr ? -1 : clock_->now();
  call.thread = process_.thread_multiple ? this_thread() : std::uint16_t{0};
  open_.push_back(call);
  if (resting_ && clock_ != nullptr) go_on(call.begun);
}

void Trace::leave(Call& call) noexcept {
  base::List<Call>::erase(call);
  if (clock_ == nullptr || call.begun < 0) return;
  const double now = clock_->now();
  TraceRecord& record = add(now);
  record.at = call.begun;
  record.until = now;
  record.operation = reinterpret_cast<std::uintptr_t>(call.function); // its name, until write()
  record.thread = call.thread;
  if (left_ < 0 && alarm_ && !resting_) rest(now);
}

void Trace::on_step(const Step& step) noexcept {
  if (clock_ == nullptr || (resting_ && is_short(step))) return;
  if (has_context(step.kind) && step.context != last_context_) name_context(step.context);
  TraceRecord& record = add(clock_->now());
  record.kind = TraceRecord::Kind::step;
  record.context = step.context;
  record.bytes = step.bytes;
  record.ordinal = step.ordinal;
  record.operation = step.operation;
  record.peer = step.peer;
  record.tag = step.tag;
  record.name = static_cast<std::uint32_t>(step.kind);
  record.protocol = static_cast<std::uint8_t>(step.protocol);
}

// Too much happens. The flag of the entry points goes down before the alarm can raise it.
void Trace::rest(double now) noexcept {
  resting_ = true;
  rests_since_ = now;
  sent_before_ = engine_->counters().eager_sent;
  bytes_before_ = engine_->counters().bytes_sent;
  if (alone_) engine_->observe_short(false);
  alarm_->lower(); // of the pause before
  process_.update_entry();
  const double passed = now - period * static_cast<double>(static_cast<std::int64_t>(now / period));
  const double left = period - passed; // no fmod(): the library needs no other for itself but libc
  if (!alarm_->set(left < period / 2 ? left + period : left)) go_on(now);
}

void Trace::go_on(double now) noexcept {
  resting_ = false;
  engine_->observe_short(true);
  process_.update_entry();
  TraceRecord& record = add(now);
  record.kind = TraceRecord::Kind::pause;
  record.at = rests_since_;
  record.until = now;
  record.ordinal = engine_->counters().eager_sent - sent_before_;
  record.bytes = engine_->counters().bytes_sent - bytes_before_;
}

// Communicators may be freed before the file is written.
void Trace::name_context(std::uint64_t context) noexcept try {
  last_context_ = context;
  std::string& name = contexts_[context];
  if (name.empty()) name = name_of(process_, context);
} catch (const std::bad_alloc&) {
}

std::uint16_t Trace::this_thread() noexcept try {
  const auto found = std::ranges::find(threads_, std::this_thread::get_id());
  const auto number = static_cast<std::uint16_t>(found - threads_.begin());
  if (found == threads_.end()) threads_.push_back(std::this_thread::get_id());
  return number;
} catch (const std::bad_alloc&) {
  return 0;
}

std::string Trace::header(std::size_t records, const std::vector<const char*>& functions) const {
  using Json = nlohmann::json;
  const boot::LaunchedJob& job = *process_.job;
  Json communicators = Json::array();
  for (const auto& [id, name] : contexts_)
    communicators.push_back({{"id", id}, {"name", name}});
  Json under_way = Json::array();
  for (const Call& call : open_)
    if (call.begun >= 0)
      under_way.push_back({{"name", call.function}, {"at", call.begun}, {"thread", call.thread}});
  Json network = Json::array();
  for (const auto& transport : process_.instance->transports)
    for (const engine::NetworkEvent& event : transport->history())
      network.push_back({{"at", event.at}, {"what", event.what}, {"count", event.count}});
  const std::chrono::duration<double> wall = std::chrono::system_clock::now().time_since_epoch();
  const Json header = {{"macadam", "trace"},
                       {"record_bytes", sizeof(TraceRecord)},
                       {"records", records},
                       {"lost", added_ - records},
                       {"job", job.number()},
                       {"rank", job.rank()},
                       {"size", job.size()},
                       {"host", job.host()},
                       {"clock", job.one_clock() ? std::string_view("the job") : job.host()},
                       {"now", clock_->now()},
                       {"wall", wall.count()},
                       {"functions", functions},
                       {"steps", step_names},
                       {"protocols", {"EAGER", "HYBRID", "SEND_RNDV", "RECV_RNDV"}},
                       {"communicators", std::move(communicators)},
                       {"network", std::move(network)},
                       {"under_way", std::move(under_way)}};
  return header.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void Trace::write() noexcept try {
  if (clock_ == nullptr) return;
  if (resting_) go_on(clock_->now());
  const auto records = static_cast<std::size_t>(std::min<std::uint64_t>(added_, capacity));
  const std::size_t first = static_cast<std::size_t>(added_ - records) % capacity;
  const std::size_t older = std::min(records, capacity - first); // in front of the ring's end
  const std::span<TraceRecord> parts[] = {{&ring_[first], older}, {&ring_[0], records - older}};
  std::vector<const char*> functions;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (const auto part : parts)
    for (TraceRecord& record : part) {
      if (record.kind != TraceRecord::Kind::call || record.operation == 0) continue;
      const auto [at, is_new] = numbers.try_emplace(record.operation, numbers.size());
      if (is_new) functions.push_back(reinterpret_cast<const char*>(record.operation));
      record.name = at->second;
    }
  const std::string trouble =
      boot::write_trace(folder_, process_.job->number(), process_.job->rank(),
                        header(records, functions), parts[0], parts[1]);
  if (!trouble.empty()) std::fprintf(stderr, "macadam: no trace: %s\n", trouble.c_str());
} catch (const std::exception& error) {
  std::fprintf(stderr, "macadam: no trace: %s\n", error.what());
}

} // namespace macadam::mpi
