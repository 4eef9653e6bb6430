// One pass over the events of the plan's lifetimes.
#include "lowtide/layout/plan_snapshot.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/layout/allocator/sizes.h"
#include "lowtide/layout/lifetimes.h"
#include "lowtide/layout/place_plan.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::layout {

namespace {

using EventKind = SnapshotEvent::Kind;

// The viewers draw addresses in hexadecimal; these look like those of a GPU.
constexpr std::int64_t kResidentAddress = 0x700000000000, kArenaAddress = 0x7f0000000000;

// Of work, so that the same plan always gives the same snapshot: about a second.
constexpr std::int64_t kPlacingWork = 1'000'000;

std::int64_t microseconds(Ticks ticks, TickUnit unit) {
  const std::int64_t each = nanoseconds(unit);
  return each == 0 ? ticks.count() : checked_mul_div(ticks.count(), each, 1000, Rounding::floor);
}

class StepRecorder {
 public:
  StepRecorder(const Graph& graph, const Plan& plan, std::span<const PlannedOffset> offsets)
      : on_(graph, plan),
        found_(lifetimes(on_.graph(), on_.plan())),
        timeline_(simulate(on_.graph(), on_.plan())),
        computed_(on_.graph().op_count()) {
    find_addresses(lifetimes(graph, plan), offsets);
  }

  Snapshot write() {
    result_.traces.emplace_back();
    if (on_.graph().resident() > Bytes(0)) add_segment(kResidentAddress, on_.graph().resident());
    if (arena_ > Bytes(0)) add_segment(kArenaAddress, arena_);
    std::vector<std::size_t> stacks(found_.buffers.size());
    std::vector<bool> live(found_.buffers.size());
    for (const MemoryEvent& event : found_.events) {
      const auto buffer = static_cast<std::size_t>(event.buffer);
      advance(event.step);
      live[buffer] = event.kind == MemoryEvent::Kind::allocate;
      if (live[buffer]) {
        stacks[buffer] = stack_of(found_.origins[buffer]);
        add(EventKind::allocate, buffer, stacks[buffer]);
      } else {
        add(EventKind::free_requested, buffer, stacks[buffer]);
        add(EventKind::free_completed, buffer, stacks[buffer]);
      }
    }
    for (SnapshotSegment& segment : result_.segments) fill(segment, live, stacks);
    return std::move(result_);
  }

 private:
  void find_addresses(const Lifetimes& original, std::span<const PlannedOffset> offsets) {
    std::map<std::pair<std::int32_t, TensorId>, Bytes> planned;
    for (const PlannedOffset& one : offsets) planned[{one.step, one.tensor}] = one.offset;
    for (std::size_t i = 0; i < original.buffers.size(); ++i) {
      const BufferOrigin& origin = original.origins[i];
      if (origin.kind == BufferOrigin::Kind::resident) {
        addresses_.push_back(kResidentAddress);
        continue;
      }
      const auto at = planned.find({origin.step, origin.tensor});
      check(at != planned.end(), "each buffer of the plan has an offset");
      addresses_.push_back(kArenaAddress + at->second.count());
      arena_ = std::max(arena_, checked_add(at->second, original.buffers[i].bytes));
    }
  }

  // To the time of a step, which may begin before the last one ends: on another lane.
  void advance(std::int32_t step) {
    if (step == BufferOrigin::kStart) return;
    const auto at = static_cast<std::size_t>(step);
    const Step& next = on_.plan().steps[at];
    const bool sends = next.is_compute() && on_.graph().on_network(next.op());
    // The outputs of a network op are there from its issue on.
    const Ticks begin = sends ? timeline_.clock[at] : timeline_.begin[at];
    now_ = std::max(now_, microseconds(begin, on_.graph().tick()));
    for (; counted_ < step; ++counted_) {
      const Step& past = on_.plan().steps[static_cast<std::size_t>(counted_)];
      if (past.is_compute()) computed_[past.op().index()] = true;
    }
  }

  void add_segment(std::int64_t address, Bytes bytes) {
    result_.traces[0].push_back({EventKind::segment_allocate, address, bytes, 0, now_, 0});
    result_.segments.push_back({.address = address, .bytes = bytes, .blocks = {}});
  }

