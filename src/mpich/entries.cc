// SPDX-License-Identifier: BSD-3-Clause
// The functions whose arguments the generator cannot convert one by one: those that take callbacks
// or attributes, some whose parameters explain each other, and those that only MPICH's ABI has.
#include "mpich/callbacks.h"
#include "mpich/names.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>

using namespace macadam::mpich;

// --- The end, behind which handles of all kinds mean nothing, or other objects.

namespace {

template <class... Handles>
void forget_all() {
  (Known<Handles>::forget_all(), ...);
}

int ended(int answer) {
  forget_all<MPI_Comm, MPI_Datatype, MPI_Errhandler, MPI_Group, MPI_Info, MPI_Message, MPI_Op,
             MPI_Request, MPI_Session, MPI_Win>();
  return code(answer);
}

} // namespace

MPICH_ENTRY(int, Finalize, (void)) {
  return ended(standard.Finalize());
}
MPICH_ENTRY(int, Session_finalize, (int* session)) {
  return ended(standard.Session_finalize(InOut<MPI_Session>(session)));
}

// --- Operations and error handlers.

MPICH_ENTRY(int, Op_create, (UserFunction<int> * function, int commute, int* op)) {
  return code(standard.Op_create(operation(function), commute, Out<MPI_Op>(op)));
}
MPICH_ENTRY(int, Op_create_c, (UserFunction<MPI_Count> * function, int commute, int* op)) {
  return code(standard.Op_create_c(operation(function), commute, Out<MPI_Op>(op)));
}

#define ERRHANDLER(Name, Handle)                                                                   \
  MPICH_ENTRY(int, Name, (ErrorFunction<Handle> * function, int* errhandler)) {                    \
    return code(standard.Name(error_handler<Handle>(function), Out<MPI_Errhandler>(errhandler)));  \
  }
ERRHANDLER(Comm_create_errhandler, MPI_Comm)
ERRHANDLER(File_create_errhandler, MPI_File)
ERRHANDLER(Session_create_errhandler, MPI_Session)
ERRHANDLER(Win_create_errhandler, MPI_Win)
ERRHANDLER(Errhandler_create, MPI_Comm)
#undef ERRHANDLER

// --- Attributes.

namespace {

// The address of a number of the standard ABI as that of MPICH's.
template <class Meaning>
void* number_at(const void* address) {
  // A few different ones in a program, and for each an address for good.
  static constexpr std::size_t most = 64;
  static int numbers[most];
  static std::size_t used;
  static std::mutex mutex;
  const int number = Meaning::out(*static_cast<const int*>(address));
  const std::lock_guard lock(mutex);
  int* found = std::find(numbers, numbers + used, number);
  if (found != numbers + used) return found;
  found = numbers + std::min(used, most - 1);
  *found = number;
  used = std::min(used + 1, most);
  return found;
}

// That of MPI_LASTUSEDCODE, which is always the same: the number follows.
void* last_used_code(const void* address) {
  static std::atomic<int> last;
  last.store(ErrorCode::out(*static_cast<const int*>(address)), std::memory_order_relaxed);
  return &last;
}

void* attribute(int keyval, void* value) {
  switch (keyval) {
  case MPI_HOST:
  case MPI_IO:
    return number_at<Rank>(value);
  case MPI_LASTUSEDCODE:
    return last_used_code(value);
  case MPI_WIN_CREATE_FLAVOR:
    return number_at<WindowFlavor>(value);
  case MPI_WIN_MODEL:
    return number_at<WindowModel>(value);
  default:
    return value;
  }
}

} // namespace

#define GET_ATTRIBUTE(Name, Handle)                                                                \
  MPICH_ENTRY(int, Name, (int object, int keyval, void* value, int* flag)) {                       \
    const int key = Keyval::in(keyval);                                                            \
    const int answer = standard.Name(handle<Handle>(object), key, value, flag);                    \
    if (answer == MPI_SUCCESS && *flag != 0) {                                                     \
      void*& found = *static_cast<void**>(value);                                                  \
      found = attribute(key, found);                                                               \
    }                                                                                              \
    return code(answer);                                                                           \
  }
GET_ATTRIBUTE(Attr_get, MPI_Comm)
GET_ATTRIBUTE(Comm_get_attr, MPI_Comm)
GET_ATTRIBUTE(Type_get_attr, MPI_Datatype)
GET_ATTRIBUTE(Win_get_attr, MPI_Win)
#undef GET_ATTRIBUTE

#define CREATE_KEYVAL(Name, Handle)                                                                \
  MPICH_ENTRY(int, Name,                                                                           \
              (CopyFunction * copy, DeleteFunction * remove, int* keyval, void* state)) {          \
    return code(standard.Name(copy_attribute<Handle>, delete_attribute<Handle>, keyval,            \
                              new AttributeFunctions{copy, remove, state}));                       \
  }
