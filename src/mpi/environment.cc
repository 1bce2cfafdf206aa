// SPDX-License-Identifier: BSD-3-Clause
// Questions about the library and its environment, memory, addresses, time.
#include "mpi/calls.h"
#include "mpi/process.h"

#include <cstdarg>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace macadam::mpi {
namespace {

double seconds(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void copy_string(std::string_view text, int room, char* string, int* length) {
  *length = static_cast<int>(text.copy(string, static_cast<std::size_t>(room) - 1));
  string[*length] = '\0';
}

} // namespace

void get_version(Library&, int* version, int* subversion) {
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
}

void get_library_version(Library&, char* version, int* resultlen) {
  const std::string text =
      fmt::format("Macadam {} (MPI {}.{}, standard ABI {}.{})", MACADAM_VERSION, MPI_VERSION,
                  MPI_SUBVERSION, MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
  copy_string(text, MPI_MAX_LIBRARY_VERSION_STRING, version, resultlen);
}

void abi_get_version(Library&, int* abi_major, int* abi_minor) {
  *abi_major = MPI_ABI_VERSION;
  *abi_minor = MPI_ABI_SUBVERSION;
}

void abi_get_info(Library& self, MPI_Info* info) {
  *info = make_info(self, {{"mpi_aint_size", std::to_string(sizeof(MPI_Aint))},
                           {"mpi_count_size", std::to_string(sizeof(MPI_Count))},
                           {"mpi_offset_size", std::to_string(sizeof(MPI_Offset))}});
}

void get_processor_name(Process& self, char* name, int* resultlen) {
  copy_string(self.job->host(), MPI_MAX_PROCESSOR_NAME, name, resultlen);
}

void get_hw_resource_info(Process& self, MPI_Info* hw_info) {
  // The keys are URIs of resources by which MPI_Comm_split_type can split: it knows of none.
  *hw_info = make_info(self, {});
}

// Without the lock: another thread may end the instance. Its networks read the clock below as well,
// except where time is virtual, as there is one thread then.
double wtime() {
  const Process* const runs = running;
  if (runs != nullptr && !runs->runtime->has_real_time()) return runs->instance->nearest().now();
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return seconds(time);
}

double wtick() {
  timespec resolution;
  ::clock_getres(CLOCK_MONOTONIC, &resolution);
  return seconds(resolution);
}

void pcontrol(Library&, int) {} // there is no profiler to control

void alloc_mem(Process& self, MPI_Aint size, Info* info, void* baseptr) {
  // Room in the transport's shared segment, where peers read and write directly; else private
  // memory.
  std::size_t alignment = 64;
  if (info != nullptr) {
    if (const std::string* wanted = info->find("mpi_minimum_memory_alignment")) {
      alignment = std::max<std::size_t>(alignment, std::strtoull(wanted->c_str(), nullptr, 10));
    }
  }
  const auto bytes = static_cast<std::size_t>(size);
  void* memory = alignment <= 64 && bytes > 0 ? self.instance->nearest().allocate(bytes) : nullptr;
  if (memory != nullptr) self.instance->shared_allocations.insert(memory);
  if (memory == nullptr && (alignment & (alignment - 1)) == 0) {
    memory =
        std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment + alignment);
  }
  if (memory == nullptr) {
    base::fail(MPI_ERR_NO_MEM, "{} bytes aligned to {} cannot be had from the system", bytes,
               alignment);
  }
  *static_cast<void**>(baseptr) = memory;
}

void free_mem(Process& self, void* base) {
  if (self.instance->shared_allocations.erase(base) != 0) {
    self.instance->nearest().free(base);
  } else {
    std::free(base);
  }
}

void get_address(Library&, const void* location, MPI_Aint* address) {
  *address = reinterpret_cast<MPI_Aint>(location);
}

// Modulo 2^64, as addresses beyond the middle of the address space need it.
MPI_Aint aint_add(MPI_Aint base, MPI_Aint disp) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(base) +
                               static_cast<std::uintptr_t>(disp));
}
MPI_Aint aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(addr1) -
                               static_cast<std::uintptr_t>(addr2));
}

} // namespace macadam::mpi
