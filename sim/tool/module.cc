// SPDX-License-Identifier: BSD-3-Clause
#include "sim/tool/module.h"

#include "base/error.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <link.h>
#include <string_view>

namespace macadam::sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* remedy = "build it with `mpicc -shared -fPIC` (see docs/simulator.md)";

template <class T>
const T* at(const std::string& file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return nullptr;
  return reinterpret_cast<const T*>(file.data() + offset);
}

// What the compiler's own start-up files put there. A small variable hides in the padding of .bss,
// so a .bss that was rounded up counts as variables: one copy too many does no harm.
constexpr std::uint64_t start_file_data = 8, start_file_bss = 1;

// Whether the object has variables that its code may change. Told by its sections; a file without
// any is taken to have some.
bool finds_variables(const std::string& file, const ElfW(Ehdr) & header) {
  if (header.e_shnum == 0) return true;
  const auto section = [&](unsigned index) {
    return at<ElfW(Shdr)>(file, header.e_shoff + index * sizeof(ElfW(Shdr)));
  };
  const ElfW(Shdr)* names = section(header.e_shstrndx);
  if (names == nullptr) return true;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const ElfW(Shdr)* each = section(i);
    if (each == nullptr || names->sh_offset + each->sh_name >= file.size()) return true;
    const std::string_view name(file.data() + names->sh_offset + each->sh_name);
    if (name == ".tdata" || name == ".tbss") return true;
    if (name == ".data" && each->sh_size > start_file_data) return true;
    if (name == ".bss" && each->sh_size > start_file_bss) return true;
  }
  return false;
}

bool is_program(const std::string& file, const ElfW(Ehdr) & header) {
  if (header.e_type == ET_EXEC) return true;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto* segment = at<ElfW(Phdr)>(file, header.e_phoff + i * sizeof(ElfW(Phdr)));
    if (segment != nullptr && segment->p_type == PT_INTERP) return true;
  }
  return false;
}

// Variables of inline functions and inline variables of C++ are `unique`: the loader makes one of
// all that have the same name in the process, in all copies. Ordinary symbols belong to each copy.
void make_symbols_ordinary(std::string& file) {
  const auto* header = at<ElfW(Ehdr)>(file, 0);
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const auto* section = at<ElfW(Shdr)>(file, header->e_shoff + i * sizeof(ElfW(Shdr)));
    if (section == nullptr || section->sh_type != SHT_DYNSYM) continue;
    for (std::uint64_t at_byte = 0; at_byte + sizeof(ElfW(Sym)) <= section->sh_size;
         at_byte += sizeof(ElfW(Sym))) {
      const auto* found = at<ElfW(Sym)>(file, section->sh_offset + at_byte);
      if (found == nullptr || ELF64_ST_BIND(found->st_info) != STB_GNU_UNIQUE) continue;
      auto* symbol = reinterpret_cast<ElfW(Sym)*>(file.data() + section->sh_offset + at_byte);
      symbol->st_info = ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(found->st_info));
    }
  }
}

// A folder for copies of this process, gone with the last of them.
class CopyFolder {
 public:
  CopyFolder() {
    path_ = (fs::temp_directory_path() / "macadam-simulate-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr)
      base::fail(MPI_ERR_OTHER,
                 "no folder {} for a copy of the program: {}; set TMPDIR to a folder "
                 "that can be written",
                 path_, std::strerror(errno));
  }
  ~CopyFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  CopyFolder(const CopyFolder&) = delete;
  CopyFolder& operator=(const CopyFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Module::Main* open_module(const std::string& file, const std::string& name) {
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) base::fail(MPI_ERR_ARG, "{} cannot be loaded: {}", name, ::dlerror());
  void* main = ::dlsym(handle, "main");
  if (main == nullptr) base::fail(MPI_ERR_ARG, "{} has no function main; {}", name, remedy);
  return reinterpret_cast<Module::Main*>(main);
}

} // namespace

Module::Module(std::string path) : path_(std::move(path)) {
  std::ifstream stream(path_, std::ios::binary);
  file_.assign(std::istreambuf_iterator<char>(stream), {});
  if (!stream) base::fail(MPI_ERR_ARG, "{} cannot be read: {}", path_, std::strerror(errno));
  const auto* header = at<ElfW(Ehdr)>(file_, 0);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64)
    base::fail(MPI_ERR_ARG, "{} is no shared object of this machine; {}", path_, remedy);
  if (is_program(file_, *header))
    base::fail(MPI_ERR_ARG, "{} is a whole program, which cannot be loaded into another one; {}",
               path_, remedy);
  has_variables_ = finds_variables(file_, *header);
  if (has_variables_)
    make_symbols_ordinary(file_);
  else
    file_ = {};
  loaded_ = fs::canonical(path_); // no search for a library, and from any folder
}

Module::Main* Module::load() {
  if (!has_variables_) {
    if (shared_ == nullptr) shared_ = open_module(loaded_, path_);
    return shared_;
  }
  // The loader knows a file by its name and its identity: every rank gets a file of its own.
  const CopyFolder folder;
  const std::string copy = fmt::format("{}/{}", folder.path(), copies_++);
  std::ofstream stream(copy, std::ios::binary);
  stream << file_;
  stream.close();
  if (!stream)
    base::fail(MPI_ERR_OTHER, "{} cannot be copied to {}: {}; set TMPDIR to a folder with room",
               path_, copy, std::strerror(errno));
  return open_module(copy, path_);
}

} // namespace macadam::sim
