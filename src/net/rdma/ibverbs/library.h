// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <sys/types.h>

namespace macadam::net::rdma::ibverbs {

// The functions of libibverbs.so.1, found when the program runs: one binary serves machines with
// and without RDMA. What is not here (posting, polling, arming) is inline in the library's header
// and calls the adapter's driver directly.
#define MACADAM_VERBS_FUNCTIONS(X)                                                                 \
  X(get_device_list)                                                                               \
  X(free_device_list)                                                                              \
  X(get_device_name)                                                                               \
  X(open_device)                                                                                   \
  X(close_device)                                                                                  \
  X(query_device)                                                                                  \
  X(query_port)                                                                                    \
  X(query_gid)                                                                                     \
  X(alloc_pd)                                                                                      \
  X(dealloc_pd)                                                                                    \
  X(reg_mr)                                                                                        \
  X(dereg_mr)                                                                                      \
  X(create_comp_channel)                                                                           \
  X(destroy_comp_channel)                                                                          \
  X(create_cq)                                                                                     \
  X(destroy_cq)                                                                                    \
  X(get_cq_event)                                                                                  \
  X(ack_cq_events)                                                                                 \
  X(create_srq)                                                                                    \
  X(modify_srq)                                                                                    \
  X(destroy_srq)                                                                                   \
  X(create_qp)                                                                                     \
  X(modify_qp)                                                                                     \
  X(destroy_qp)                                                                                    \
  X(create_ah)                                                                                     \
  X(destroy_ah)                                                                                    \
  X(get_async_event)                                                                               \
  X(ack_async_event)                                                                               \
  X(event_type_str)

struct Library {
#define MACADAM_VERBS_MEMBER(name) decltype(&::ibv_##name) name = nullptr;
  MACADAM_VERBS_FUNCTIONS(MACADAM_VERBS_MEMBER)
#undef MACADAM_VERBS_MEMBER

  // Null where the library is older than these.
  decltype(&::_ibv_query_gid_table) query_gid_table = nullptr;
  decltype(&::ibv_query_qp_data_in_order) query_qp_data_in_order = nullptr;
};

// Loads the library, which stays loaded: its drivers cannot be unloaded. Throws base::Error
// (MPI_ERR_OTHER) with the system's words if it is not there or lacks a function.
Library load_library();

} // namespace macadam::net::rdma::ibverbs
