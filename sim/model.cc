// SPDX-License-Identifier: BSD-3-Clause
#include "sim/model.h"

#include "base/error.h"
#include "base/nearest.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>
#include <type_traits>
#include <vector>

namespace macadam::sim {
namespace {

using Json = nlohmann::json;

constexpr double longest_ns = 1e12; // a thousand seconds
constexpr double most = 1e9;

constexpr std::array keys = {
    Key<ModelValue>{"latency_ns", &Model::latency_ns, 0, longest_ns},
    Key<ModelValue>{"message_gap_ns", &Model::message_gap_ns, 0, longest_ns},
    Key<ModelValue>{"gap_per_queue_pair_ns", &Model::gap_per_queue_pair_ns, 0, longest_ns},
    Key<ModelValue>{"bandwidth_mb_per_s", &Model::bandwidth_mb_per_s, 1e-3, most},
    Key<ModelValue>{"incoming_mb_per_s", &Model::incoming_mb_per_s, 0, most},
    Key<ModelValue>{"post_ns", &Model::post_ns, 0, longest_ns},
    Key<ModelValue>{"segment_ns", &Model::segment_ns, 0, longest_ns},
    Key<ModelValue>{"receive_ns", &Model::receive_ns, 0, longest_ns},
    // A poll that took no time would let a process wait for ever without time going on.
    Key<ModelValue>{"poll_ns", &Model::poll_ns, 1, longest_ns},
    Key<ModelValue>{"look_ns", &Model::look_ns, 0, longest_ns},
    Key<ModelValue>{"completion_ns", &Model::completion_ns, 0, longest_ns},
    Key<ModelValue>{"call_ns", &Model::call_ns, 0, longest_ns},
    Key<ModelValue>{"matching_ns", &Model::matching_ns, 0, longest_ns},
    Key<ModelValue>{"copy_mb_per_s", &Model::copy_mb_per_s, 1e-3, most},
    Key<ModelValue>{"spin_ns", &Model::spin_ns, 1, longest_ns},
    Key<ModelValue>{"wake_ns", &Model::wake_ns, 0, longest_ns},
    Key<ModelValue>{"progress_thread_ns", &Model::progress_thread_ns, 0, longest_ns},
    Key<ModelValue>{"interrupt_ns", &Model::interrupt_ns, 0, longest_ns},
    Key<ModelValue>{"clock_ns", &Model::clock_ns, 1, longest_ns},
    Key<ModelValue>{"line_ns", &Model::line_ns, 1, longest_ns},
    Key<ModelValue>{"kernel_copy_ns", &Model::kernel_copy_ns, 0, longest_ns},
    Key<ModelValue>{"compute_factor", &Model::compute_factor, 0, 1e6},
    Key<ModelValue>{"registration_ns", &Model::registration_ns, 0, longest_ns},
    Key<ModelValue>{"registration_page_ns", &Model::registration_page_ns, 0, longest_ns},
    Key<ModelValue>{"deregistration_ns", &Model::deregistration_ns, 0, longest_ns},
    Key<ModelValue>{"queue_pair_create_ns", &Model::queue_pair_create_ns, 0, longest_ns},
    Key<ModelValue>{"queue_pair_connect_ns", &Model::queue_pair_connect_ns, 0, longest_ns},
    Key<ModelValue>{"start_spread_ns", &Model::start_spread_ns, 0, longest_ns},
    Key<ModelValue>{"address_lookup_ns", &Model::address_lookup_ns, 0, longest_ns},
    Key<ModelValue>{"barrier_ns", &Model::barrier_ns, 0, longest_ns},
    Key<ModelValue>{"queue_pairs", &Model::queue_pairs, 1, 1 << 24},
    Key<ModelValue>{"regions", &Model::regions, 1, 1 << 30},
    Key<ModelValue>{"registered_mb", &Model::registered_mb, 0, most},
    Key<ModelValue>{"send_depth", &Model::send_depth, 1, 1 << 20},
    Key<ModelValue>{"receive_depth", &Model::receive_depth, 1, 1 << 20},
    Key<ModelValue>{"shared_depth", &Model::shared_depth, 0, 1 << 20},
    Key<ModelValue>{"completion_depth", &Model::completion_depth, 1, 1 << 24},
    Key<ModelValue>{"segments", &Model::segments, 1, most_segments},
    Key<ModelValue>{"inline_bytes", &Model::inline_bytes, 0, 4096},
    Key<ModelValue>{"outstanding_reads", &Model::outstanding_reads, 1, 255},
    Key<ModelValue>{"mtu_bytes", &Model::mtu_bytes, 256, 4096},
    Key<ModelValue>{"message_mb", &Model::message_mb, 1, 1 << 20},
    Key<ModelValue>{"atomics", &Model::atomics, 0, 1},
    Key<ModelValue>{"orders_bytes", &Model::orders_bytes, 0, 1},
    Key<ModelValue>{"orders_writes", &Model::orders_writes, 0, 1},
    Key<ModelValue>{"orders_arrivals", &Model::orders_arrivals, 0, 1},
};

constexpr std::array faults = {
    Key<FaultValue>{"datagram_loss", &Faults::datagram_loss, 0, 1},
    Key<FaultValue>{"datagram_duplication", &Faults::datagram_duplication, 0, 1},
    Key<FaultValue>{"datagram_reordering", &Faults::datagram_reordering, 0, 1},
    Key<FaultValue>{"reordering_ns", &Faults::reordering_ns, 0, longest_ns},
    Key<FaultValue>{"jitter", &Faults::jitter, 0, 1000},
    Key<FaultValue>{"queue_pair_break", &Faults::queue_pair_break, 0, 1},
    Key<FaultValue>{"progress_thread_jitter_ns", &Faults::progress_thread_jitter_ns, 0, longest_ns},
    Key<FaultValue>{"compute_jitter", &Faults::compute_jitter, 0, 1000},
    Key<FaultValue>{"slow_rank", &Faults::slow_rank, -1, 1 << 24},
    Key<FaultValue>{"slowness", &Faults::slowness, 1, 1e6},
    Key<FaultValue>{"split_writes", &Faults::split_writes, 0, 1},
    Key<FaultValue>{"shuffle", &Faults::shuffle, 0, 1},
    Key<FaultValue>{"core_loss", &Faults::core_loss, 0, 1},
    Key<FaultValue>{"core_loss_ns", &Faults::core_loss_ns, 0, longest_ns},
    Key<FaultValue>{"cut_copies", &Faults::cut_copies, 0, 1},
};

template <class Value>
const Key<Value>& find_key(std::span<const Key<Value>> table, const std::string& name,
                           const std::string& where) {
  const Key<Value>& nearest = base::nearest(table, name, [](const auto& key) { return key.name; });
  if (nearest.name != name)
    base::fail(MPI_ERR_ARG, "{}: there is no key \"{}\"; the nearest is \"{}\"", where, name,
               nearest.name);
  return nearest;
}

// Sets one member from a JSON value of the right type and range.
template <class Object, class Value>
void set(Object& object, const Key<Value>& key, const Json& found, const std::string& where) {
  const auto refuse = [&](const std::string& needed) {
    base::fail(MPI_ERR_ARG, "{}: \"{}\" is {}, needed {}", where, key.name, found.dump(), needed);
  };
  std::visit(
      [&](auto member) {
        using Member = std::remove_reference_t<decltype(object.*member)>;
        if constexpr (std::is_same_v<Member, bool>) {
          if (!found.is_boolean()) refuse("true or false");
          object.*member = found.get<bool>();
        } else {
          const char* kind = std::is_integral_v<Member> ? "a whole number" : "a number";
          const bool fits =
              std::is_integral_v<Member> ? found.is_number_integer() : found.is_number();
          if (!fits || found.get<double>() < key.least || found.get<double>() > key.most)
            refuse(fmt::format("{} from {} to {}", kind, key.least, key.most));
          object.*member = found.get<Member>();
        }
      },
      key.value);
}

// Every number of the file has one source, and every source is one of numbers of the file.
void check_sources(const Json& sources, const Json& object, const std::string& where) {
  if (!sources.is_object())
    base::fail(MPI_ERR_ARG, "{}: \"sources\" is {}, needed texts, each with a list of keys", where,
               sources.dump());
  std::map<std::string, int> named;
  for (const auto& [text, list] : sources.items()) {
    for (const Json& key : list) {
      const std::string name = key.is_string() ? key.get<std::string>() : key.dump();
      static_cast<void>(find_key(model_keys(), name, where));
      if (++named[name] > 1)
        base::fail(MPI_ERR_ARG, "{}: \"{}\" has two sources, needed one", where, name);
    }
  }
  for (const Key<ModelValue>& key : keys) {
    if (object.contains(key.name) != named.contains(key.name))
      base::fail(MPI_ERR_ARG, "{}: \"{}\" has {}, needed both", where, key.name,
                 object.contains(key.name) ? "a value and no source" : "a source and no value");
  }
}

// A value on the command line as JSON: yes and no are booleans, the rest is what it looks like.
Json as_json(const std::string& text) {
  if (text == "yes" || text == "true") return true;
  if (text == "no" || text == "false") return false;
  const Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

} // namespace

std::span<const Key<ModelValue>> model_keys() {
  return keys;
}
std::span<const Key<FaultValue>> fault_keys() {
  return faults;
}

Model read_model(const std::string& json, const std::string& where) {
  Json object;
  try {
    object = Json::parse(json);
  } catch (const Json::parse_error& error) {
    base::fail(MPI_ERR_ARG, "{}: this is no JSON: {}", where, error.what());
  }
  if (!object.is_object())
    base::fail(MPI_ERR_ARG, "{}: found {}, needed an object of keys and numbers", where,
               object.type_name());
  Model model;
  for (const auto& [name, value] : object.items()) {
    if (name == "sources") {
      check_sources(value, object, where);
      continue;
    }
    if (name == "predictions") continue; // for docs/figures.md
    if (name == "name" || name == "description") {
      if (!value.is_string())
        base::fail(MPI_ERR_ARG, "{}: \"{}\" is {}, needed a text", where, name, value.dump());
      if (name == "name") model.name = value.get<std::string>();
      if (name == "description") model.description = value.get<std::string>();
      continue;
    }
    set(model, find_key(model_keys(), name, where), value, where);
  }
  return model;
}

// "name=value,name": what has no value is "yes".
template <class Result, class Keys>
static void set_all(Result& result, Keys keys, const std::string& text, const char* where) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    const std::string name(item.substr(0, equals));
    const auto& key = find_key(keys, name, where);
    const std::string value =
        equals == std::string_view::npos ? "yes" : std::string(item.substr(equals + 1));
    set(result, key, as_json(value), where);
  }
}

