// What the allocator's model says, as Python has it.
#pragma once

#include <nanobind/nanobind.h>

#include "lowtide/layout/allocator/replay.h"

namespace lowtide::python {

nanobind::dict peaks_dict(const layout::Peaks& peaks);
nanobind::list steps_list(const layout::Replay& replay);
nanobind::dict counts_dict(const layout::AllocatorCounts& counts);
// None if memory did not run out.
nanobind::object out_of_memory_or_none(const layout::Replay& replay);
// None, an int (bytes), or a str as the command takes it.
std::optional<Bytes> memory_of(nanobind::handle memory);

}  // namespace lowtide::python
