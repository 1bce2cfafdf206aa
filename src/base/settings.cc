// SPDX-License-Identifier: BSD-3-Clause
#include "base/settings.h"

#include "base/error.h"
#include "base/nearest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

namespace macadam::base {
namespace {

constexpr std::string_view prefix = "MACADAM_";
constexpr const char* networks = "automatic|shm|rdma|ofi";
constexpr const char* protocols = "customized|sender";
constexpr const char* rendezvous = "read|write";
constexpr const char* copy_paths = "automatic|cma|pipeline";
constexpr const char* connect_modes = "on-demand|all|serial";
constexpr const char* receive_modes = "shared|credit|ring|mixed";
constexpr const char* report_choices = "yes|no|file.json";

constexpr std::array rows = {
    SettingRow{"network", &Settings::network, networks,
               "shared memory between ranks of one machine; or RDMA, or libfabric, between all"},
    SettingRow{"net_interface", &Settings::net_interface, "text",
               "libfabric: the interface to use, or its IP address; the one that reaches others"},
    SettingRow{
        "protocols", &Settings::protocols, protocols,
        "all four, and RDMA for windows; or eager, sender-initiated rendezvous, and messages"},
    SettingRow{"rendezvous", &Settings::rendezvous, rendezvous,
               "how a sender-initiated rendezvous moves its data", Changeable::always},
    SettingRow{"last_byte", &Settings::last_byte, "",
               "see the end of a rendezvous by its last byte, where the network keeps their order"},
    SettingRow{"shm_eager", &Settings::shm_eager, "bytes",
               "shared memory: longest message sent by EAGER"},
    SettingRow{"shm_hybrid", &Settings::shm_hybrid, "bytes",
               "shared memory: longest message sent by HYBRID"},
    SettingRow{"shm_copy", &Settings::shm_copy, copy_paths,
               "shared memory: how a large message gets from one address space to the other"},
    SettingRow{"shm_queue", &Settings::shm_queue, "bytes",
               "shared memory: the receive queue that all peers share"},
    SettingRow{"shm_rings", &Settings::shm_rings, "count",
               "shared memory: rings a process gives at most", Changeable::always},
    SettingRow{
        "rdma_device", &Settings::rdma_device, "text",
        "RDMA: adapters that may be used, their ports and addresses: name[:port[:gid index]],..."},
    SettingRow{"rdma_connections", &Settings::rdma_connections, connect_modes,
               "RDMA: connect at the first message, or all at start: at once, or in rank order"},
    SettingRow{
        "rdma_receive", &Settings::rdma_receive, receive_modes,
        "RDMA: receives of all connections together, windows or rings per connection, or both"},
    SettingRow{"rdma_eager", &Settings::rdma_eager, "bytes", "RDMA: longest message sent by EAGER"},
    SettingRow{"rdma_hybrid", &Settings::rdma_hybrid, "bytes",
               "RDMA: longest message sent by HYBRID; -1: by the adapter's speed"},
    SettingRow{"rdma_buffers", &Settings::rdma_buffers, "count",
               "RDMA: message buffers that sends and shared receives may use"},
    SettingRow{"rdma_shared", &Settings::rdma_shared, "count",
               "RDMA: receives kept posted to the shared receive queue"},
    SettingRow{"rdma_watermark", &Settings::rdma_watermark, "count",
               "RDMA: shared receives left when the progress thread posts more; 0: it never does"},
    SettingRow{"rdma_window", &Settings::rdma_window, "count",
               "RDMA: messages under way per connection, with windows or rings"},
    SettingRow{"rdma_queue_pairs", &Settings::rdma_queue_pairs, "count",
               "RDMA: queue pairs of a process at most; -1: what the adapter has"},
    SettingRow{"rdma_send_depth", &Settings::rdma_send_depth, "count",
               "RDMA: requests in the send queue of a connection"},
    SettingRow{"rdma_cache", &Settings::rdma_cache, "bytes",
               "RDMA: user memory that stays registered after its use"},
    SettingRow{"tags_per_peer", &Settings::tags_per_peer, "count",
               "channels (communicator and tag) per peer whose receives may announce themselves",
               Changeable::always},
    SettingRow{"unexpected_limit", &Settings::unexpected_limit, "bytes",
               "unexpected eager data a process keeps before it asks senders for rendezvous",
               Changeable::always},
    SettingRow{"spin", &Settings::spin, "us",
               "time a wait spins before it yields its core, over RDMA before it sleeps; -1: by "
               "ranks per core"},
    SettingRow{"buffered", &Settings::buffered, "bytes",
               "automatic buffers of buffered sends (MPI_BUFFER_AUTOMATIC)", Changeable::always},
    SettingRow{
        "check", &Settings::check, "",
        "compare calls of collectives, datatypes of messages: slower; the same on all ranks"},
    SettingRow{"reproducible", &Settings::reproducible, "",
               "equal reductions on as many ranks give equal bits: slower; the same on all ranks"},
    SettingRow{"report", &Settings::report, report_choices,
               "print at the end what the job did, or write it to a file", Changeable::always},
    SettingRow{"trace", &Settings::trace, "text",
               "a folder for timelines of all ranks, which \"macadam trace\" makes one of"},
};

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::string variable(const SettingRow& row) {
  return std::string(prefix) + upper(row.name);
}

// The index of `text` in "first|second|...".
std::optional<std::int64_t> find_choice(std::string_view choices, std::string_view text) {
  for (std::int64_t index = 0;; ++index) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == text) return index;
    if (bar == std::string_view::npos) return std::nullopt;
    choices.remove_prefix(bar + 1);
  }
}

