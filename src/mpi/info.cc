// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/info.h"

#include "mpi/calls.h"
#include "mpi/process.h"
#include "mpi/request.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace macadam::mpi {
namespace {

// A key as the standard allows it, else MPI_ERR_INFO_KEY.
std::string checked_key(const char* key) {
  const std::size_t length = ::strnlen(key, MPI_MAX_INFO_KEY);
  if (length == 0) base::fail(MPI_ERR_INFO_KEY, "key is empty");
  if (length >= MPI_MAX_INFO_KEY) {
    base::fail(MPI_ERR_INFO_KEY, "key has {} or more characters; at most {} fit MPI_MAX_INFO_KEY",
               MPI_MAX_INFO_KEY, MPI_MAX_INFO_KEY - 1);
  }
  return {key, length};
}

std::string checked_value(const char* value) {
  const std::size_t length = ::strnlen(value, MPI_MAX_INFO_VAL);
  if (length >= MPI_MAX_INFO_VAL) {
    base::fail(MPI_ERR_INFO_VALUE,
               "value has {} or more characters; at most {} fit MPI_MAX_INFO_VAL", MPI_MAX_INFO_VAL,
               MPI_MAX_INFO_VAL - 1);
  }
  return {value, length};
}

void check_changeable(const Info& info) {
  if (info.constant == MPI_INFO_ENV) {
    base::fail(MPI_ERR_INFO, "MPI_INFO_ENV is read-only; MPI_Info_dup makes a copy that is not");
  }
}

// At most `room` characters of a value, and the terminating null.
void copy_value(const std::string& from, std::size_t room, char* to) {
  to[from.copy(to, room)] = '\0';
}

// The command line of this process, as the kernel keeps it.
std::vector<std::string> command_line() {
  std::vector<std::string> words;
  std::FILE* file = std::fopen("/proc/self/cmdline", "re");
  if (file == nullptr) return words;
  std::string word;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) {
    if (c != 0) {
      word += static_cast<char>(c);
    } else {
      words.push_back(std::exchange(word, {}));
    }
  }
  std::fclose(file);
  return words;
}

std::string joined(const std::vector<std::string>& words, std::size_t first) {
  std::string text;
  for (std::size_t i = first; i < words.size(); ++i)
    text += (i > first ? " " : "") + words[i];
  if (text.size() >= MPI_MAX_INFO_VAL) text.resize(MPI_MAX_INFO_VAL - 1);
  return text;
}

} // namespace

const char* level_name(int thread_level) {
  switch (thread_level) {
  case MPI_THREAD_FUNNELED:
    return "MPI_THREAD_FUNNELED";
  case MPI_THREAD_SERIALIZED:
    return "MPI_THREAD_SERIALIZED";
  case MPI_THREAD_MULTIPLE:
    return "MPI_THREAD_MULTIPLE";
  default:
    return "MPI_THREAD_SINGLE";
  }
}

const std::string* Info::find(const char* key) const {
  const auto found = std::ranges::find(entries, key, [](const auto& entry) { return entry.first; });
  return found == entries.end() ? nullptr : &found->second;
}

void Info::set(std::string key, std::string value) {
  if (const std::string* old = find(key.c_str())) {
    const_cast<std::string&>(*old) = std::move(value);
  } else {
    entries.emplace_back(std::move(key), std::move(value));
  }
}

bool Info::remove(const char* key) {
  return std::erase_if(entries, [&](const auto& entry) { return entry.first == key; }) != 0;
}

MPI_Info make_info(Library& self, std::vector<std::pair<std::string, std::string>> entries) {
  const Held held(self); // of functions that have no part in the lock as well
  Info* info = self.infos.make();
  info->entries = std::move(entries);
  return info->handle();
}

MPI_Info make_info_used(Library& self, std::vector<std::pair<std::string, std::string>> hints) {
  hints.emplace_back("mpi_memory_alloc_kinds", "mpi,system");
  return make_info(self, std::move(hints));
}

