// The words of a snapshot's pickle. Private to the room.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "lowtide/layout/snapshot.h"

namespace lowtide::io {

inline constexpr std::array<std::pair<std::string_view, layout::SnapshotEvent::Kind>, 7>
    kSnapshotActions = {{{"alloc", layout::SnapshotEvent::Kind::allocate},
                         {"free_requested", layout::SnapshotEvent::Kind::free_requested},
                         {"free_completed", layout::SnapshotEvent::Kind::free_completed},
                         {"segment_alloc", layout::SnapshotEvent::Kind::segment_allocate},
                         {"segment_free", layout::SnapshotEvent::Kind::segment_free},
                         {"segment_map", layout::SnapshotEvent::Kind::segment_map},
                         {"segment_unmap", layout::SnapshotEvent::Kind::segment_unmap}}};

inline constexpr std::array<std::pair<std::string_view, layout::SnapshotBlock::State>, 3>
    kSnapshotStates = {{{"active_allocated", layout::SnapshotBlock::State::allocated},
                        {"active_pending_free", layout::SnapshotBlock::State::awaiting_free},
                        {"inactive", layout::SnapshotBlock::State::inactive}}};

// PyTorch has called the same state by another name, too.
inline constexpr std::string_view kAwaitingFree = "active_awaiting_free";

inline constexpr std::string_view kAllocatorSettings = "PYTORCH_CUDA_ALLOC_CONF";
inline constexpr std::string_view kSettingsOfAnyDevice = "PYTORCH_ALLOC_CONF";

}  // namespace lowtide::io
