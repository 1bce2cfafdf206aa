// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ibverbs/port.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sys/resource.h>

namespace macadam::net::rdma::ibverbs {
namespace {

constexpr std::uint8_t hop_limit = 64; // routers on the way, at most
constexpr const char* unlimited = "unlimited";

Owned<ibv_pd> make_domain(const Library& library, ibv_context* context, const std::string& name) {
  Owned<ibv_pd> domain(library.alloc_pd(context), library.dealloc_pd);
  if (domain == nullptr)
    base::fail(MPI_ERR_OTHER, "RDMA: {} gives no protection domain: {}", name,
               text_of_errno(errno));
  return domain;
}

// What counts against the limit of locked memory already: adapters pin, others lock.
std::uint64_t locked_kibibytes() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/status", "re"),
                                                   std::fclose);
  std::uint64_t sum = 0;
  char line[256];
  while (file && std::fgets(line, sizeof line, file.get())) {
    unsigned long kibibytes = 0;
    if (std::sscanf(line, "VmLck: %lu", &kibibytes) == 1 ||
        std::sscanf(line, "VmPin: %lu", &kibibytes) == 1)
      sum += kibibytes;
  }
  return sum;
}

// The vendor of soft-RoCE's devices, and what a request takes there: a system call that makes the
// packet.
constexpr std::uint32_t soft_roce = 0xffffff;
constexpr double soft_roce_post_s = 5e-6;

std::uint32_t positive(int value) {
  return static_cast<std::uint32_t>(std::max(value, 0));
}

DeviceLimits query_limits(const Library& library, ibv_context* context, const PortFacts& facts) {
  ibv_device_attr attributes{};
  if (const int error = library.query_device(context, &attributes))
    base::fail(MPI_ERR_OTHER, "RDMA: {} does not tell what it can do: {}", facts.name(),
               text_of_errno(error));
  DeviceLimits limits;
  limits.queue_pairs = positive(attributes.max_qp);
  limits.regions = positive(attributes.max_mr);
  limits.send_depth = positive(attributes.max_qp_wr);
  limits.receive_depth = positive(attributes.max_qp_wr);
  limits.shared_depth = attributes.max_srq > 0 ? positive(attributes.max_srq_wr) : 0;
  limits.completion_depth = positive(attributes.max_cqe);
  limits.segments =
      positive(attributes.max_sge_rd > 0 ? std::min(attributes.max_sge, attributes.max_sge_rd)
                                         : attributes.max_sge);
  limits.outstanding_reads =
      positive(std::min(attributes.max_qp_rd_atom, attributes.max_qp_init_rd_atom));
  limits.mtu = 128u << facts.mtu;
  limits.message = facts.message;
  if (attributes.vendor_id == soft_roce) limits.post_s = soft_roce_post_s;
  if (facts.gigabits > 0) limits.bytes_per_s = facts.gigabits * 1e9 / 8;
  limits.atomics = attributes.atomic_cap != IBV_ATOMIC_NONE;
  // Verbs' rule for reliable connections: what completes at the target ensures that the data of all
  // transfers before it are visible. No query is about the order in which memory shows separate
  // writes (ibv_query_qp_data_in_order is about the bytes of one). A reliable connection executes
  // them in order, and only relaxed ordering of a region or out-of-order placement, which a queue
  // pair is made with, lets a later one overtake: we ask for neither.
  limits.orders_arrivals = true;
  limits.orders_writes = true;
  return limits;
}

