// SPDX-License-Identifier: BSD-3-Clause
#include "net/ofi/fabric.h"

#include "base/error.h"
#include "base/signals.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstring>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <string_view>
#include <sys/random.h>
#include <vector>

namespace macadam::net::ofi {
namespace {

struct FreeInfo {
  decltype(&::fi_freeinfo) free = nullptr;
  void operator()(fi_info* info) const { free(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

constexpr std::uint64_t data_orders = FI_ORDER_SAW | FI_ORDER_WAW | FI_ORDER_RAW;
// Longer puts and gets are cut.
constexpr std::size_t longest_transfer = std::size_t{1} << 30;
// ... over TCP. While the kernel copies what it is given at once it does not read acknowledgments:
// of 1 MiB the greater part waits until all is copied (402 us over Ethernet, so cut 141). Each is
// just below three of the 64 KiB in which the kernel sends; where a little is left over, it takes
// longer.
constexpr std::size_t tcp_transfer = 190 << 10;

bool is_tcp(std::string_view provider) {
  return provider.starts_with("tcp") || provider.starts_with("net");
}

// libfabric's orders are of messages, not of data. Where all of a pair goes through one connection
// whose end takes one after the other, they are the same.
bool is_stream(std::string_view provider) {
  return is_tcp(provider) || provider.starts_with("verbs;");
}

bool orders_data(const fi_info& info) {
  return (info.tx_attr->msg_order & info.rx_attr->msg_order & data_orders) == data_orders &&
         info.ep_attr->max_order_raw_size >= longest_transfer &&
         info.ep_attr->max_order_waw_size >= longest_transfer &&
         is_stream(info.fabric_attr->prov_name);
}

// All endpoints that do what the transport needs; null if there is none.
Info query(const Library& library, bool delivery) {
  const Info hints(library.dupinfo(nullptr), {library.freeinfo});
  if (hints == nullptr) throw std::bad_alloc();
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  if (delivery) hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  fi_info* found = nullptr;
  const base::SignalHandlersKept guard; // it may load providers
  const int error = library.getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, hints.get(), &found);
  if (error == -FI_ENODATA) return {nullptr, {library.freeinfo}};
  if (error != 0) {
    base::fail(MPI_ERR_OTHER,
               "libfabric: it tells no providers: {}; `fi_info -t FI_EP_RDM` shows "
               "what there is",
               library.text_of(error));
  }
  return {found, {library.freeinfo}};
}

std::string address_of(const fi_info& info) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (info.src_addr == nullptr) return {};
  if (info.addr_format == FI_SOCKADDR_IN)
    inet_ntop(AF_INET, &static_cast<const sockaddr_in*>(info.src_addr)->sin_addr, text.data(),
              text.size());
  if (info.addr_format == FI_SOCKADDR_IN6)
    inet_ntop(AF_INET6, &static_cast<const sockaddr_in6*>(info.src_addr)->sin6_addr, text.data(),
              text.size());
  return text.data();
}

Offer offer_of(const fi_info& info) {
  return {info.fabric_attr->prov_name, info.domain_attr->name, address_of(info)};
}

std::vector<fi_info*> list(fi_info* first) {
  std::vector<fi_info*> all;
  for (fi_info* at = first; at != nullptr; at = at->next)
    all.push_back(at);
  return all;
}

std::vector<Offer> offers_of(const std::vector<fi_info*>& infos) {
  std::vector<Offer> offers;
  for (const fi_info* const info : infos)
    offers.push_back(offer_of(*info));
  return offers;
}

} // namespace

std::vector<Offer> list_offers(const Library& library) {
  const Info any = query(library, false);
  return offers_of(list(any.get()));
}

Fabric::Fabric(const Library& library, const Wish& wish) : library_(library) {
  const Info any = query(library_, false);
  const std::vector<fi_info*> all = list(any.get());
  const fi_info* chosen = all[choose(offers_of(all), wish)];
  Info delivering(nullptr, {library_.freeinfo});
  if (!orders_data(*chosen)) {
    // Then a put says that it is in place when it completes. Only the same provider will do.
    const Offer offer = offer_of(*chosen);
    delivering = query(library_, true);
    std::vector<fi_info*> same = list(delivering.get());
    std::erase_if(same, [&](const fi_info* info) {
      return offer.provider != info->fabric_attr->prov_name ||
             offer.domain != info->domain_attr->name || offer.address != address_of(*info);
    });
    if (same.empty()) {
      base::fail(MPI_ERR_OTHER,
                 "libfabric: {} on {} neither keeps puts and messages in order nor tells when a "
                 "put is in place (FI_DELIVERY_COMPLETE); choose another provider (FI_PROVIDER)",
                 offer.provider, offer.domain);
    }
    chosen = same.front();
  }
  open(*chosen);
}

void Fabric::open(const fi_info& info) {
  const std::string address = address_of(info);
  name_ = fmt::format("{} on {}{}{}", info.fabric_attr->prov_name, info.domain_attr->name,
                      address.empty() ? "" : " ", address);
  const auto check = [&](long error, const char* what) {
    if (error != 0)
      base::fail(MPI_ERR_OTHER,
                 "libfabric: {} gives no {}: {}; see whether a variable of libfabric's (FI_*) asks "
                 "for what it cannot have, or choose another provider by FI_PROVIDER",
                 name_, what, text_of(error));
  };
  const int modes = info.domain_attr->mr_mode;
  limits_.inject = info.tx_attr->inject_size;
  const std::string_view provider = info.fabric_attr->prov_name;
  limits_.message =
      std::min(info.ep_attr->max_msg_size, is_tcp(provider) ? tcp_transfer : longest_transfer);
  limits_.ordered = orders_data(info);
  limits_.stream = is_stream(provider);
  limits_.tcp = is_tcp(provider);
  limits_.bare_tcp = provider == "tcp" || provider == "net";
  limits_.chooses_keys = (modes & FI_MR_PROV_KEY) != 0;
  limits_.virtual_addresses = (modes & FI_MR_VIRT_ADDR) != 0;
  limits_.registers_local = (modes & FI_MR_LOCAL) != 0;
  limits_.gathers = info.tx_attr->iov_limit >= 2 && !limits_.registers_local;
  limits_.pins = (modes & (FI_MR_LOCAL | FI_MR_ALLOCATED)) != 0;
  binds_regions_ = (modes & FI_MR_ENDPOINT) != 0;
  const std::size_t key_bytes = info.domain_attr->mr_key_size;
  key_mask_ = key_bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * key_bytes)) - 1;