void fill_info_env(Library& self, int thread_level) {
  // The keys of section 10.4 that this process knows the answers to.
  const std::vector<std::string> words = command_line();
  if (!words.empty()) {
    self.info_env.set("command", words[0].substr(0, MPI_MAX_INFO_VAL - 1));
    self.info_env.set("argv", joined(words, 1));
  }
  if (const int ranks = self.job->ranks_of_program(); ranks != 0)
    self.info_env.set("maxprocs", std::to_string(ranks));
  self.info_env.set("host", std::string(self.job->host()));
  self.info_env.set("thread_level", level_name(thread_level));
  std::array<char, PATH_MAX> directory;
  if (::getcwd(directory.data(), directory.size()) != nullptr) {
    self.info_env.set("wdir", std::string(directory.data()).substr(0, MPI_MAX_INFO_VAL - 1));
  }
}

// The MPI functions.

void info_create(Library& self, MPI_Info* info) {
  *info = make_info(self, {});
}

void info_create_env(Library& self, int argc, char* argv[], MPI_Info* info) {
  std::vector<std::string> words;
  if (argv != nullptr) {
    for (int i = 0; i < argc && argv[i] != nullptr; ++i)
      words.emplace_back(argv[i]);
  }
  if (words.empty()) words = command_line();
  std::vector<std::pair<std::string, std::string>> entries;
  if (!words.empty()) {
    entries.emplace_back("command", words[0].substr(0, MPI_MAX_INFO_VAL - 1));
    entries.emplace_back("argv", joined(words, 1));
  }
  *info = make_info(self, std::move(entries));
}

void info_dup(Library& self, Info& info, MPI_Info* newinfo) {
  *newinfo = make_info(self, info.entries);
}

void info_free(Library& self, MPI_Info* info) {
  Info& object = *self.find<Info>(*info, base::ObjectKind::info);
  if (object.constant != nullptr)
    base::fail(MPI_ERR_INFO, "MPI_INFO_ENV is predefined; it must not be freed");
  self.anytime_handles.forget(object.handle());
  give_back(self.infos, object);
  *info = MPI_INFO_NULL;
}

void info_set(Library&, Info& info, const char* key, const char* value) {
  check_changeable(info);
  info.set(checked_key(key), checked_value(value));
}

void info_delete(Library&, Info& info, const char* key) {
  check_changeable(info);
  if (!info.remove(checked_key(key).c_str())) {
    base::fail(MPI_ERR_INFO_NOKEY, "the info object has no key '{}'", key);
  }
}

void info_get(Library&, Info& info, const char* key, int valuelen, char* value, int* flag) {
  const std::string* found = info.find(checked_key(key).c_str());
  *flag = found != nullptr ? 1 : 0;
  if (found != nullptr) copy_value(*found, static_cast<std::size_t>(valuelen), value);
}

void info_get_valuelen(Library&, Info& info, const char* key, int* valuelen, int* flag) {
  const std::string* found = info.find(checked_key(key).c_str());
  *flag = found != nullptr ? 1 : 0;
  if (found != nullptr) *valuelen = static_cast<int>(found->size());
}

void info_get_string(Library&, Info& info, const char* key, int* buflen, char* value, int* flag) {
  const std::string* found = info.find(checked_key(key).c_str());
  *flag = found != nullptr ? 1 : 0;
  if (found == nullptr) return;
  // `buflen` counts the terminating null; 0 asks for the length alone.
  if (*buflen > 0) copy_value(*found, static_cast<std::size_t>(*buflen) - 1, value);
  *buflen = static_cast<int>(found->size()) + 1;
}

void info_get_nkeys(Library&, Info& info, int* nkeys) {
  *nkeys = static_cast<int>(info.entries.size());
}

void info_get_nthkey(Library&, Info& info, int n, char* key) {
  if (static_cast<std::size_t>(n) >= info.entries.size()) {
    base::fail(MPI_ERR_ARG, "n is {}; the info object has {} keys, numbered from 0", n,
               info.entries.size());
  }
  copy_value(info.entries[static_cast<std::size_t>(n)].first, MPI_MAX_INFO_KEY - 1, key);
}

} // namespace macadam::mpi
