// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/attributes.h"

#include "mpi/callback.h"
#include "mpi/calls.h"
#include "mpi/process.h"
#include "mpi/types.h"
#include "mpi/window.h"

#include <algorithm>

namespace macadam::mpi {
namespace {

const char* noun(AttributeOf of) {
  switch (of) {
  case AttributeOf::communicator:
    return "communicator";
  case AttributeOf::datatype:
    return "datatype";
  case AttributeOf::window:
    return "window";
  }
  return "";
}

constexpr auto key_of = [](const auto& entry) { return entry.keyval->key; };

// Calls the delete callback; what it refuses becomes the error of the MPI call.
void call_delete(void* object, const Keyval& keyval, void* value) {
  if (!keyval.delete_fn) return;
  const int code = run_callback_unlocked(anytime(), "the delete callback of an attribute", [&] {
    return keyval.delete_fn(object, keyval.key, value);
  });
  if (code != MPI_SUCCESS) {
    base::fail(code, "the delete callback of attribute key {} returned {}", keyval.key, code);
  }
}

// The callbacks of the ABI that are no functions: nothing is copied, or the value itself.
template <class Handle, class Function>
Keyval::Copy copy_callback(Function* function, void* extra_state) {
  const auto value = reinterpret_cast<std::uintptr_t>(function);
  if (value == reinterpret_cast<std::uintptr_t>(MPI_COMM_NULL_COPY_FN)) return {};
  if (value == reinterpret_cast<std::uintptr_t>(MPI_COMM_DUP_FN)) {
    return [](void*, int, void* attribute, void** copy, int* flag) {
      *copy = attribute;
      *flag = 1;
      return MPI_SUCCESS;
    };
  }
  return [=](void* object, int key, void* attribute, void** copy, int* flag) {
    return function(static_cast<Handle>(object), key, extra_state, attribute, copy, flag);
  };
}

template <class Handle, class Function>
Keyval::Delete delete_callback(Function* function, void* extra_state) {
  if (reinterpret_cast<std::uintptr_t>(function) ==
      reinterpret_cast<std::uintptr_t>(MPI_COMM_NULL_DELETE_FN)) {
    return {};
  }
  return [=](void* object, int key, void* attribute) {
    return function(static_cast<Handle>(object), key, attribute, extra_state);
  };
}

void refuse_predefined(Process& self, int key) {
  if (self.attribute_values.find(key) != nullptr) {
    base::fail(MPI_ERR_KEYVAL, "attribute key {} is predefined; its attribute is read-only", key);
  }
}

} // namespace

// A callback may change the list, as may other threads while it runs.

template <class Entries>
auto Attributes::staying(Entries& entries, int key) -> decltype(entries.data()) {
  const auto found = std::ranges::find_if(
      entries, [key](const Entry& entry) { return key_of(entry) == key && !entry.leaving; });
  return found == entries.end() ? nullptr : &*found;
}

const void* const* Attributes::find(int key) const {
  if (const Entry* const entry = staying(entries_, key)) return &entry->value;
  const auto leaving = std::ranges::find(entries_, key, key_of);
  return leaving == entries_.end() ? nullptr : &leaving->value;
}

// As if the old value was deleted first.
void Attributes::set(void* object, std::shared_ptr<const Keyval> keyval, void* value) {
  while (staying(entries_, keyval->key) != nullptr)
    remove(object, keyval->key);
  entries_.push_back({std::move(keyval), value});
}

void Attributes::remove(void* object, int key) {
  Entry* const found = staying(entries_, key);
  if (found == nullptr) {
    base::fail(MPI_ERR_KEYVAL, "no attribute with key {} is set here", key);
  }
  found->leaving = true;
  const Entry removed = *found;
  const auto find_again = [&] {
    return std::ranges::find_if(entries_, [&](const Entry& entry) {
      return key_of(entry) == key && entry.leaving && entry.value == removed.value;
    });
  };
  try {
    call_delete(object, *removed.keyval, removed.value);
  } catch (...) {
    find_again()->leaving = false;
    throw;
  }
  entries_.erase(find_again());
}

void Attributes::clear(void* object) {
  while (!entries_.empty())
    remove(object, entries_.back().keyval->key);
}

std::unique_ptr<Attributes> Attributes::copy(void* object) const {
  auto copies = std::make_unique<Attributes>();
  const std::vector<Entry> entries = entries_;
  for (const Entry& entry : entries) {
    const Entry* const now = staying(entries_, key_of(entry));
    if (!entry.keyval->copy || now == nullptr) continue;
    void* const original = now->value;
    void* value = nullptr;
    int flag = 0;
    const int code = run_callback_unlocked(anytime(), "the copy callback of an attribute", [&] {
      return entry.keyval->copy(object, entry.keyval->key, original, &value, &flag);
    });
    if (code != MPI_SUCCESS) {
      base::fail(code, "the copy callback of attribute key {} returned {}", entry.keyval->key,
                 code);
    }
    if (flag != 0) copies->entries_.push_back({entry.keyval, value});
  }
  return copies;
}

int Keyvals::add(AttributeOf of, Keyval::Copy copy, Keyval::Delete delete_fn) {
  std::erase_if(keys_, [](const auto& row) { return row.second.key.expired(); });
  const int key = next_++;
  auto made =
      std::make_shared<const Keyval>(Keyval{of, key, std::move(copy), std::move(delete_fn)});
  keys_[key] = {made, made};
  return key;
}

std::shared_ptr<const Keyval> Keyvals::find(int key, AttributeOf of) const {
  const auto row = keys_.find(key);
  auto found = row != keys_.end() ? row->second.key.lock() : nullptr;
  if (!found) {
    base::fail(MPI_ERR_KEYVAL, "keyval is {}{}, which is no attribute key of a {}", key,
               key == MPI_KEYVAL_INVALID ? " (MPI_KEYVAL_INVALID)" : "", noun(of));
  }
  if (found->of != of) {
    base::fail(MPI_ERR_KEYVAL, "keyval {} was made for a {}; it cannot be used with a {}", key,
               noun(found->of), noun(of));
  }
  return found;
}

void Keyvals::free(int* key, AttributeOf of) {
  find(*key, of);
  keys_[*key].held.reset();
  *key = MPI_KEYVAL_INVALID;
}

int* PredefinedAttributes::find(int key) {
  switch (key) {
  case MPI_TAG_UB:
    return &tag_ub;
  case MPI_IO:
    return &io;
  case MPI_HOST:
    return &host;
  case MPI_WTIME_IS_GLOBAL:
    return &wtime_is_global;
  case MPI_APPNUM:
    return &appnum;
  case MPI_UNIVERSE_SIZE:
    return &universe_size;
  case MPI_LASTUSEDCODE:
    return &last_used_code;
  default:
    return nullptr;
  }
}

// The MPI functions: communicators.

void comm_create_keyval(Process& self, MPI_Comm_copy_attr_function* copy_fn,
                        MPI_Comm_delete_attr_function* delete_fn, int* keyval, void* extra_state) {
  *keyval =
      self.keyvals.add(AttributeOf::communicator, copy_callback<MPI_Comm>(copy_fn, extra_state),
                       delete_callback<MPI_Comm>(delete_fn, extra_state));
}

void comm_free_keyval(Process& self, int* keyval) {
  refuse_predefined(self, *keyval);
  self.keyvals.free(keyval, AttributeOf::communicator);
}

void comm_set_attr(Process& self, Communicator& comm, int keyval, void* value) {
  refuse_predefined(self, keyval);
  auto found = self.keyvals.find(keyval, AttributeOf::communicator);
  if (!comm.attributes) comm.attributes = std::make_unique<Attributes>();
  comm.attributes->set(comm.handle(), std::move(found), value);
}

void comm_get_attr(Process& self, Communicator& comm, int keyval, void* value, int* flag) {
  const void* found = nullptr;
  if (int* predefined = self.attribute_values.find(keyval)) {
    found = predefined;
  } else {
    self.keyvals.find(keyval, AttributeOf::communicator);
    const void* const* own = comm.attributes ? comm.attributes->find(keyval) : nullptr;
    *flag = own != nullptr ? 1 : 0;
    if (own == nullptr) return;
    found = *own;
  }
  *flag = 1;
  *static_cast<const void**>(value) = found;
}

void comm_delete_attr(Process& self, Communicator& comm, int keyval) {
  refuse_predefined(self, keyval);
  self.keyvals.find(keyval, AttributeOf::communicator);
  if (!comm.attributes) base::fail(MPI_ERR_KEYVAL, "no attribute with key {} is set here", keyval);
  comm.attributes->remove(comm.handle(), keyval);
}

// Windows.

namespace {

// What a predefined attribute of a window is; null if the key is none. The base is the value
// itself, all others are pointed to.
const void* predefined(Window& window, int key) {
  switch (key) {
  case MPI_WIN_BASE:
    return window.base;
  case MPI_WIN_SIZE:
    return &window.size;
  case MPI_WIN_DISP_UNIT:
    return &window.unit;
  case MPI_WIN_CREATE_FLAVOR:
    return &window.flavor;
  default:
    return &window.model;
  }
}

bool is_predefined_of_windows(int key) {
  return key == MPI_WIN_BASE || key == MPI_WIN_SIZE || key == MPI_WIN_DISP_UNIT ||
         key == MPI_WIN_CREATE_FLAVOR || key == MPI_WIN_MODEL;
}

void refuse_predefined_of_windows(int key) {
  if (is_predefined_of_windows(key)) {
    base::fail(MPI_ERR_KEYVAL, "attribute key {} is predefined; its attribute is read-only", key);
  }
}

} // namespace

void win_create_keyval(Process& self, MPI_Win_copy_attr_function* copy_fn,
                       MPI_Win_delete_attr_function* delete_fn, int* keyval, void* extra_state) {
  *keyval = self.keyvals.add(AttributeOf::window, copy_callback<MPI_Win>(copy_fn, extra_state),
                             delete_callback<MPI_Win>(delete_fn, extra_state));
}

void win_free_keyval(Process& self, int* keyval) {
  refuse_predefined_of_windows(*keyval);
  self.keyvals.free(keyval, AttributeOf::window);
}

void win_set_attr(Process& self, Window& window, int keyval, void* value) {
  refuse_predefined_of_windows(keyval);
  auto found = self.keyvals.find(keyval, AttributeOf::window);
  if (!window.attributes) window.attributes = std::make_unique<Attributes>();
  window.attributes->set(window.handle(), std::move(found), value);
}

void win_get_attr(Process& self, Window& window, int keyval, void* value, int* flag) {
  if (is_predefined_of_windows(keyval)) {
    *flag = 1;
    *static_cast<const void**>(value) = predefined(window, keyval);
    return;
  }
  self.keyvals.find(keyval, AttributeOf::window);
  const void* const* own = window.attributes ? window.attributes->find(keyval) : nullptr;
  *flag = own != nullptr ? 1 : 0;
  if (own != nullptr) *static_cast<const void**>(value) = *own;
}

void win_delete_attr(Process& self, Window& window, int keyval) {
  refuse_predefined_of_windows(keyval);
  self.keyvals.find(keyval, AttributeOf::window);
  if (!window.attributes)
    base::fail(MPI_ERR_KEYVAL, "no attribute with key {} is set here", keyval);
  window.attributes->remove(window.handle(), keyval);
}

// Datatypes.

namespace {

datatype::Type& writable(const datatype::Type& type) {
  return const_cast<datatype::Type&>(type);
}

Attributes* attributes(const datatype::Type& type) {
  return static_cast<Attributes*>(type.attributes);
}

} // namespace

void copy_attributes(const datatype::Type& from, datatype::Type& to) {
  if (from.attributes == nullptr) return;
  to.attributes = attributes(from)->copy(from.handle()).release();
}

void drop_attributes(datatype::Type& type) {
  if (type.attributes == nullptr) return;
  attributes(type)->clear(type.handle());
  delete attributes(type);
  type.attributes = nullptr;
}

void type_create_keyval(Library& self, MPI_Type_copy_attr_function* copy_fn,
                        MPI_Type_delete_attr_function* delete_fn, int* keyval, void* extra_state) {
  *keyval =
      self.keyvals.add(AttributeOf::datatype, copy_callback<MPI_Datatype>(copy_fn, extra_state),
                       delete_callback<MPI_Datatype>(delete_fn, extra_state));
}

void type_free_keyval(Library& self, int* keyval) {
  self.keyvals.free(keyval, AttributeOf::datatype);
}

void type_set_attr(Library& self, const datatype::Type& type, int keyval, void* value) {
  auto found = self.keyvals.find(keyval, AttributeOf::datatype);
  if (type.attributes == nullptr) writable(type).attributes = new Attributes;
  attributes(type)->set(type.handle(), std::move(found), value);
}

void type_get_attr(Library& self, const datatype::Type& type, int keyval, void* value, int* flag) {
  self.keyvals.find(keyval, AttributeOf::datatype);
  const void* const* found = type.attributes != nullptr ? attributes(type)->find(keyval) : nullptr;
  *flag = found != nullptr ? 1 : 0;
  if (found != nullptr) *static_cast<const void**>(value) = *found;
}

void type_delete_attr(Library& self, const datatype::Type& type, int keyval) {
  self.keyvals.find(keyval, AttributeOf::datatype);
  if (type.attributes == nullptr) {
    base::fail(MPI_ERR_KEYVAL, "no attribute with key {} is set here", keyval);
  }
  attributes(type)->remove(type.handle(), keyval);
}

} // namespace macadam::mpi