// What no query tells: how many bytes a request may carry in itself (few adapters give as many as
// the first try asks for), and whether the adapter vouches for the order in which it places the
// bytes of a write. No region is registered for relaxed ordering, which would give that up.
void probe_queue_pair(const Library& library, ibv_context* context, ibv_pd* domain,
                      const std::string& name, DeviceLimits& limits) {
  const Owned<ibv_cq> queue(library.create_cq(context, 1, nullptr, nullptr, 0), library.destroy_cq);
  if (queue == nullptr)
    base::fail(MPI_ERR_OTHER,
               "RDMA: {} gives no completion queue: {}; the limit of locked memory "
               "is {}",
               name, text_of_errno(errno), Port::locked_memory_limit());
  int error = 0;
  for (const std::uint32_t bytes : {256u, 192u, 128u, 64u, 0u}) {
    ibv_qp_init_attr options{};
    options.send_cq = options.recv_cq = queue.get();
    options.cap = {.max_send_wr = 1,
                   .max_recv_wr = 1,
                   .max_send_sge = 1,
                   .max_recv_sge = 1,
                   .max_inline_data = bytes};
    options.qp_type = IBV_QPT_RC;
    const Owned<ibv_qp> pair(library.create_qp(domain, &options), library.destroy_qp);
    if (pair == nullptr) {
      error = errno;
      continue;
    }
    limits.inline_bytes = bytes;
    limits.orders_bytes = library.query_qp_data_in_order != nullptr &&
                          library.query_qp_data_in_order(pair.get(), IBV_WR_RDMA_WRITE, 0) == 1;
    return;
  }
  base::fail(MPI_ERR_OTHER, "RDMA: {} gives no queue pair: {}; the limit of locked memory is {}",
             name, text_of_errno(error), Port::locked_memory_limit());
}

} // namespace

Port::Port(const Library& loaded, OpenPort open, const Gid& chosen)
    : library(loaded), context(std::move(open.context)), facts(std::move(open.facts)), gid(chosen),
      name(facts.name()), domain(make_domain(library, context.get(), name)),
      limits(query_limits(library, context.get(), facts)) {
  address.gid = gid.bytes;
  address.lid = facts.lid;
  address.mtu = facts.mtu;
  probe_queue_pair(library, context.get(), domain.get(), name, limits);
}

ibv_ah_attr Port::route_to(const PortAddress& to) const {
  ibv_ah_attr route{};
  route.port_num = facts.number;
  route.dlid = static_cast<std::uint16_t>(to.lid);
  // Another subnet of InfiniBand is reached through a router.
  constexpr std::size_t subnet_bytes = 8;
  const bool same_subnet =
      std::equal(to.gid.begin(), to.gid.begin() + subnet_bytes, gid.bytes.begin());
  if (!facts.global && same_subnet) return route;
  route.is_global = 1;
  std::memcpy(route.grh.dgid.raw, to.gid.data(), to.gid.size());
  route.grh.sgid_index = static_cast<std::uint8_t>(gid.index);
  route.grh.hop_limit = hop_limit;
  return route;
}

void Port::refuse_object(const std::string& what, int error) const {
  if (error == ENOMEM || error == EPERM || error == EAGAIN) {
    const std::string locked = locked_memory_limit();
    if (locked == unlimited) {
      base::fail(MPI_ERR_NO_MEM,
                 "RDMA: {} gives no {}: {}; either the adapter has no more (end other processes "
                 "that use it), or the control group of this process may have no more (raise its "
                 "rdma.max)",
                 name, what, text_of_errno(error));
    }
    base::fail(
        MPI_ERR_NO_MEM,
        "RDMA: {} gives no {}: {}; the limit of locked memory (memlock) is {}, needed are the {} "
        "KiB that are locked already and this: raise it with \"ulimit -l unlimited\" as root "
        "(docker run --ulimit memlock=-1); or, where that was enough, the adapter has no more, as "
        "other processes use it too",
        name, what, text_of_errno(error), locked, locked_kibibytes());
  }
  base::fail(MPI_ERR_OTHER, "RDMA: {} gives no {}: {}", name, what, text_of_errno(error));
}

void Port::tell_refused(const char* what, int error) {
  loss.tell(fmt::format("{} takes no {}: {}", name, what, text_of_errno(error)));
}

std::string Port::locked_memory_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return unlimited;
  return fmt::format("{} KiB", limit.rlim_cur / 1024);
}

} // namespace macadam::net::rdma::ibverbs
