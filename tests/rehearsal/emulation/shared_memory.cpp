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

constexpr std::size_t chunk_bytes = 512;
constexpr int blocks_to_learn_from = 2;
constexpr std::uint64_t pattern = 0x7FF97FF97FF97FF9;

bool is_poisoned(std::span<const char> bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(bytes.data());
  return std::all_of(words, words + bytes.size() / sizeof pattern, [](std::uint64_t word) { return word == pattern; });
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

/// By an instruction that is fast for the hundreds of kilobytes that all kernels' shared memory may be.
void poison(void* at, std::size_t bytes) {
  if (bytes == 0) return;
  std::size_t words = bytes / sizeof pattern;
  void* end = at;
  asm volatile("rep stosq" : "+D"(end), "+c"(words) : "a"(pattern) : "memory");
  __builtin_memcpy(end, &pattern, bytes % sizeof pattern);
}

StaticShared& StaticShared::of(const void* kernel) {
  static thread_local std::map<const void*, StaticShared> known;
  const auto found = known.find(kernel);
  if (found != known.end()) return found->second;
  Library library = {reinterpret_cast<std::uintptr_t>(kernel), {}};
  dl_iterate_phdr(find_variables, &library);
  return known.emplace(kernel, StaticShared(library.variables)).first->second;
}

bool StaticShared::learns() const { return blocks_ < blocks_to_learn_from; }

std::span<char> StaticShared::chunk(std::size_t number) const {
  return all_.subspan(number * chunk_bytes, std::min(chunk_bytes, all_.size() - number * chunk_bytes));
}

void StaticShared::before_block() {
  if (learns()) return poison(all_.data(), all_.size());
  for (const std::size_t number : written_) poison(chunk(number).data(), chunk(number).size());
}

void StaticShared::after_block() {
  if (!learns()) return;
  ++blocks_;
  for (std::size_t number = 0; number * chunk_bytes < all_.size(); ++number)
    if (!is_poisoned(chunk(number)) && std::ranges::find(written_, number) == written_.end())
      written_.push_back(number);
}

std::span<char> dynamic_shared_memory_of(std::size_t bytes) {
  static thread_local Dynamic memory;
  const std::size_t rounded = (bytes + 15) / 16 * 16;
  return {memory.end - rounded, rounded};
}

}  // namespace rehearsal
