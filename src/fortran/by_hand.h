// SPDX-License-Identifier: BSD-3-Clause
// The procedures whose arguments the generator cannot convert one by one: those that start MPI, and
// that take callbacks, attributes or command lines. Included by one source, behind the glue of an
// ABI: that says what handles are in C, and has the functions that are not in the headers here.
#pragma once

#include "fortran/argv.h"
#include "fortran/callbacks.h"
#include "fortran/predefined.h"

extern "C" {

// --- Start.

void ENTRY(init, INIT)(Fint* ierror) {
  answer(ierror, started(CALL(Init)(nullptr, nullptr)));
}
ALSO_F08(init, INIT)

void ENTRY(init_thread, INIT_THREAD)(const Fint* required, Fint* provided, Fint* ierror) {
  answer(ierror, started(CALL(Init_thread)(nullptr, nullptr, *required, provided)));
}
ALSO_F08(init_thread, INIT_THREAD)

void ENTRY(session_init, SESSION_INIT)(const Fint* info, const Fint* errhandler, Fint* session,
                                       Fint* ierror) {
  answer(ierror,
         started(CALL(Session_init)(handle<MPI_Info>(info), handle<MPI_Errhandler>(errhandler),
                                    Out<MPI_Session>(session))));
}
ALSO_F08(session_init, SESSION_INIT)

// --- Operations and error handlers.

void ENTRY(op_create, OP_CREATE)(UserFunction* function, const Fint* commute, Fint* op,
                                 Fint* ierror) {
  answer(ierror, CALL(Op_create)(operation(function), truth(*commute), Out<MPI_Op>(op)));
}
ALSO_F08(op_create, OP_CREATE)

#define ERRHANDLER(lower, UPPER, Name)                                                             \
  void ENTRY(lower##_create_errhandler, UPPER##_CREATE_ERRHANDLER)(                                \
      ErrorFunction * function, Fint * errhandler, Fint * ierror) {                                \
    answer(ierror, CALL(Name##_create_errhandler)(error_handler<MPI_##Name>(function),             \
                                                  Out<MPI_Errhandler>(errhandler)));               \
  }                                                                                                \
  ALSO_F08(lower##_create_errhandler, UPPER##_CREATE_ERRHANDLER)
ERRHANDLER(comm, COMM, Comm)
ERRHANDLER(file, FILE, File)
ERRHANDLER(session, SESSION, Session)
ERRHANDLER(win, WIN, Win)
#undef ERRHANDLER

// --- Attributes. The callbacks of a key are never freed: attributes may outlive it, also those
// that C has set, of which nothing is known here.

#define ATTRIBUTES(lower, UPPER, Name, Handle)                                                     \
  void ENTRY(lower##_create_keyval, UPPER##_CREATE_KEYVAL)(CopyFunction * copy,                    \
                                                           DeleteFunction * remove, Fint * keyval, \
                                                           const MPI_Aint* state, Fint* ierror) {  \
    answer(ierror, CALL(Name##_create_keyval)(copy_attribute, delete_attribute, keyval,            \
                                              new Keyval{copy, remove, *state}));                  \
  }                                                                                                \
  ALSO_F08(lower##_create_keyval, UPPER##_CREATE_KEYVAL)                                           \
                                                                                                   \
  void ENTRY(lower##_set_attr, UPPER##_SET_ATTR)(const Fint* object, const Fint* keyval,           \
                                                 const MPI_Aint* value, Fint* ierror) {            \
    void* attribute = box(*value);                                                                 \
    const int code = CALL(Name##_set_attr)(handle<Handle>(object), *keyval, attribute);            \
    if (code != MPI_SUCCESS) unbox(attribute);                                                     \
    answer(ierror, code);                                                                          \
  }                                                                                                \
  ALSO_F08(lower##_set_attr, UPPER##_SET_ATTR)                                                     \
                                                                                                   \
  void ENTRY(lower##_get_attr, UPPER##_GET_ATTR)(const Fint* object, const Fint* keyval,           \
                                                 MPI_Aint* value, Fint* flag, Fint* ierror) {      \
    const Getting getting;                                                                         \
    void* attribute = nullptr;                                                                     \
    int found = 0;                                                                                 \
    answer(ierror,                                                                                 \
           CALL(Name##_get_attr)(handle<Handle>(object), c_keyval(*keyval), &attribute, &found));  \
    *flag = logical(found);                                                                        \
    if (found != 0) *value = attribute_value(standard_keyval(*keyval), attribute);                 \
  }                                                                                                \
  ALSO_F08(lower##_get_attr, UPPER##_GET_ATTR)
ATTRIBUTES(comm, COMM, Comm, MPI_Comm)
ATTRIBUTES(type, TYPE, Type, MPI_Datatype)
ATTRIBUTES(win, WIN, Win, MPI_Win)
#undef ATTRIBUTES

// Those of MPI-1 have default integers.
void ENTRY(keyval_create, KEYVAL_CREATE)(CopyFunction* copy, DeleteFunction* remove, Fint* keyval,
                                         const Fint* state, Fint* ierror) {
  answer(ierror, CALL(Keyval_create)(copy_attribute, delete_attribute, keyval,
                                     new Keyval{copy, remove, *state, true}));
}

void ENTRY(attr_put, ATTR_PUT)(const Fint* comm, const Fint* keyval, const Fint* value,
                               Fint* ierror) {
  void* attribute = box(*value);
  const int code = CALL(Attr_put)(handle<MPI_Comm>(comm), *keyval, attribute);
  if (code != MPI_SUCCESS) unbox(attribute);
  answer(ierror, code);
}

void ENTRY(attr_get, ATTR_GET)(const Fint* comm, const Fint* keyval, Fint* value, Fint* flag,
                               Fint* ierror) {
  const Getting getting;
  void* attribute = nullptr;
  int found = 0;
  answer(ierror, CALL(Attr_get)(handle<MPI_Comm>(comm), c_keyval(*keyval), &attribute, &found));
  *flag = logical(found);
  if (found != 0) *value = static_cast<Fint>(attribute_value(standard_keyval(*keyval), attribute));
}

// --- Generalized requests and data representations.

void ENTRY(grequest_start, GREQUEST_START)(decltype(Generalized::query) query,
                                           decltype(Generalized::release) release,
                                           decltype(Generalized::cancel) cancel,
                                           const MPI_Aint* state, Fint* request, Fint* ierror) {
  auto callbacks =
      std::make_unique<Generalized>(Generalized{query, release, cancel, *state, kept_place(state)});
  const int code = CALL(Grequest_start)(query_generalized, release_generalized, cancel_generalized,
                                        callbacks.get(), Out<MPI_Request>(request));
  if (code == MPI_SUCCESS) static_cast<void>(callbacks.release()); // now release_generalized's
  answer(ierror, code);
}
ALSO_F08(grequest_start, GREQUEST_START)

// A representation is registered for good, so its callbacks are never freed.
#define REGISTER(macro, lower, UPPER, Name, Count, null)                                           \
  void macro(lower, UPPER)(const char* name, Representation<Count>::Convert* read,                 \
                           Representation<Count>::Convert* write,                                  \
                           decltype(Representation<Count>::extent) extent, const MPI_Aint* state,  \
                           Fint* ierror, std::size_t name_length) {                                \
    const auto none = reinterpret_cast<Representation<Count>::Convert*>(null);                     \
    answer(ierror,                                                                                 \
           CALL(Name)(String(name, name_length),                                                   \
                      read == none ? nullptr : read_representation<InC<MPI_Datatype>, Count>,      \
                      write == none ? nullptr : write_representation<InC<MPI_Datatype>, Count>,    \
                      representation_extent<InC<MPI_Datatype>, Count>,                             \
                      new Representation<Count>{read, write, extent, *state}));                    \
  }
REGISTER(ENTRY, register_datarep, REGISTER_DATAREP, Register_datarep, int,
         MACADAM_NAME(mpi_conversion_fn_null, MPI_CONVERSION_FN_NULL))
ALSO_F08(register_datarep, REGISTER_DATAREP)

// --- Dynamic processes: what only the root's arguments say is converted only there.

void ENTRY(comm_spawn, COMM_SPAWN)(const char* command, const char* argv, const Fint* maxprocs,
                                   const Fint* info, const Fint* root, const Fint* comm,
                                   Fint* intercomm, Fint* errcodes, Fint* ierror,
                                   std::size_t command_length, std::size_t argv_length) {
  const bool is_root = is_here(comm, *root);
  const Arguments arguments(is_root && argv != fortran_argv_null ? argv : nullptr, argv_length, 1);
  answer(ierror, CALL(Comm_spawn)(Stripped(command, is_root ? command_length : 0), arguments,
                                  *maxprocs, handle<MPI_Info>(info), *root, handle<MPI_Comm>(comm),
                                  Out<MPI_Comm>(intercomm), c_errcodes(errcodes)));
}
ALSO_F08(comm_spawn, COMM_SPAWN)

void ENTRY(comm_spawn_multiple,
           COMM_SPAWN_MULTIPLE)(const Fint* count, const char* commands, const char* argvs,
                                const Fint* maxprocs, const Fint* infos, const Fint* root,
                                const Fint* comm, Fint* intercomm, Fint* errcodes, Fint* ierror,
                                std::size_t command_length, std::size_t argv_length) {
  const int number = is_here(comm, *root) ? *count : 0;
  const bool has_arguments = argvs != fortran_argvs_null;
  answer(ierror, CALL(Comm_spawn_multiple)(
                     *count, Commands(commands, command_length, number),
                     ArgumentLists(has_arguments ? argvs : nullptr, argv_length, number), maxprocs,
                     In<MPI_Info>(infos, number), *root, handle<MPI_Comm>(comm),
                     Out<MPI_Comm>(intercomm), c_errcodes(errcodes)));
}
ALSO_F08(comm_spawn_multiple, COMM_SPAWN_MULTIPLE)

// A call that the compiler must believe to change the buffer.
void ENTRY(f_sync_reg, F_SYNC_REG)(void*) {}

} // extern "C"