  void add(EventKind kind, std::size_t buffer, std::size_t stack) {
    result_.traces[0].push_back(
        {kind, addresses_[buffer], found_.buffers[buffer].bytes, 0, now_, stack});
  }

  // The blocks at the end: what is live, and the gaps.
  void fill(SnapshotSegment& segment, const std::vector<bool>& live,
            const std::vector<std::size_t>& stacks) const {
    const std::int64_t end = segment.address + segment.bytes.count();
    std::vector<SnapshotBlock> held;
    for (std::size_t i = 0; i < live.size(); ++i) {
      const Bytes bytes = found_.buffers[i].bytes;
      if (live[i] && addresses_[i] >= segment.address && addresses_[i] < end)
        held.push_back({addresses_[i], bytes, bytes, SnapshotBlock::State::allocated, stacks[i]});
    }
    std::ranges::sort(held, {}, &SnapshotBlock::address);
    std::int64_t at = segment.address;
    const auto gap_to = [&](std::int64_t next) {
      if (at < next)
        segment.blocks.push_back({.address = at, .bytes = Bytes(next - at), .requested = {}});
      at = next;
    };
    for (const SnapshotBlock& block : held) {
      gap_to(block.address);
      segment.blocks.push_back(block);
      at += block.bytes.count();
    }
    gap_to(end);
  }

  std::size_t stack_of(const BufferOrigin& origin) {
    const Graph& graph = on_.graph();
    Stack stack;
    const auto add_op = [&](OpId op, bool again) {
      const Op& made = graph.op(op);
      stack.push_back({made.kind.empty() ? "op" : made.kind,
                       made.name.empty() ? graph.label(op) : made.name,
                       static_cast<std::int64_t>(op.index())});
      if (!made.origin.empty()) stack.push_back({made.origin, "model", 0});
      if (again)
        stack.push_back({"recomputed", "plan", 0});
      else if (!made.phase.empty())
        stack.push_back({made.phase, "plan", 0});
    };
    const auto add_tensor = [&](std::string_view what) {
      const std::string& name = graph.tensor(origin.tensor).name;
      stack.push_back({std::string(what), name.empty() ? graph.label(origin.tensor) : name,
                       static_cast<std::int64_t>(origin.tensor.index())});
    };
    switch (origin.kind) {
      case BufferOrigin::Kind::resident: stack.push_back({"resident", "plan", 0}); break;
      case BufferOrigin::Kind::input:
        add_tensor(to_string(graph.tensor(origin.tensor).role));
        break;
      case BufferOrigin::Kind::fetched:
        add_tensor("prefetch");
        if (const OpId op = graph.producer(origin.tensor); op.valid()) add_op(op, false);
        break;
      case BufferOrigin::Kind::workspace:
        stack.push_back({"workspace", "plan", 0});
        [[fallthrough]];
      case BufferOrigin::Kind::computed: {
        const OpId op = on_.plan().steps[static_cast<std::size_t>(origin.step)].op();
        add_op(op, computed_[op.index()]);
        break;
      }
    }
    return intern(std::move(stack));
  }

  std::size_t intern(Stack stack) {
    std::string key;
    for (const StackFrame& frame : stack)
      key += frame.name + '\0' + frame.filename + '\0' + std::to_string(frame.line) + '\0';
    const auto [at, is_new] = known_.try_emplace(std::move(key), result_.stacks.size());
    if (is_new) result_.stacks.push_back(std::move(stack));
    return at->second;
  }

  const PlanOnGraph on_;
  const Lifetimes found_;
  const Timeline timeline_;
  std::vector<bool> computed_;           // which ops, before the current step
  std::int32_t counted_ = 0;             // steps that computed_ knows
  std::vector<std::int64_t> addresses_;  // of each buffer
  Bytes arena_;
  std::int64_t now_ = 0;
  std::map<std::string, std::size_t> known_;  // the stacks
  Snapshot result_;
};

}  // namespace

Snapshot plan_snapshot(const Graph& graph, const PlanFile& file) {
  if (!file.offsets.empty()) return StepRecorder(graph, file.plan, file.offsets).write();
  Limits limits({.work = kPlacingWork});
  const PlanPlacement placed = place_plan(graph, file.plan, {.alignment = kSmallestBlock}, limits);
  return StepRecorder(graph, file.plan, placed.offsets).write();
}

}  // namespace lowtide::layout
