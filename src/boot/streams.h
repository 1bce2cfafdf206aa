// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace macadam::boot {

// Writes out what this process has in the buffers of C's streams and of gfortran's units. For a
// process that is about to end without the usual way out. Can wait for a thread that uses a stream.
void flush_streams();

} // namespace macadam::boot
