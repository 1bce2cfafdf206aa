// SPDX-License-Identifier: BSD-3-Clause
// The entry points of Fortran, for the module `gravel` (gravel.f90) and for gravelf.h: everything
// by reference, an error code last. An argument that is absent (optional in the module) is null
// here.
#include "libgravel/gravel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// What the compilers in use (GNU, LLVM, Intel, NVIDIA) make of an external procedure's name.
#define FORTRAN(name) name##_

namespace {

// Without a place for the code nobody would see the error.
void report(int code, int* ierror) {
  if (ierror != nullptr) {
    *ierror = code;
  } else if (code != GRAVEL_SUCCESS) {
    std::fprintf(stderr, "%s\n", gravel_error_message());
    std::abort();
  }
}

} // namespace

#pragma GCC visibility push(default)
extern "C" {

void FORTRAN(gravel_init)(const int* comm, int* ierror) {
  report(gravel_init(MPI_Comm_fromint(*comm)), ierror);
}

void FORTRAN(gravel_finalize)(int* ierror) {
  report(gravel_finalize(), ierror);
}

// The compiler adds the length of the text, which is filled with blanks.
void FORTRAN(gravel_error_message)(char* text, std::size_t length) {
  const char* const message = gravel_error_message();
  const std::size_t used = std::min(std::strlen(message), length);
  std::memcpy(text, message, used);
  std::memset(text + used, ' ', length - used);
}

void FORTRAN(gravel_register)(void* memory, const std::int64_t* bytes, int* ierror) {
  report(gravel_register(memory, static_cast<std::size_t>(*bytes)), ierror);
}

void FORTRAN(gravel_unregister)(void* memory, int* ierror) {
  report(gravel_unregister(memory), ierror);
}

void FORTRAN(gravel_post_recv_buffer_rdma)(const int* producer, void* memory,
                                           const std::int64_t* bytes, const int* tag,
                                           gravel_request* request, int* ierror) {
  report(gravel_post_recv_buffer_rdma(*producer, memory, static_cast<std::size_t>(*bytes), *tag,
                                      request),
         ierror);
}

void FORTRAN(gravel_promise_recv_buffers)(const int* producer, const std::int64_t* bytes,
                                          const int* tag, const std::int64_t* count, int* ierror) {
  report(gravel_promise_recv_buffers(*producer, static_cast<std::size_t>(*bytes), *tag,
                                     static_cast<std::size_t>(*count)),
         ierror);
}

void FORTRAN(gravel_wait_recv_buffer)(const int* consumer, const int* tag, gravel_buffer* buffer,
                                      int* ierror) {
  report(gravel_wait_recv_buffer(*consumer, *tag, buffer), ierror);
}

void FORTRAN(gravel_test_recv_buffer)(const int* consumer, const int* tag, gravel_buffer* buffer,
                                      int* flag, int* ierror) {
  report(gravel_test_recv_buffer(*consumer, *tag, buffer, flag), ierror);
}

void FORTRAN(gravel_post_os_put)(const gravel_buffer* buffer, const void* memory,
                                 const std::int64_t* bytes, const std::int64_t* offset,
                                 gravel_request* request, int* ierror) {
  report(gravel_post_os_put(*buffer, memory, static_cast<std::size_t>(*bytes),
                            static_cast<std::size_t>(*offset), request),
         ierror);
}

void FORTRAN(gravel_post_os_get)(const gravel_buffer* buffer, void* memory,
                                 const std::int64_t* bytes, const std::int64_t* offset,
                                 gravel_request* request, int* ierror) {
  report(gravel_post_os_get(*buffer, memory, static_cast<std::size_t>(*bytes),
                            static_cast<std::size_t>(*offset), request),
         ierror);
}

void FORTRAN(gravel_send_fin)(const gravel_buffer* buffer, gravel_request* request, int* ierror) {
  report(gravel_send_fin(*buffer, request), ierror);
}

void FORTRAN(gravel_post_send_request_rdma)(const int* consumer, const std::int64_t* bytes,
                                            const int* tag, gravel_request* request, int* ierror) {
  report(gravel_post_send_request_rdma(*consumer, static_cast<std::size_t>(*bytes), *tag, request),
         ierror);
}

void FORTRAN(gravel_wait_send_request)(const int* producer, const int* tag, int* from,
                                       int* found_tag, std::int64_t* bytes, int* ierror) {
  report(gravel_wait_send_request(*producer, *tag, from, found_tag,
                                  reinterpret_cast<std::size_t*>(bytes)),
         ierror);
}

void FORTRAN(gravel_test_send_request)(const int* producer, const int* tag, int* from,
                                       int* found_tag, std::int64_t* bytes, int* flag,
                                       int* ierror) {
  report(gravel_test_send_request(*producer, *tag, from, found_tag,
                                  reinterpret_cast<std::size_t*>(bytes), flag),
         ierror);
}

void FORTRAN(gravel_post_send_buffer_rdma)(const int* consumer, const void* memory,
                                           const std::int64_t* bytes, const int* tag,
                                           gravel_request* request, int* ierror) {
  report(gravel_post_send_buffer_rdma(*consumer, memory, static_cast<std::size_t>(*bytes), *tag,
                                      request),
         ierror);
}

void FORTRAN(gravel_wait_send_buffer)(const int* producer, const int* tag, gravel_buffer* buffer,
                                      int* ierror) {
  report(gravel_wait_send_buffer(*producer, *tag, buffer), ierror);
}

void FORTRAN(gravel_test_send_buffer)(const int* producer, const int* tag, gravel_buffer* buffer,
                                      int* flag, int* ierror) {
  report(gravel_test_send_buffer(*producer, *tag, buffer, flag), ierror);
}

void FORTRAN(gravel_get_buffer)(const gravel_buffer* buffer, int* peer, int* tag,
                                std::int64_t* bytes, int* ierror) {
  report(gravel_get_buffer(*buffer, peer, tag, reinterpret_cast<std::size_t*>(bytes)), ierror);
}

void FORTRAN(gravel_wait)(gravel_request* request, int* ierror) {
  report(gravel_wait(request), ierror);
}

void FORTRAN(gravel_test)(gravel_request* request, int* flag, int* ierror) {
  report(gravel_test(request, flag), ierror);
}

void FORTRAN(gravel_waitall)(const int* count, gravel_request* requests, int* ierror) {
  report(gravel_waitall(*count, requests), ierror);
}

} // extern "C"
#pragma GCC visibility pop