std::string_view choice(std::string_view choices, std::int64_t index) {
  for (; index > 0; --index)
    choices.remove_prefix(choices.find('|') + 1);
  return choices.substr(0, choices.find('|'));
}

// "16", "64K", "2M", "1G", "-1"; empty if it is none of these or does not fit.
std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const std::string suffix = upper({rest, text.data() + text.size()});
  int shift = 0;
  if (suffix == "K")
    shift = 10;
  else if (suffix == "M")
    shift = 20;
  else if (suffix == "G")
    shift = 30;
  else if (!suffix.empty())
    return std::nullopt;
  if (number > std::numeric_limits<std::int64_t>::max() >> shift || (number < 0 && shift > 0)) {
    return std::nullopt;
  }
  return number << shift;
}

std::optional<bool> parse_flag(std::string_view text) {
  const std::string word = upper(text);
  if (word == "1" || word == "YES" || word == "ON" || word == "TRUE") return true;
  if (word == "0" || word == "NO" || word == "OFF" || word == "FALSE") return false;
  return std::nullopt;
}

[[noreturn]] void refuse(const SettingRow& row, const std::string& text, std::string_view needed) {
  fail(MPI_ERR_ARG, "{}: found '{}', needed {}", variable(row), text, needed);
}

// "yes", "no", or the name of a file.
std::string parse_report(const SettingRow& row, const std::string& text) {
  if (text.ends_with(".json")) return text;
  const auto flag = parse_flag(text);
  if (!flag) refuse(row, text, "yes, no or a file whose name ends with .json");
  return *flag ? "yes" : "no";
}

} // namespace

std::span<const SettingRow> setting_rows() {
  return rows;
}

void set(Settings& settings, const SettingRow& row, const std::string& text) {
  std::visit(
      [&](auto member) {
        using Value = std::remove_reference_t<decltype(settings.*member)>;
        if constexpr (std::is_same_v<Value, bool>) {
          const auto flag = parse_flag(text);
          if (!flag) refuse(row, text, "yes or no");
          settings.*member = *flag;
        } else if constexpr (std::is_same_v<Value, std::string>) {
          if (text.size() > longest_text)
            refuse(row, text, fmt::format("at most {} characters", longest_text));
          settings.*member = row.unit == report_choices ? parse_report(row, text) : text;
        } else if constexpr (std::is_enum_v<Value>) {
          const auto index = find_choice(row.unit, text);
          if (!index) refuse(row, text, fmt::format("one of {}", row.unit));
          settings.*member = static_cast<Value>(*index);
        } else {
          const auto number = parse_number(text);
          // -1 stands for "decide by yourself" where the default says so.
          const std::int64_t least = std::min<std::int64_t>(Settings{}.*member, 0);
          if (!number || *number < least) {
            refuse(row, text,
                   fmt::format(
                       "a number{} from {} on (suffixes K, M, G)",
                       row.unit == std::string_view("count") ? "" : fmt::format(" of {}", row.unit),
                       least));
          }
          settings.*member = *number;
        }
      },
      row.value);
}

std::string show(const Settings& settings, const SettingRow& row) {
  return std::visit(
      [&](auto member) -> std::string {
        using Value = std::remove_cvref_t<decltype(settings.*member)>;
        if constexpr (std::is_same_v<Value, bool>) {
          return settings.*member ? "yes" : "no";
        } else if constexpr (std::is_same_v<Value, std::string>) {
          return settings.*member;
        } else if constexpr (std::is_enum_v<Value>) {
          return std::string(choice(row.unit, static_cast<std::int64_t>(settings.*member)));
        } else {
          const std::int64_t number = settings.*member;
          for (const auto& [shift, suffix] : {std::pair{30, "G"}, {20, "M"}, {10, "K"}}) {
            const bool whole = (number & ((std::int64_t{1} << shift) - 1)) == 0;
            if (number > 0 && whole) return fmt::format("{}{}", number >> shift, suffix);
          }
          return fmt::format("{}", number);
        }
      },
      row.value);
}

std::vector<std::string> read_environment(Settings& settings, const char* const* environment,
                                          std::span<const char* const> reserved) {
  std::vector<std::string> warnings;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (!entry.starts_with(prefix)) continue;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view full = entry.substr(0, equals);
    if (std::find(reserved.begin(), reserved.end(), full) != reserved.end()) continue;
    const std::string_view name = full.substr(prefix.size());
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const SettingRow& r) { return upper(r.name) == name; });
    if (row == rows.end()) {
      std::vector<std::string> names(reserved.begin(), reserved.end());
      std::ranges::transform(rows, std::back_inserter(names), variable);
      warnings.push_back(fmt::format("{} is no setting and was ignored; the nearest name is {}",
                                     full, nearest(names, full, std::identity{})));
      continue;
    }
    try {
      set(settings, *row, std::string(entry.substr(equals + 1)));
    } catch (const Error& error) {
      warnings.push_back(fmt::format("{}; {} is used", error.text, show(settings, *row)));
    }
  }
  return warnings;
}

} // namespace macadam::base
