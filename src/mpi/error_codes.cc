// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/errhandler.h"

#include <algorithm>
#include <array>

namespace macadam::mpi {
namespace {

#define CLASS(name, text)                                                                          \
  ErrorClass {                                                                                     \
    name, #name, text                                                                              \
  }
constexpr std::array error_classes = {
    CLASS(MPI_SUCCESS, "no error"),
    CLASS(MPI_ERR_BUFFER, "invalid buffer address"),
    CLASS(MPI_ERR_COUNT, "invalid count"),
    CLASS(MPI_ERR_TYPE, "invalid datatype"),
    CLASS(MPI_ERR_TAG, "invalid tag"),
    CLASS(MPI_ERR_COMM, "invalid communicator"),
    CLASS(MPI_ERR_RANK, "invalid rank"),
    CLASS(MPI_ERR_REQUEST, "invalid request"),
    CLASS(MPI_ERR_ROOT, "invalid root"),
    CLASS(MPI_ERR_GROUP, "invalid group"),
    CLASS(MPI_ERR_OP, "invalid reduction operation"),
    CLASS(MPI_ERR_TOPOLOGY, "invalid topology"),
    CLASS(MPI_ERR_DIMS, "invalid dimensions"),
    CLASS(MPI_ERR_ARG, "invalid argument"),
    CLASS(MPI_ERR_UNKNOWN, "unknown error"),
    CLASS(MPI_ERR_TRUNCATE, "message longer than the receive buffer, or cut inside an element"),
    CLASS(MPI_ERR_OTHER, "error of no other class"),
    CLASS(MPI_ERR_INTERN, "error inside the MPI library"),
    CLASS(MPI_ERR_PENDING, "operation neither failed nor completed"),
    CLASS(MPI_ERR_IN_STATUS, "the error codes are in the statuses"),
    CLASS(MPI_ERR_ACCESS, "permission denied"),
    CLASS(MPI_ERR_AMODE, "invalid access mode"),
    CLASS(MPI_ERR_ASSERT, "invalid assertion"),
    CLASS(MPI_ERR_BAD_FILE, "invalid file name"),
    CLASS(MPI_ERR_BASE, "invalid base address"),
    CLASS(MPI_ERR_CONVERSION, "data conversion failed"),
    CLASS(MPI_ERR_DISP, "invalid displacement"),
    CLASS(MPI_ERR_DUP_DATAREP, "data representation is already defined"),
    CLASS(MPI_ERR_FILE_EXISTS, "file exists"),
    CLASS(MPI_ERR_FILE_IN_USE, "file is in use"),
    CLASS(MPI_ERR_FILE, "invalid file handle"),
    CLASS(MPI_ERR_INFO_KEY, "info key too long or empty"),
    CLASS(MPI_ERR_INFO_NOKEY, "no such info key"),
    CLASS(MPI_ERR_INFO_VALUE, "invalid info value"),
    CLASS(MPI_ERR_INFO, "invalid info object"),
    CLASS(MPI_ERR_IO, "input or output failed"),
    CLASS(MPI_ERR_KEYVAL, "invalid attribute key"),
    CLASS(MPI_ERR_LOCKTYPE, "invalid lock type"),
    CLASS(MPI_ERR_NAME, "service name is not published"),
    CLASS(MPI_ERR_NO_MEM, "out of memory"),
    CLASS(MPI_ERR_NOT_SAME, "collective argument differs between processes"),
    CLASS(MPI_ERR_NO_SPACE, "not enough space"),
    CLASS(MPI_ERR_NO_SUCH_FILE, "no such file"),
    CLASS(MPI_ERR_PORT, "invalid port name"),
    CLASS(MPI_ERR_QUOTA, "quota exceeded"),
    CLASS(MPI_ERR_READ_ONLY, "read-only file or file system"),
    CLASS(MPI_ERR_RMA_ATTACH, "memory cannot be attached"),
    CLASS(MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    CLASS(MPI_ERR_RMA_RANGE, "target memory is not part of the window"),
    CLASS(MPI_ERR_RMA_SHARED, "memory cannot be shared"),
    CLASS(MPI_ERR_RMA_SYNC, "wrong synchronisation of a window"),
    CLASS(MPI_ERR_SERVICE, "invalid service name"),
    CLASS(MPI_ERR_SIZE, "invalid size"),
    CLASS(MPI_ERR_SPAWN, "processes could not be started"),
    CLASS(MPI_ERR_UNSUPPORTED_DATAREP, "unsupported data representation"),
    CLASS(MPI_ERR_UNSUPPORTED_OPERATION, "unsupported operation"),
    CLASS(MPI_ERR_WIN, "invalid window"),
    CLASS(MPI_ERR_RMA_FLAVOR, "wrong kind of window"),
    CLASS(MPI_ERR_PROC_ABORTED, "a peer process has ended"),
    CLASS(MPI_ERR_VALUE_TOO_LARGE, "value does not fit its variable"),
    CLASS(MPI_ERR_SESSION, "invalid session"),
    CLASS(MPI_ERR_ERRHANDLER, "invalid error handler"),
    CLASS(MPI_ERR_ABI, "wrong use of the binary interface"),
    CLASS(MPI_T_ERR_CANNOT_INIT, "the tool interface cannot be initialised"),
    CLASS(MPI_T_ERR_NOT_ACCESSIBLE, "the tool interface cannot be used now"),
    CLASS(MPI_T_ERR_NOT_INITIALIZED, "the tool interface is not initialised"),
    CLASS(MPI_T_ERR_NOT_SUPPORTED, "not supported by the tool interface"),
    CLASS(MPI_T_ERR_MEMORY, "out of memory in the tool interface"),
    CLASS(MPI_T_ERR_INVALID, "invalid argument of the tool interface"),
    CLASS(MPI_T_ERR_INVALID_INDEX, "invalid index of a variable or category"),
    CLASS(MPI_T_ERR_INVALID_ITEM, "invalid index of an enumeration item"),
    CLASS(MPI_T_ERR_INVALID_SESSION, "invalid session of performance variables"),
    CLASS(MPI_T_ERR_INVALID_HANDLE, "invalid handle of the tool interface"),
    CLASS(MPI_T_ERR_INVALID_NAME, "no variable or category of that name"),
    CLASS(MPI_T_ERR_OUT_OF_HANDLES, "no more handles"),
    CLASS(MPI_T_ERR_OUT_OF_SESSIONS, "no more sessions"),
    CLASS(MPI_T_ERR_CVAR_SET_NOT_NOW, "control variable cannot be set now"),
    CLASS(MPI_T_ERR_CVAR_SET_NEVER, "control variable cannot be set"),
    CLASS(MPI_T_ERR_PVAR_NO_WRITE, "performance variable cannot be written"),
    CLASS(MPI_T_ERR_PVAR_NO_STARTSTOP, "performance variable cannot be started or stopped"),
    CLASS(MPI_T_ERR_PVAR_NO_ATOMIC, "performance variable cannot be read atomically"),
    CLASS(MPI_ERR_LASTCODE, "last error code"),
};
#undef CLASS

} // namespace

const ErrorClass* find_error_class(int value) {
  const auto found = std::ranges::lower_bound(error_classes, value, {}, &ErrorClass::value);
  return found != error_classes.end() && found->value == value ? &*found : nullptr;
}

bool ErrorCodes::is_added(int code) const {
  return code > MPI_ERR_LASTCODE && code <= last_used() && !added_[place(code)].removed;
}

int ErrorCodes::add_class() {
  if (removed_.empty()) {
    added_.push_back({0, 0, true, {}});
    removed_.push_back(last_used());
  }
  const int code = removed_.back();
  removed_.pop_back();
  added_[place(code)] = {code, 0, false, {}};
  return code;
}

int ErrorCodes::add_code(int error_class) {
  if (class_of(error_class) != error_class) {
    base::fail(MPI_ERR_ARG, "errorclass is {}, which is an error code, not a class", error_class);
  }
  const int code = add_class();
  added_[place(code)].error_class = error_class;
  if (is_added(error_class)) ++added_[place(error_class)].codes;
  return code;
}

void ErrorCodes::refuse_string(const Added& row, const char* call, int code) {
  if (row.text.empty()) return;
  base::fail(MPI_ERR_ARG, "{} still has a string; MPI_Remove_error_string must come before {}",
             code, call);
}

// What the program added and has not removed; `what` is for the message.
ErrorCodes::Added& ErrorCodes::added(int code, const char* what) {
  if (!is_added(code)) {
    base::fail(MPI_ERR_ARG, "{} is {}, which this program has not added (or has removed)", what,
               code);
  }
  return added_[place(code)];
}

void ErrorCodes::set_string(int code, std::string text) {
  if (text.size() >= MPI_MAX_ERROR_STRING) {
    base::fail(MPI_ERR_ARG, "string has {} characters; at most {} fit MPI_MAX_ERROR_STRING",
               text.size(), MPI_MAX_ERROR_STRING - 1);
  }
  added(code, "errorcode").text = std::move(text);
}

void ErrorCodes::remove_class(int error_class) {
  Added& row = added(error_class, "errorclass");
  if (row.error_class != error_class) {
    base::fail(MPI_ERR_ARG,
               "errorclass is {}, which is an error code; MPI_Remove_error_code takes it",
               error_class);
  }
  if (row.codes != 0) {
    base::fail(MPI_ERR_ARG, "error class {} still has {} error codes; remove these first",
               error_class, row.codes);
  }
  refuse_string(row, "MPI_Remove_error_class", error_class);
  remove(row, error_class);
}

void ErrorCodes::remove_code(int code) {
  Added& row = added(code, "errorcode");
  if (row.error_class == code) {
    base::fail(MPI_ERR_ARG,
               "errorcode is {}, which is an error class; MPI_Remove_error_class takes it", code);
  }
  refuse_string(row, "MPI_Remove_error_code", code);
  if (is_added(row.error_class)) --added_[place(row.error_class)].codes;
  remove(row, code);
}

void ErrorCodes::remove(Added& row, int code) {
  removed_.push_back(code);
  row.removed = true;
}

void ErrorCodes::remove_string(int code) {
  added(code, "errorcode").text.clear();
}

bool ErrorCodes::known(int code) const {
  return is_added(code) || find_error_class(code) != nullptr;
}

int ErrorCodes::class_of(int code) const {
  if (!known(code)) {
    base::fail(MPI_ERR_ARG, "errorcode is {}, which is no error code in use; the last one is {}",
               code, last_used());
  }
  return is_added(code) ? added_[place(code)].error_class : code;
}

std::string ErrorCodes::text(int code) const {
  class_of(code); // refuses unknown codes
  if (is_added(code)) return added_[place(code)].text;
  const ErrorClass& known_class = *find_error_class(code);
  std::string text = fmt::format("{}: {}", known_class.name, known_class.text);
  if (code == last_code_ && code != MPI_SUCCESS) text += "; last: " + last_message_;
  if (text.size() >= MPI_MAX_ERROR_STRING) text.resize(MPI_MAX_ERROR_STRING - 1);
  return text;
}

void ErrorCodes::remember(int code, std::string message) {
  last_code_ = code;
  last_message_ = std::move(message);
}

} // namespace macadam::mpi
