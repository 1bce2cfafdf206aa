// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/request.h"

#include <mpi.h>

#include <cstdint>
#include <cstring>

// What we keep in the five private words of the standard ABI's MPI_Status: bytes received in words
// 0 and 1, whether the operation was cancelled in word 2. MPI_ERROR is written only in an empty
// status and by calls that complete several requests and return MPI_ERR_IN_STATUS.
namespace macadam::mpi {

inline void set_bytes(MPI_Status& status, std::uint64_t bytes) {
  std::memcpy(&status.MPI_internal[0], &bytes, sizeof bytes);
}
[[nodiscard]] inline std::uint64_t bytes(const MPI_Status& status) {
  std::uint64_t bytes;
  std::memcpy(&bytes, &status.MPI_internal[0], sizeof bytes);
  return bytes;
}
inline void set_cancelled(MPI_Status& status, bool cancelled) {
  status.MPI_internal[2] = cancelled ? 1 : 0;
}
[[nodiscard]] inline bool cancelled(const MPI_Status& status) {
  return status.MPI_internal[2] != 0;
}

// Both do nothing for MPI_STATUS_IGNORE.
inline void set_status(MPI_Status* status, std::int32_t source, std::int32_t tag,
                       std::uint64_t length, bool was_cancelled = false) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  set_bytes(*status, length);
  set_cancelled(*status, was_cancelled);
}
inline void set_status(MPI_Status* status, const engine::Status& how) {
  set_status(status, how.source, how.tag, how.bytes, how.cancelled);
}

// The empty status of the standard, where there is no operation: no source, no tag, no data, no
// error.
// That of request i, of an array which may be MPI_STATUSES_IGNORE.
[[nodiscard]] inline MPI_Status* status_of(MPI_Status* statuses, int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

inline void set_empty(MPI_Status* status) {
  set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
  if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = MPI_SUCCESS;
}

} // namespace macadam::mpi
