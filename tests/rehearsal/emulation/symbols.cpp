#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "rehearsal/emulation/kernel.hpp"

namespace rehearsal {
namespace {

template <class T>
T at(const std::string& file, std::size_t offset) {
  T value = {};
  if (offset + sizeof value <= file.size()) std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

std::string symbol_in(const std::string& file, const Elf64_Shdr& symbols, const Elf64_Shdr& names,
                      std::uint64_t value) {
  for (std::size_t offset = symbols.sh_offset; offset < symbols.sh_offset + symbols.sh_size;
       offset += sizeof(Elf64_Sym)) {
    const auto symbol = at<Elf64_Sym>(file, offset);
    if (symbol.st_value == value && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
      return file.c_str() + names.sh_offset + symbol.st_name;
  }
  return {};
}

std::string contents_of(const char* path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  std::string contents(static_cast<std::size_t>(std::max<std::streamoff>(stream.tellg(), 0)), '\0');
  stream.seekg(0).read(contents.data(), static_cast<std::streamsize>(contents.size()));
  return contents;
}

/// From the table of all symbols of an ELF file, also of those that are not exported, as kernels may be.
std::string symbol_in_file(const char* path, std::uint64_t value) {
  const std::string file = contents_of(path);
  const auto header = at<Elf64_Ehdr>(file, 0);
  const auto section = [&](std::size_t i) { return at<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr)); };
  for (std::size_t i = 0; i < header.e_shnum; ++i)
    if (section(i).sh_type == SHT_SYMTAB) return symbol_in(file, section(i), section(section(i).sh_link), value);
  return {};
}

std::string readable(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string name = text != nullptr ? text : symbol;
  std::free(text);
  return name;
}

}  // namespace

std::string name_of(const void* function) {
  Dl_info info = {};
  if (dladdr(function, &info) == 0) return fmt::format("{}", function);
  if (info.dli_sname != nullptr && info.dli_saddr == function) return readable(info.dli_sname);
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const char*>(function) - static_cast<char*>(info.dli_fbase));
  const std::string symbol = symbol_in_file(info.dli_fname, offset);
  return symbol.empty() ? fmt::format("{}+{:#x}", info.dli_fname, offset) : readable(symbol);
}

}  // namespace rehearsal
