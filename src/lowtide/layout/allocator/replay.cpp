#include "lowtide/layout/allocator/replay.h"

#include <string>
#include <unordered_map>

#include "lowtide/base/error.h"
#include "lowtide/layout/allocator/caching_allocator.h"

namespace lowtide::layout {

namespace {

// As PyTorch: it refuses to allocate an exabyte whatever the device has.
constexpr Bytes kTooMuch{std::int64_t{1} << 60};

Peaks peaks_of(const AllocatorLevels& levels) {
  return {levels.allocated.peak, levels.active.peak, levels.requested.peak, levels.reserved.peak,
          levels.inactive_split.peak};
}

Peaks larger(const Peaks& a, const Peaks& b) {
  return {std::max(a.allocated, b.allocated), std::max(a.active, b.active),
          std::max(a.requested, b.requested), std::max(a.reserved, b.reserved),
          std::max(a.inactive_split, b.inactive_split)};
}

class Replayer {
 public:
  Replayer(const AllocatorSettings& settings, std::optional<Bytes> memory)
      : allocator_(settings, memory) {}

  // False: out of memory.
  bool run(std::size_t index, const TraceEvent& event) {
    index_ = index;
    address_ = -1;
    in_step_ = event.kind != TraceEvent::Kind::end_step;
    switch (event.kind) {
      case TraceEvent::Kind::allocate: return allocate(event);
      case TraceEvent::Kind::free:
        allocator_.free(block(event.id));
        live_.erase(event.id);
        break;
      case TraceEvent::Kind::use_on: allocator_.use_on(block(event.id), event.stream); break;
      case TraceEvent::Kind::finish: allocator_.finish(event.stream); break;
      case TraceEvent::Kind::empty_cache: allocator_.empty_cache(); break;
      case TraceEvent::Kind::end_step: end_step(); break;
    }
    return true;
  }

  ReplayedEvent last() const {
    const AllocatorLevels& levels = allocator_.levels();
    return {address_, levels.allocated.now, levels.reserved.now};
  }

  Replay finish() {
    if (in_step_) end_step();
    found_.end = allocator_.levels();
    found_.counts = allocator_.counts();
    return std::move(found_);
  }

 private:
  bool allocate(const TraceEvent& event) {
    const auto [at, is_new] = live_.try_emplace(event.id);
    if (!is_new) fail("id " + std::to_string(event.id) + " is allocated; free it before");
    if (event.bytes <= Bytes(0)) fail("bytes must be above 0");
    at->second = event.bytes < kTooMuch ? allocator_.allocate(event.bytes, event.stream) : nullptr;
    if (at->second == nullptr) {
      const AllocatorLevels& levels = allocator_.levels();
      found_.out_of_memory = {index_, event.bytes, levels.allocated.now, levels.reserved.now};
      return false;
    }
    address_ = at->second->address;
    return true;
  }

  Block* block(std::int64_t id) const {
    const auto at = live_.find(id);
    if (at == live_.end()) fail("id " + std::to_string(id) + " is not allocated");
    return at->second;
  }

  void end_step() {
    found_.steps.push_back(peaks_of(allocator_.levels()));
    found_.peaks = larger(found_.peaks, found_.steps.back());
    allocator_.reset_peaks();
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw InputError("event " + std::to_string(index_), reason);
  }

  CachingAllocator allocator_;
  std::unordered_map<std::int64_t, Block*> live_;
  std::size_t index_ = 0;
  std::int64_t address_ = -1;
  bool in_step_ = false;
  Replay found_;
};

}  // namespace

Replay replay(std::span<const TraceEvent> trace, const AllocatorSettings& settings,
              std::optional<Bytes> memory, std::vector<ReplayedEvent>* events) {
  Replayer replayer(settings, memory);
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const bool served = replayer.run(i, trace[i]);
    if (events != nullptr) events->push_back(replayer.last());
    if (!served) break;
  }
  return replayer.finish();
}

}  // namespace lowtide::layout