  fid_fabric* fabric = nullptr;
  check(library_.fabric(info.fabric_attr, &fabric, nullptr), "fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  auto& its = const_cast<fi_info&>(info); // libfabric's functions only read it
  check(fi_domain(fabric, &its, &domain, nullptr), "domain");
  domain_.reset(domain);

  fi_cq_attr queue{};
  queue.format = FI_CQ_FORMAT_MSG;
  // The descriptor of libfabric's shared memory tells nothing (seen with 1.17).
  queue.wait_obj =
      info.fabric_attr->prov_name == std::string_view("shm") ? FI_WAIT_NONE : FI_WAIT_FD;
  fid_cq* completions = nullptr;
  if (queue.wait_obj == FI_WAIT_NONE || fi_cq_open(domain, &queue, &completions, nullptr) != 0) {
    queue.wait_obj = FI_WAIT_NONE;
    check(fi_cq_open(domain, &queue, &completions, nullptr), "completion queue");
  }
  completions_.reset(completions);
  // Seen with 1.17: that of `net` does not always. It is called `tcp` since, and that of 2.4 does.
  limits_.wakes = provider == "tcp;ofi_rxm" || (provider == "tcp" && library_.version >= 2);
  if (queue.wait_obj == FI_WAIT_FD && fi_control(&completions->fid, FI_GETWAIT, &descriptor_) != 0)
    descriptor_ = -1;

  fi_av_attr table{};
  table.type = info.domain_attr->av_type == FI_AV_MAP ? FI_AV_MAP : FI_AV_TABLE;
  fid_av* addresses = nullptr;
  check(fi_av_open(domain, &table, &addresses, nullptr), "address vector");
  addresses_.reset(addresses);

  fid_ep* endpoint = nullptr;
  check(fi_endpoint(domain, &its, &endpoint, nullptr), "endpoint");
  endpoint_.reset(endpoint);
  check(fi_ep_bind(endpoint, &completions->fid, FI_TRANSMIT | FI_RECV), "endpoint with a queue");
  check(fi_ep_bind(endpoint, &addresses->fid, 0), "endpoint with addresses");
  check(fi_enable(endpoint), "endpoint that is enabled");

  address_.format = info.addr_format;
  address_.protocol = info.ep_attr->protocol;
  std::size_t bytes = address_.address.size();
  check(fi_getname(&endpoint->fid, address_.address.data(), &bytes), "address of at most 48 bytes");
  address_.bytes = static_cast<std::uint32_t>(bytes);
}

std::unique_ptr<mem::MemoryRegion> Fabric::register_memory(void* memory, std::size_t bytes,
                                                           mem::Access access) {
  return std::make_unique<Region>(*this, memory, bytes, access);
}

// Random, so that who has not been told a key does not find it.
std::uint64_t Fabric::new_key() const {
  for (;;) {
    std::uint64_t key = 0;
    if (getrandom(&key, sizeof key, 0) != sizeof key) continue;
    key &= key_mask_;
    if (key != 0 && !regions_.contains(key)) return key;
  }
}

std::byte* Fabric::find(engine::RemoteMemory memory, std::size_t bytes) const {
  const auto found = regions_.find(memory.key);
  if (found == regions_.end()) return nullptr;
  const Region& region = *found->second;
  const std::uintptr_t offset = region.base_ + memory.address - region.begin_;
  if (offset > region.bytes_ || bytes > region.bytes_ - offset) return nullptr;
  return reinterpret_cast<std::byte*>(region.begin_ + offset);
}

fi_addr_t Fabric::insert(const wire::Endpoint& peer) {
  if (peer.magic != wire::Endpoint::magic_value || peer.format != address_.format ||
      peer.protocol != address_.protocol || peer.bytes > peer.address.size()) {
    base::fail(MPI_ERR_OTHER,
               "libfabric: it has published an address of another network than {}; all ranks need "
               "the same: MACADAM_NETWORK, and FI_PROVIDER, choose it",
               name_);
  }
  fi_addr_t inserted = FI_ADDR_NOTAVAIL;
  const int count = fi_av_insert(addresses_.get(), peer.address.data(), 1, &inserted, 0, nullptr);
  if (count != 1 || inserted == FI_ADDR_NOTAVAIL)
    base::fail(MPI_ERR_OTHER, "libfabric: {} does not take its address: {}", name_,
               count < 0 ? text_of(count) : "no reason is told");
  return inserted;
}

void Fabric::remove(fi_addr_t peer) {
  fi_av_remove(addresses_.get(), &peer, 1, 0);
}

bool Fabric::may_sleep() const {
  fid* const queue = &completions_->fid;
  fid* queues[] = {queue};
  return fi_trywait(fabric_.get(), queues, 1) == 0;
}

Region::Region(Fabric& fabric, void* memory, std::size_t bytes, mem::Access access)
    : fabric_(fabric), begin_(reinterpret_cast<std::uintptr_t>(memory)), bytes_(bytes),
      remote_(access == mem::Access::remote) {
  const ProviderLimits& limits = fabric.limits_;
  if (!remote_ && !limits.registers_local) return;
  const std::uint64_t rights =
      FI_SEND | FI_RECV | FI_READ | FI_WRITE | (remote_ ? FI_REMOTE_READ | FI_REMOTE_WRITE : 0);
  const std::uint64_t wanted = limits.chooses_keys ? 0 : fabric.new_key();
  fid_mr* made = nullptr;
  int error = fi_mr_reg(fabric.domain_.get(), memory, bytes, rights, 0, wanted, 0, &made, nullptr);
  if (error == 0) {
    region_.reset(made);
    if (fabric.binds_regions_) {
      error = fi_mr_bind(made, &fabric.endpoint_->fid, 0);
      if (error == 0) error = fi_mr_enable(made);
    }
  }
  if (error != 0)
    base::fail(MPI_ERR_NO_MEM, "libfabric: {} does not register {} bytes: {}", fabric.name_, bytes,
               fabric.text_of(error));
  remote_key = fi_mr_key(made);
  base_ = limits.virtual_addresses ? 0 : begin_;
  if (!remote_ || fabric.regions_.emplace(remote_key, this).second) return;
  // One would be found for the other, and end with it.
  base::fail(
      MPI_ERR_OTHER,
      "libfabric: {} gives two regions the same key {:#x}, as libfabric keeps registrations, "
      "which this library does already; give all ranks FI_MR_CACHE_MONITOR=disabled",
      fabric.name_, remote_key);
}

Region::~Region() {
  if (remote_) fabric_.regions_.erase(remote_key);
}

} // namespace macadam::net::ofi
