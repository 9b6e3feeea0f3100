#include "rehearsal/emulation/shared_memory.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "rehearsal/emulation/sanitizer.hpp"

namespace rehearsal {
namespace {

constexpr std::size_t page = 4096, most_shared_bytes = 227 * 1024 / page * page + page;

struct Library {
  std::uintptr_t address;
  std::span<char> variables;
};

bool holds(const dl_phdr_info& library, std::uintptr_t address) {
  return std::any_of(library.dlpi_phdr, library.dlpi_phdr + library.dlpi_phnum, [&](const ElfW(Phdr) & part) {
    return part.p_type == PT_LOAD && address - library.dlpi_addr - part.p_vaddr < part.p_memsz;
  });
}

int find_variables(dl_phdr_info* library, std::size_t, void* sought) {
  auto& [address, variables] = *static_cast<Library*>(sought);
  if (!holds(*library, address)) return 0;
  const bool is_program = library->dlpi_name[0] == '\0';
  for (int i = 0; i < library->dlpi_phnum; ++i)
    if (library->dlpi_phdr[i].p_type == PT_TLS && !is_program && library->dlpi_tls_data != nullptr)
      variables = {static_cast<char*>(library->dlpi_tls_data), library->dlpi_phdr[i].p_memsz};
  return 1;
}

/// Unmapped when its thread ends.
struct Dynamic {
  char* end = nullptr;

  Dynamic() {
    void* memory = mmap(nullptr, most_shared_bytes + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    end = static_cast<char*>(memory) + most_shared_bytes;
    mprotect(end, page, PROT_NONE);
  }
  ~Dynamic() { munmap(end - most_shared_bytes, most_shared_bytes + page); }
};

}  // namespace

void poison(void* at, std::size_t bytes) {
  constexpr std::uint16_t pattern = 0x7FF9;
  auto* words = static_cast<char*>(at);
  for (std::size_t i = 0; i + 1 < bytes; i += 2) __builtin_memcpy(words + i, &pattern, 2);
  if (bytes % 2 != 0) words[bytes - 1] = static_cast<char>(0xF9);
}

std::span<char> static_shared_memory(const void* kernel) {
  static thread_local std::map<const void*, std::span<char>> known;
  const auto [at, is_new] = known.try_emplace(kernel);
  if (is_new) {
    Library library = {reinterpret_cast<std::uintptr_t>(kernel), {}};
    dl_iterate_phdr(find_variables, &library);
    at->second = library.variables;
  }
  return at->second;
}

std::span<char> dynamic_shared_memory_of(std::size_t bytes) {
  static thread_local Dynamic memory;
  const std::size_t rounded = (bytes + 15) / 16 * 16;
  return {memory.end - rounded, rounded};
}

}  // namespace rehearsal
