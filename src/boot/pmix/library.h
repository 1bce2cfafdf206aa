// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pmix.h>

namespace macadam::boot::pmix {

// What is used of libpmix, which is opened when a PMIx server has started the program: machines
// without it run all other jobs.
struct Library {
  decltype(&PMIx_Init) init = nullptr;
  decltype(&PMIx_Finalize) finalize = nullptr;
  decltype(&PMIx_Abort) abort = nullptr;
  decltype(&PMIx_Put) put = nullptr;
  decltype(&PMIx_Commit) commit = nullptr;
  decltype(&PMIx_Get) get = nullptr;
  decltype(&PMIx_Get_nb) get_nb = nullptr;
  decltype(&PMIx_Fence_nb) fence_nb = nullptr;
  decltype(&PMIx_Publish) publish = nullptr;
  decltype(&PMIx_Lookup) lookup = nullptr;
  decltype(&PMIx_Register_event_handler) register_event_handler = nullptr;
  decltype(&PMIx_Query_info) query_info = nullptr;
  decltype(&PMIx_Error_string) error_string = nullptr;
};

// Once for the process. Throws MPI_ERR_OTHER with the remedy.
const Library& library();

} // namespace macadam::boot::pmix