CREATE_KEYVAL(Keyval_create, MPI_Comm)
CREATE_KEYVAL(Comm_create_keyval, MPI_Comm)
CREATE_KEYVAL(Type_create_keyval, MPI_Datatype)
CREATE_KEYVAL(Win_create_keyval, MPI_Win)
#undef CREATE_KEYVAL

// MPI_DUP_FN and its like.
extern "C" [[gnu::visibility("default")]] int MPIR_Dup_fn(int, int, void*, void* in, void* out,
                                                          int* flag) {
  *static_cast<void**>(out) = in;
  *flag = 1;
  return MPI_SUCCESS;
}

// --- Generalized requests and data representations.

MPICH_ENTRY(int, Grequest_start,
            (decltype(Generalized::query) query, decltype(Generalized::release) release,
             decltype(Generalized::cancel) cancel, void* state, int* request)) {
  auto functions = std::make_unique<Generalized>(Generalized{query, release, cancel, state});
  const int answer =
      standard.Grequest_start(query_generalized, release_generalized, cancel_generalized,
                              functions.get(), Out<MPI_Request>(request));
  if (answer == MPI_SUCCESS) static_cast<void>(functions.release()); // now release_generalized's
  return code(answer);
}

// A representation is registered for good, so its functions are never freed.
#define REGISTER(Name, Count)                                                                      \
  MPICH_ENTRY(int, Name,                                                                           \
              (const char* name, Representation<Count>::Convert* read,                             \
               Representation<Count>::Convert* write,                                              \
               decltype(Representation<Count>::extent) extent, void* state)) {                     \
    return code(standard.Name(name, read == nullptr ? nullptr : read_representation<Count>,        \
                              write == nullptr ? nullptr : write_representation<Count>,            \
                              extent == nullptr ? nullptr : representation_extent<Count>,          \
                              new Representation<Count>{read, write, extent, state}));             \
  }
REGISTER(Register_datarep, int)
REGISTER(Register_datarep_c, MPI_Count)
#undef REGISTER

// --- How a datatype was made: order and distribution are among its integers, the last ones.

namespace {

void convert_contents(int combiner, MPI_Count length, int integers[]) {
  if (combiner != MPI_COMBINER_SUBARRAY && combiner != MPI_COMBINER_DARRAY) return;
  int* const order = integers + length - 1;
  *order = Order::out(*order);
  if (combiner == MPI_COMBINER_SUBARRAY) return;
  const int dimensions = integers[2];
  int* const distributions = order - 3 * dimensions;
  int* const arguments = order - 2 * dimensions;
  std::transform(distributions, arguments, distributions, Distribution::out);
  std::transform(arguments, arguments + dimensions, arguments, DistributionArgument::out);
}

} // namespace

MPICH_ENTRY(int, Type_get_contents,
            (int datatype, int max_integers, int max_addresses, int max_datatypes, int integers[],
             MPI_Aint addresses[], int datatypes[])) {
  const auto type = handle<MPI_Datatype>(datatype);
  const int answer =
      standard.Type_get_contents(type, max_integers, max_addresses, max_datatypes, integers,
                                 addresses, OutArray<MPI_Datatype>(datatypes, max_datatypes));
  if (answer == MPI_SUCCESS) {
    int length = 0, others = 0, types = 0, combiner = 0;
    standard.Type_get_envelope(type, &length, &others, &types, &combiner);
    convert_contents(combiner, length, integers);
  }
  return code(answer);
}

MPICH_ENTRY(int, Type_get_contents_c,
            (int datatype, MPI_Count max_integers, MPI_Count max_addresses,
             MPI_Count max_large_counts, MPI_Count max_datatypes, int integers[],
             MPI_Aint addresses[], MPI_Count large_counts[], int datatypes[])) {
  const auto type = handle<MPI_Datatype>(datatype);
  const int answer = standard.Type_get_contents_c(
      type, max_integers, max_addresses, max_large_counts, max_datatypes, integers, addresses,
      large_counts, OutArray<MPI_Datatype>(datatypes, max_datatypes));
  if (answer == MPI_SUCCESS) {
    MPI_Count length = 0, others = 0, counts = 0, types = 0;
    int combiner = 0;
    standard.Type_get_envelope_c(type, &length, &others, &counts, &types, &combiner);
    convert_contents(combiner, length, integers);
  }
  return code(answer);
}

// --- Dynamic processes. What to start, and how many, is said by the root alone; so it tells the
// others how many error codes there are.

namespace {

// Whether a call has written error codes, which are these two: it has given all ranks the same
// answer then.
bool has_errcodes(int answer) {
  return answer == MPI_SUCCESS || answer == MPI_ERR_SPAWN;
}

void convert_errcodes(int errcodes[], int number, int root, int comm) {
  standard.Bcast(&number, 1, MPI_INT, root, handle<MPI_Comm>(comm));
  if (errcodes != MPI_ERRCODES_IGNORE)
    std::replace(errcodes, errcodes + number, int{MPI_ERR_SPAWN}, ErrorCode::out(MPI_ERR_SPAWN));
}

bool is_here(int comm, int root) {
  int rank = MPI_PROC_NULL;
  standard.Comm_rank(handle<MPI_Comm>(comm), &rank);
  return rank == root;
}

} // namespace

