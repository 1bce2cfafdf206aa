// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ibverbs/library.h"

#include "base/error.h"

#include <dlfcn.h>

namespace macadam::net::rdma::ibverbs {
namespace {

constexpr const char* file = "libibverbs.so.1";

template <class Function>
void find_optional(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  find_optional(library, name, function);
  if (function == nullptr)
    base::fail(MPI_ERR_OTHER, "RDMA: {} has no {}; install libibverbs of rdma-core 15 or later",
               file, name);
}

} // namespace

Library load_library() {
  void* const loaded = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (loaded == nullptr) {
    base::fail(
        MPI_ERR_OTHER,
        "RDMA: {} cannot be loaded ({}); install rdma-core's libibverbs with the provider of "
        "the adapter",
        file, dlerror());
  }
  Library library;
#define MACADAM_VERBS_FIND(name) find(loaded, "ibv_" #name, library.name);
  MACADAM_VERBS_FUNCTIONS(MACADAM_VERBS_FIND)
#undef MACADAM_VERBS_FIND
  find_optional(loaded, "_ibv_query_gid_table", library.query_gid_table);
  find_optional(loaded, "ibv_query_qp_data_in_order", library.query_qp_data_in_order);
  return library;
}

} // namespace macadam::net::rdma::ibverbs
