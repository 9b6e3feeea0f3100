#pragma once
#include <limits>
#include <string>
#include <vector>

#include "sim/allocator/driver_cost.hpp"
#include "sim/allocator/label.hpp"

namespace foreshard::sim::allocator {

/// Something that concerns the allocator, in the order in which the host does it. A runtime records its own by
/// appending; nothing is looked up until they are replayed.
struct Event {
  enum class Kind : std::uint8_t {
    allocate,       ///< block, bytes, stream, label
    free,           ///< block; `until`: when other streams have passed, 0: none used it but by record_stream
    record_stream,  ///< block, stream which uses it until `until`; `not_known`: until that stream is synchronised, or
                    ///< the list ends
    sync,           ///< the host has waited for the stream
    empty_cache,    ///< everything free goes back to the driver
    outside,        ///< bytes of the device are taken by others from now on
    phase           ///< what follows belongs to phase number `block`
  };
  Kind kind = Kind::allocate;
  Stream stream = 0;
  std::uint32_t block = 0;
  Label label = Label::none;
  Bytes bytes = 0;
  Nanoseconds at = 0, until = 0;
};
inline constexpr Nanoseconds not_known = std::numeric_limits<Nanoseconds>::max();

struct EventList {
  std::vector<Event> events;
  std::vector<std::string> phases;  ///< names: "first step", "backward", …
};

/// A CSV file with a header line and a row for each event. Columns: event (allocate, free, record_stream, sync,
/// empty_cache, outside, phase), block (any number), bytes, stream; and if there are any time_ns (else rows are a
/// microsecond apart), until_ns, class (a memory class; of a phase its name), unit. Throws InputError (bad_input) which
/// names file, row, value and what was expected; a block is allocated once before it is freed once.
EventList read_events(const std::string& path);

}  // namespace foreshard::sim::allocator