void change_model(Model& model, const std::string& text) {
  set_all(model, model_keys(), text, "change");
}

Faults read_faults(const std::string& text) {
  Faults result;
  set_all(result, fault_keys(), text, "faults");
  return result;
}

net::rdma::DeviceLimits device_limits(const Model& model) {
  net::rdma::DeviceLimits limits;
  limits.queue_pairs = static_cast<std::uint32_t>(model.queue_pairs);
  limits.regions = static_cast<std::uint32_t>(model.regions);
  limits.send_depth = static_cast<std::uint32_t>(model.send_depth);
  limits.receive_depth = static_cast<std::uint32_t>(model.receive_depth);
  limits.shared_depth = static_cast<std::uint32_t>(model.shared_depth);
  limits.completion_depth = static_cast<std::uint32_t>(model.completion_depth);
  limits.segments = static_cast<std::uint32_t>(model.segments);
  limits.inline_bytes = static_cast<std::uint32_t>(model.inline_bytes);
  limits.outstanding_reads = static_cast<std::uint32_t>(model.outstanding_reads);
  limits.mtu = static_cast<std::uint32_t>(model.mtu_bytes);
  limits.message = static_cast<std::uint64_t>(model.message_mb) * 1'000'000;
  limits.registered = static_cast<std::uint64_t>(model.registered_mb) * 1'000'000;
  limits.bytes_per_s = model.bandwidth_mb_per_s * 1e6;
  limits.copy_bytes_per_s = model.copy_mb_per_s * 1e6;
  limits.post_s = 1e-9 * model.post_ns;
  limits.round_trip_s = 2e-9 * (model.latency_ns + model.matching_ns);
  limits.atomics = model.atomics;
  limits.orders_bytes = model.orders_bytes;
  limits.orders_writes = model.orders_writes;
  limits.orders_arrivals = model.orders_arrivals;
  return limits;
}

} // namespace macadam::sim
