// Outputs first, then the others, the largest first. An output goes to a donated input of its size,
// or gets a buffer of its own. Any other buffer goes to the newest of these that is large enough
// and free while it lives, else to the heap. Workspace stands for many buffers: it fills what is
// free at its step, and the heap has the rest. Source: xla/service/buffer_assignment.cc.
#include "lowtide/layout/xla_total.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "lowtide/layout/baselines.h"
#include "lowtide/layout/lifetimes.h"

namespace lowtide::layout {

namespace {

using Kind = BufferOrigin::Kind;

// An allocation in which buffers lie one after the other.
class Allocation {
 public:
  explicit Allocation(const Buffer& first) : bytes_(first.bytes) { take(first); }

  Bytes bytes() const { return bytes_; }
  bool is_free(std::int64_t begin, std::int64_t end) const {
    const auto next = busy_.lower_bound(begin);
    if (next != busy_.end() && next->first < end) return false;
    return next == busy_.begin() || std::prev(next)->second <= begin;
  }
  bool take_if_free(const Buffer& buffer) {
    if (buffer.bytes > bytes_ || !is_free(buffer.begin, buffer.end)) return false;
    take(buffer);
    return true;
  }

 private:
  void take(const Buffer& buffer) { busy_[buffer.begin] = buffer.end; }

  Bytes bytes_;
  std::map<std::int64_t, std::int64_t> busy_;  // begin -> end
};

class Assignment {
 public:
  Assignment(const Graph& graph, const Plan& plan)
      : graph_(graph),
        lifetimes_(lifetimes(graph, plan)),
        freed_(lifetimes_.buffers.size(), false) {
    for (const MemoryEvent& event : lifetimes_.events)
      if (event.kind == MemoryEvent::Kind::free)
        freed_[static_cast<std::size_t>(event.buffer)] = true;
  }

  Bytes total() {
    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < lifetimes_.buffers.size(); ++i) {
      const Kind kind = lifetimes_.origins[i].kind;
      if (kind == Kind::input || kind == Kind::resident)
        give(i);
      else
        rest.push_back(i);
    }
    donated_ = allocations_.size();
    std::ranges::stable_sort(rest, [&](std::size_t a, std::size_t b) {
      return lifetimes_.buffers[a].bytes > lifetimes_.buffers[b].bytes;
    });
    for (const bool freed : {false, true})
      for (const std::size_t i : rest)
        if (freed_[i] == freed) assign(i);
    return total_ + heap_height();
  }

 private:
  void give(std::size_t i) {
    const BufferOrigin& origin = lifetimes_.origins[i];
    total_ += lifetimes_.buffers[i].bytes;
    if (origin.kind == Kind::input && graph_.releasable(origin.tensor))
      allocations_.emplace_back(lifetimes_.buffers[i]);
  }

  void assign(std::size_t i) {
    const Buffer& buffer = lifetimes_.buffers[i];
    if (lifetimes_.origins[i].kind == Kind::workspace) return assign_workspace(buffer);
    if (freed_[i]) {
      constexpr std::size_t kMostTried = 1000;
      const std::size_t last = allocations_.size();
      for (std::size_t at = last; at > 0 && at + kMostTried > last; --at)
        if (allocations_[at - 1].take_if_free(buffer)) return;
      heap_.push_back(buffer);
      return;
    }
    for (std::size_t at = 0; at < donated_; ++at)
      if (allocations_[at].bytes() == buffer.bytes && allocations_[at].take_if_free(buffer)) return;
    allocations_.emplace_back(buffer);
    total_ += buffer.bytes;
  }

  void assign_workspace(Buffer left) {
    for (Allocation& one : allocations_)
      if (one.bytes() <= left.bytes && one.take_if_free({left.begin, left.end, one.bytes()}))
        left.bytes -= one.bytes();
    if (left.bytes.count() > 0) heap_.push_back(left);
  }

  // XLA takes the better of two orders.
  Bytes heap_height() const {
    constexpr std::size_t kMostPlaced = 2000;  // the baselines are quadratic
    if (heap_.size() > kMostPlaced) return load();
    return std::min(baseline_height(Baseline::by_size, heap_, Bytes(1)),
                    baseline_height(Baseline::by_duration, heap_, Bytes(1)));
  }

  Bytes load() const {
    std::map<std::int64_t, std::int64_t> change;
    for (const Buffer& buffer : heap_) {
      change[buffer.begin] += buffer.bytes.count();
      change[buffer.end] -= buffer.bytes.count();
    }
    std::int64_t live = 0, most = 0;
    for (const auto& [moment, bytes] : change) most = std::max(most, live += bytes);
    return Bytes(most);
  }

  const Graph& graph_;
  const Lifetimes lifetimes_;
  std::vector<bool> freed_;
  std::vector<Allocation> allocations_;  // donated inputs, then outputs
  std::size_t donated_ = 0;
  std::vector<Buffer> heap_;
  Bytes total_;
};

}  // namespace

Bytes xla_total(const Graph& graph, const Plan& plan) { return Assignment(graph, plan).total(); }

}  // namespace lowtide::layout
