// Snapshots of a CUDA allocator in and out, as pickles: what torch.cuda.memory._dump_snapshot()
// writes and PyTorch's page memory_viz draws. docs/how-to/look-at-memory.md shows
// both.
#pragma once

#include <string>
#include <string_view>

#include "lowtide/layout/snapshot.h"

namespace lowtide::io {

// No code of a pickle runs. InputError with the file's name and the place, a byte or a path
// ("device_traces/0/17/addr"), for what is no pickle of plain data or no snapshot. What has no
// bearing on memory is not looked at; events of kinds that are not known count as `other`. `file`:
// gzip or plain; "-": standard input.
layout::Snapshot read_snapshot(const std::string& path);
layout::Snapshot read_snapshot_text(std::string_view text, const std::string& file_name);

// Deterministic: the same snapshot, the same bytes.
std::string write_snapshot(const layout::Snapshot& snapshot);

}  // namespace lowtide::io
