#include "rehearsal/emulation/device.hpp"

#include <fmt/format.h>

#include <cstring>

#include "rehearsal/emulation/block.hpp"
#include "rehearsal/emulation/sanitizer.hpp"

namespace rehearsal {

void fail(std::string what) { Block::current().fail(std::move(what)); }
void barrier(const Where& where) { Block::current().barrier(where); }

Meeting& meet(unsigned mask, const void* brought, std::size_t bytes, const char* what, const Where& where) {
  return Block::current().meet(mask, brought, bytes, what, where);
}
const void* brought_by(const Meeting& meeting, unsigned lane) {
  if (lane >= 32 || (meeting.mask >> lane & 1U) == 0)
    fail(fmt::format("{} reads lane {}, which is not in its mask", meeting.what, lane));
  return meeting.brought[lane];
}
void end(Meeting& meeting) { Block::current().end(meeting); }

void synchronise(unsigned mask, const Where& where) {
  Meeting& meeting = meet(mask, nullptr, 0, "__syncwarp", where);
  end(meeting);
}

unsigned lane() { return Block::current().thread().number % 32; }
char* dynamic_shared_memory() { return Block::current().shared_memory(); }

void copy_later(void* to, const void* from, bool present) {
  auto& groups = Block::current().thread().copies;
  if (groups.empty()) groups.emplace_back();
  groups.back().push_back({to, from, present});
}

void end_group_of_copies() {
  auto& groups = Block::current().thread().copies;
  if (groups.empty()) groups.emplace_back();
  groups.emplace_back();
}

/// The last group is open, so that one is not counted.
void wait_for_groups(std::size_t but_the_latest) {
  auto& groups = Block::current().thread().copies;
  while (groups.size() > but_the_latest + 1) {
    for (const Copy& copy : groups.front())
      if (copy.present)
        std::memcpy(copy.to, copy.from, 16);
      else
        std::memset(copy.to, 0, 16);
    groups.erase(groups.begin());
  }
}

}  // namespace rehearsal