MPICH_ENTRY(int, Comm_spawn,
            (const char* command, char* argv[], int maxprocs, int info, int root, int comm,
             int* intercomm, int errcodes[])) {
  const int answer =
      standard.Comm_spawn(command, argv, maxprocs, handle<MPI_Info>(info), Rank::in(root),
                          handle<MPI_Comm>(comm), Out<MPI_Comm>(intercomm), errcodes);
  if (has_errcodes(answer)) convert_errcodes(errcodes, maxprocs, root, comm);
  return code(answer);
}

MPICH_ENTRY(int, Comm_spawn_multiple,
            (int count, char* commands[], char** argvs[], const int maxprocs[], const int infos[],
             int root, int comm, int* intercomm, int errcodes[])) {
  const int commands_here = is_here(comm, root) ? count : 0;
  const int answer = standard.Comm_spawn_multiple(
      count, commands, argvs, maxprocs, InArray<MPI_Info>(infos, commands_here), Rank::in(root),
      handle<MPI_Comm>(comm), Out<MPI_Comm>(intercomm), errcodes);
  if (has_errcodes(answer))
    convert_errcodes(errcodes, std::accumulate(maxprocs, maxprocs + commands_here, 0), root, comm);
  return code(answer);
}

// --- Not in this ABI: MPICH answers so, too.

MPICH_ENTRY(int, Abi_get_version, (int* abi_major, int* abi_minor)) {
  const int answer = standard.Abi_get_version(abi_major, abi_minor);
  if (answer == MPI_SUCCESS) *abi_major = *abi_minor = -1;
  return code(answer);
}

MPICH_ENTRY(int, Pcontrol, (const int, ...)) {
  return MPI_SUCCESS;
}

// --- Handles and statuses of Fortran, which are C's.

#define CONVERSIONS(Name)                                                                          \
  MPICH_ENTRY(int, Name##_toint, (int handle)) {                                                   \
    return handle;                                                                                 \
  }                                                                                                \
  MPICH_ENTRY(int, Name##_fromint, (int handle)) {                                                 \
    return handle;                                                                                 \
  }                                                                                                \
  MPICH_ENTRY(int, Name##_c2f, (int handle)) {                                                     \
    return handle;                                                                                 \
  }                                                                                                \
  MPICH_ENTRY(int, Name##_f2c, (int handle)) {                                                     \
    return handle;                                                                                 \
  }
CONVERSIONS(Comm)
CONVERSIONS(Errhandler)
CONVERSIONS(Group)
CONVERSIONS(Info)
CONVERSIONS(Message)
CONVERSIONS(Op)
CONVERSIONS(Request)
CONVERSIONS(Session)
CONVERSIONS(Type)
CONVERSIONS(Win)
#undef CONVERSIONS

#define FILE_CONVERSIONS(to, from)                                                                 \
  MPICH_ENTRY(int, File_##to, (MPI_File file)) {                                                   \
    return file == nullptr ? 0 : standard.File_toint(file);                                        \
  }                                                                                                \
  MPICH_ENTRY(MPI_File, File_##from, (int file)) {                                                 \
    return file == 0 ? nullptr : standard.File_fromint(file);                                      \
  }
FILE_CONVERSIONS(toint, fromint)
FILE_CONVERSIONS(c2f, f2c)
#undef FILE_CONVERSIONS

#define STATUS_CONVERSION(Name)                                                                    \
  MPICH_ENTRY(int, Status_##Name, (const Status* from, Status* to)) {                              \
    *to = *from;                                                                                   \
    return MPI_SUCCESS;                                                                            \
  }
STATUS_CONVERSION(c2f)
STATUS_CONVERSION(f2c)
STATUS_CONVERSION(c2f08)
STATUS_CONVERSION(f082c)
STATUS_CONVERSION(f2f08)
STATUS_CONVERSION(f082f)
#undef STATUS_CONVERSION

// --- Addresses that a program finds by their names. Those of Fortran are set by its library.

#define MPICH_DATA(type, name, value)                                                              \
  extern "C" [[gnu::visibility("default")]] type mpich_##name __asm__(#name);                      \
  type mpich_##name = value;
MPICH_DATA(int*, MPI_UNWEIGHTED, MPI_UNWEIGHTED)
MPICH_DATA(int*, MPI_WEIGHTS_EMPTY, MPI_WEIGHTS_EMPTY)
MPICH_DATA(void*, MPI_T_PVAR_ALL_HANDLES, MPI_T_PVAR_ALL_HANDLES)
MPICH_DATA(void*, MPI_F_STATUS_IGNORE, nullptr)
MPICH_DATA(void*, MPI_F_STATUSES_IGNORE, nullptr)
MPICH_DATA(void*, MPI_F08_STATUS_IGNORE, nullptr)
MPICH_DATA(void*, MPI_F08_STATUSES_IGNORE, nullptr)
#undef MPICH_DATA
