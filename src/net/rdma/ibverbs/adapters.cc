// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ibverbs/adapters.h"

#include "base/error.h"
#include "base/line.h"
#include "net/rdma/ibverbs/surroundings.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace macadam::net::rdma::ibverbs {
namespace {

// Verbs tells the width of a link and the speed of one lane, each as one bit of a set.
struct Rate {
  unsigned code;
  double value;
};
constexpr std::array widths = {Rate{1, 1}, Rate{16, 2}, Rate{2, 4}, Rate{4, 8}, Rate{8, 12}};
constexpr std::array lane_gigabits = {Rate{1, 2.5}, Rate{2, 5},   Rate{4, 10},  Rate{8, 10},
                                      Rate{16, 14}, Rate{32, 25}, Rate{64, 50}, Rate{128, 100}};

double find_rate(std::span<const Rate> rates, unsigned code) {
  const auto found = std::ranges::find(rates, code, &Rate::code);
  return found == rates.end() ? 0 : found->value;
}

std::string text_of_state(ibv_port_state state) {
  switch (state) {
  case IBV_PORT_DOWN:
    return "down";
  case IBV_PORT_INIT:
    return "initialising";
  case IBV_PORT_ARMED:
    return "armed";
  case IBV_PORT_ACTIVE:
    return "active";
  default:
    return fmt::format("number {}", static_cast<int>(state));
  }
}

LinkLayer layer_of(std::uint8_t link_layer) {
  switch (link_layer) {
  case IBV_LINK_LAYER_UNSPECIFIED: // before there was another
  case IBV_LINK_LAYER_INFINIBAND:
    return LinkLayer::infiniband;
  case IBV_LINK_LAYER_ETHERNET:
    return LinkLayer::ethernet;
  default:
    return LinkLayer::other;
  }
}

// As the inline function of verbs.h does, which cannot be used without linking the library.
int query_port(const Library& library, ibv_context& context, std::uint8_t number,
               ibv_port_attr& attributes) {
  attributes = {};
  verbs_context* const extended = verbs_get_ctx(&context);
  constexpr std::size_t needed = sizeof(verbs_context) - offsetof(verbs_context, query_port);
  if (extended != nullptr && extended->sz >= needed && extended->query_port != nullptr)
    return extended->query_port(&context, number, &attributes, sizeof attributes);
  return library.query_port(&context, number,
                            reinterpret_cast<_compat_ibv_port_attr*>(&attributes));
}

GidKind kind_of(std::uint32_t type) {
  switch (type) {
  case IBV_GID_TYPE_ROCE_V1:
    return GidKind::roce_v1;
  case IBV_GID_TYPE_ROCE_V2:
    return GidKind::roce_v2;
  default:
    return GidKind::infiniband;
  }
}

Gid make_gid(std::uint32_t index, GidKind kind, const ibv_gid& raw) {
  Gid gid{.index = index, .kind = kind};
  std::copy(std::begin(raw.raw), std::end(raw.raw), gid.bytes.begin());
  return gid;
}

// Libraries before rdma-core 32 do not tell the kind of a GID; the kernel does, in a file.
GidKind read_kind(const PortFacts& port, std::uint32_t index) {
  const std::string text = base::read_line(fmt::format(
      "/sys/class/infiniband/{}/ports/{}/gid_attrs/types/{}", port.device, port.number, index));
  if (text == "RoCE v2") return GidKind::roce_v2;
  return port.layer == LinkLayer::ethernet ? GidKind::roce_v1 : GidKind::infiniband;
}

// The valid entries of the port's table, which has `size`, in an adapter of `ports` ports.
std::vector<Gid> read_gids(const Library& library, ibv_context& context, const PortFacts& port,
                           std::uint32_t size, std::size_t ports) {
  constexpr std::uint32_t most = 255; // what the index in an address of verbs can name
  std::vector<Gid> gids;
  if (library.query_gid_table != nullptr) {
    const std::size_t room = size * ports;
    std::vector<ibv_gid_entry> entries(room);
    const ssize_t count =
        library.query_gid_table(&context, entries.data(), room, 0, sizeof(ibv_gid_entry));
    for (ssize_t i = 0; i < count; ++i) {
      const ibv_gid_entry& entry = entries[static_cast<std::size_t>(i)];
      if (entry.port_num == port.number && entry.gid_index <= most)
        gids.push_back(make_gid(entry.gid_index, kind_of(entry.gid_type), entry.gid));
    }
    if (count >= 0) return gids;
  }
  for (std::uint32_t index = 0; index < std::min(size, most + 1); ++index) {
    ibv_gid raw{};
    if (library.query_gid(&context, port.number, static_cast<int>(index), &raw) != 0) continue;
    const bool empty = std::ranges::all_of(raw.raw, [](std::uint8_t byte) { return byte == 0; });
    if (!empty) gids.push_back(make_gid(index, read_kind(port, index), raw));
  }
  return gids;
}

PortFacts read_port(const Library& library, ibv_context& context, std::uint8_t number,
                    std::size_t ports) {
  PortFacts facts;
  facts.device = library.get_device_name(context.device);
  facts.number = number;
  ibv_port_attr attributes;
  if (const int error = query_port(library, context, number, attributes)) {
    facts.trouble = fmt::format("its state cannot be read: {}", text_of_errno(error));
    return facts;
  }
  facts.queue_pairs = context.device->transport_type == IBV_TRANSPORT_IB;
  facts.active = attributes.state == IBV_PORT_ACTIVE;
  facts.state = text_of_state(attributes.state);
  facts.layer = layer_of(attributes.link_layer);
  // On Ethernet there is no other way to say who is meant.
  facts.global = facts.layer == LinkLayer::ethernet || (attributes.flags & IBV_QPF_GRH_REQUIRED);
  facts.lid = attributes.lid;
  facts.mtu = static_cast<std::uint8_t>(attributes.active_mtu);
  facts.message = attributes.max_msg_sz;
  facts.gigabits = find_rate(widths, attributes.active_width) *
                   find_rate(lane_gigabits, attributes.active_speed);
  const auto table = static_cast<std::uint32_t>(std::clamp(attributes.gid_tbl_len, 0, 1 << 16));
  facts.gids = read_gids(library, context, facts, table, ports);
  read_surroundings(facts);
  return facts;
}

// The ports of one adapter; if it cannot be opened, one that says so.
void add_ports(const Library& library, ibv_device& device, std::vector<OpenPort>& ports) {
  const std::shared_ptr<ibv_context> context(library.open_device(&device),
                                             [close = library.close_device](ibv_context* opened) {
                                               if (opened != nullptr) close(opened);
                                             });
  const int open_error = errno;
  const auto give_up = [&](const std::string& trouble) {
    PortFacts facts;
    facts.device = library.get_device_name(&device);
    facts.trouble = trouble;
    ports.push_back({std::move(facts), nullptr});
  };
  if (context == nullptr) {
    return give_up(fmt::format("it cannot be opened: {}; its file in /dev/infiniband must be "
                               "readable and writable for this user",
                               text_of_errno(open_error)));
  }
  ibv_device_attr attributes{};
  if (const int error = library.query_device(context.get(), &attributes))
    return give_up(fmt::format("it does not tell what it can do: {}", text_of_errno(error)));
  for (unsigned number = 1; number <= attributes.phys_port_cnt; ++number) {
    ports.push_back(
        {read_port(library, *context, static_cast<std::uint8_t>(number), attributes.phys_port_cnt),
         context});
  }
}

} // namespace

std::vector<OpenPort> list_ports(const Library& library) {
  std::vector<OpenPort> ports;
  int count = 0;
  ibv_device** const devices = library.get_device_list(&count);
  if (devices == nullptr) {
    // Without drivers in the kernel there is no list.
    if (errno == ENOSYS || errno == ENOENT) return ports;
    base::fail(MPI_ERR_OTHER, "RDMA: libibverbs cannot list the adapters: {}",
               text_of_errno(errno));
  }
  for (int i = 0; i < count; ++i)
    add_ports(library, *devices[i], ports);
  library.free_device_list(devices);
  return ports;
}

std::string text_of_errno(int error) {
  return std::generic_category().message(error);
}

} // namespace macadam::net::rdma::ibverbs
