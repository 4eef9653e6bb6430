// Problem: hide the time of network ops behind computing, within the budget.
//
// Idea: two passes over the steps, each of which moves steps one place at a time past neighbours
// that do not depend on them, and keeps account of the bytes in use.
//   1. Issue. A network op is due when its first reader runs, if computing never waited. Going back
//      from the one that is due last, each gets the latest start at which it and those that are due
//      later arrive in time. It is issued at the last step by which that time has come, or as soon
//      after it as memory allows; before others only if they are due later. Issued earlier than
//      that, it would only hold memory. If what it reads comes too late, ops before that are held
//      back behind it: in the backward, gradients of weights, while those of inputs are summed.
//   2. Wait. Going forward, an op that would wait for the network is put off behind the steps after
//      it, until what it waits for has arrived, or something needs its result. So is a free that
//      would wait, as long as there is room for the bytes.
// Both are repeated while the plan becomes shorter.
//
// Source: what FSDP2, SimpleFSDP and Inductor's reordering of collectives do, here with the bytes
// of each step known.
//
// Invariant: the plan stays legal, its peak within the limit. Network ops that must keep an order,
// since ranks that plan alone must agree on it, have that order in the graph (`after`).
//
// Loses: which tensors are kept was decided before, as if nothing overlapped; the passes move ops,
// and recompute none.
#include "lowtide/driver/overlap.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "lowtide/base/id_vector.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::driver {

namespace {

constexpr int kMostRounds = 4;
constexpr std::size_t kWindow = 48;  // steps before a network op among which others are held back

template <class Ids, class Id>
bool among(const Ids& ids, Id id) {
  return std::ranges::find(ids, id) != ids.end();
}
template <class A, class B>
bool meet(const A& a, const B& b) {
  return std::ranges::any_of(a, [&](const auto id) { return among(b, id); });
}

class Overlap {
 public:
  Overlap(const Problem& problem, const Plan& plan, Bytes limit, Limits& limits)
      : graph_(problem.graph),
        plan_(plan),
        given_(problem.order == Order::given),
        limit_(limit),
        limits_(limits) {
    const Timeline timeline = simulate(graph_, plan);
    before_ = timeline.start;
    std::vector<bool> computed(graph_.op_count(), false);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      Entry entry{.step = plan.steps[i], .during = timeline.live[i]};
      entry.after = after(entry);
      if (entry.step.is_compute() && !computed[entry.step.op().index()]) {
        entry.first = true;
        computed[entry.step.op().index()] = true;
      }
      entries_.push_back(entry);
    }
  }

  Plan run(bool holds_back) && {
    issue(holds_back);
    wait();
    Plan moved = plan_;
    for (std::size_t i = 0; i < entries_.size(); ++i) moved.steps[i] = entries_[i].step;
    return moved;
  }

 private:
  struct Entry {
    Step step;
    Bytes during, after = {};     // bytes in use
    bool first = false;           // of a computation: the op's first
    Ticks due = {}, latest = {};  // of a network op: when it must end, its latest start
  };

  bool computes(const Entry& entry) const { return entry.step.is_compute(); }
  bool is_free(const Entry& entry) const { return entry.step.kind == StepKind::free; }
  bool sends(const Entry& entry) const {
    return computes(entry) && graph_.on_network(entry.step.op());
  }
  std::span<const TensorId> overwritten(const Entry& entry) const {
    return plan_.overwritten(entry.step);
  }
  Bytes made(const Entry& entry) const {
    Bytes bytes;
    for (const TensorId output : graph_.outputs(entry.step.op())) bytes += graph_.bytes(output);
    for (const TensorId gone : overwritten(entry)) bytes -= graph_.bytes(gone);
    return bytes;
  }
  Bytes after(const Entry& entry) const {
    if (entry.step.kind == StepKind::free) return entry.during - graph_.bytes(entry.step.tensor());
    return computes(entry) ? entry.during - graph_.workspace(entry.step.op()) : entry.during;
  }
  Bytes before(std::size_t at) const { return at == 0 ? before_ : entries_[at - 1].after; }
  Ticks time(const Entry& entry) const {
    return computes(entry) && !sends(entry) ? graph_.time(entry.step.op()) : Ticks(0);
  }

  // Whether the order of two neighbours follows from rules that hold for any two computations.
  bool ordered(const Entry& earlier, const Entry& later) const {
    if (!computes(earlier) || !computes(later)) return false;
    const OpId a = earlier.step.op(), b = later.step.op();
    return a == b || graph_.is_barrier(a) || graph_.is_barrier(b) || among(graph_.after(b), a) ||
           (sends(earlier) && sends(later) && earlier.due <= later.due) ||
           (given_ && earlier.first && later.first);
  }
  // Whether the step ends, makes, changes or copies one of the tensors.
  bool touches(const Entry& entry, std::span<const TensorId> tensors) const {
    if (!computes(entry)) return among(tensors, entry.step.tensor());
    return meet(graph_.outputs(entry.step.op()), tensors) || meet(overwritten(entry), tensors) ||
           meet(graph_.mutates(entry.step.op()), tensors);
  }
  bool reads(const Entry& entry, std::span<const TensorId> tensors) const {
    return computes(entry) && meet(graph_.inputs(entry.step.op()), tensors);
  }

  void issue(bool holds_back) {
    find_latest_starts();
    Ticks clock;
    for (std::size_t i = 0; i < entries_.size() && !limits_.stopped(); ++i) {
      if (!sends(entries_[i])) {
        clock += time(entries_[i]);
        continue;
      }
      Ticks reached = clock;
      const std::size_t at = bring_forward(i, reached);
      if (holds_back) hold_back(at, reached);
    }
  }

  // Puts ops before the network op at `at` behind it, while it is late.
  void hold_back(std::size_t at, Ticks clock) {
    const std::size_t end = at;
    for (std::size_t k = at; k-- > 0 && end - k <= kWindow && clock > entries_[at].latest;) {
      if (sends(entries_[k]) || time(entries_[k]) == Ticks(0)) continue;
      const Ticks taken = time(entries_[k]);
      if (!delay(k, at)) continue;
      clock -= taken;
      while (!sends(entries_[at])) --at;
    }
  }

  // Moves the op at `at` behind the step at `last`; the frees of its inputs come with it. False if
  // that is not legal, or takes more bytes than there are.
  bool delay(std::size_t at, std::size_t last) {
    const Entry entry = entries_[at];
    const OpId op = entry.step.op();
    if (!graph_.mutates(op).empty()) return false;
    const Bytes bytes = made(entry);
    std::vector<Entry> passed, frees;
    Bytes more = Bytes(0) - bytes;  // in use at the steps that are passed
    for (std::size_t i = at + 1; i <= last; ++i)
      if (limits_.spend() || !pass(entry, entries_[i], more, passed, frees)) return false;
    if (passed.back().after + bytes + graph_.workspace(op) > limit_) return false;
    place(at, entry, passed, passed.size(), frees, frees.size());
    return true;
  }

  // Whether `next` may come before `entry`; a free of an input of the latter comes with it instead.
  bool pass(const Entry& entry, Entry next, Bytes& more, std::vector<Entry>& passed,
            std::vector<Entry>& frees) const {
    const OpId op = entry.step.op();
    if (next.step.kind == StepKind::free && among(graph_.inputs(op), next.step.tensor())) {
      frees.push_back(next);
      more += graph_.bytes(next.step.tensor());
      return true;
    }
    if (ordered(entry, next) || touches(next, graph_.inputs(op)) ||
        touches(next, graph_.outputs(op)) || reads(next, graph_.outputs(op)))
      return false;
    next.during += more;
    next.after += more;
    if (next.during > limit_) return false;
    passed.push_back(next);
    return true;
  }

  void find_latest_starts() {
    Ticks end;
    for (const Entry& entry : entries_) end += time(entry);
    // When the tensor is needed next, going backwards.
    IdVector<TensorId, Ticks> needed(graph_.tensor_count(), Ticks::max());
    Ticks clock = end;
    std::vector<Entry*> network;
    for (std::size_t i = entries_.size(); i-- > 0;) {
      Entry& entry = entries_[i];
      clock -= time(entry);
      if (sends(entry)) {
        entry.due = end;
        for (const TensorId output : graph_.outputs(entry.step.op()))
          entry.due = std::min(entry.due, needed[output]);
        network.push_back(&entry);
      }
      if (computes(entry))
        for (const TensorId input : graph_.inputs(entry.step.op())) needed[input] = clock;
      else
        needed[entry.step.tensor()] = clock;
    }
    std::ranges::stable_sort(network, std::greater(), &Entry::due);
    Ticks next = end;
    for (Entry* entry : network)
      next = entry->latest = std::min(entry->due, next) - graph_.time(entry->step.op());
  }

  // Issues the network op at `at` earlier, and returns its new place; `clock` is when computing
  // reaches it.
  std::size_t bring_forward(std::size_t at, Ticks& clock) {
    const Entry entry = entries_[at];
    const OpId op = entry.step.op();
    if (!overwritten(entry).empty() || !graph_.mutates(op).empty()) return at;
    const Bytes bytes = made(entry);
    std::size_t to = at;
    for (; to > 0 && clock > entry.latest; --to) {
      const Entry& passed = entries_[to - 1];
      if (limits_.spend() || ordered(passed, entry) || touches(passed, graph_.inputs(op)) ||
          touches(passed, graph_.outputs(op)) || passed.during + bytes > limit_ ||
          before(to - 1) + bytes + graph_.workspace(op) > limit_)
        break;
      clock -= time(passed);
    }
    if (to == at) return at;
    const Bytes there = before(to);
    for (std::size_t i = at; i > to; --i) {
      entries_[i] = entries_[i - 1];
      entries_[i].during += bytes;
      entries_[i].after += bytes;
    }
    entries_[to] = entry;
    entries_[to].after = there + bytes;
    entries_[to].during = entries_[to].after + graph_.workspace(op);
    return to;
  }

  void wait() {
    // When a tensor exists, and when the last network op that reads or makes it has ended.
    IdVector<TensorId, Ticks> arrives(graph_.tensor_count()), settles(graph_.tensor_count());
    Ticks clock, network;
    for (std::size_t i = 0; i < entries_.size() && !limits_.stopped(); ++i) {
      while (is_free(entries_[i]) && put_off_free(i, clock, settles[entries_[i].step.tensor()])) {
      }
      if (computes(entries_[i]) && !sends(entries_[i])) put_off(i, clock, arrives);
      const Entry& entry = entries_[i];
      if (is_free(entry)) clock = std::max(clock, settles[entry.step.tensor()]);
      if (!computes(entry)) continue;
      const OpId op = entry.step.op();
      Ticks start = sends(entry) ? std::max(clock, network) : clock;
      for (const TensorId input : graph_.inputs(op)) start = std::max(start, arrives[input]);
      const Ticks end = start + graph_.time(op);
      (sends(entry) ? network : clock) = end;
      for (const TensorId output : graph_.outputs(op)) arrives[output] = end;
      if (!sends(entry)) continue;
      for (const auto links : {graph_.inputs(op), graph_.outputs(op)})
        for (const TensorId used : links) settles[used] = end;
    }
  }

  // Moves the free at `at` behind steps that need not wait for it, if it would hold the compute
  // lane until `until`. True if it has moved.
  bool put_off_free(std::size_t at, Ticks clock, Ticks until) {
    Entry entry = entries_[at];
    const TensorId tensor = entry.step.tensor();
    const Bytes bytes = graph_.bytes(tensor);
    std::size_t to = at;
    for (std::size_t i = at + 1; i < entries_.size() && clock < until; ++i) {
      const Entry& next = entries_[i];
      if (limits_.spend() || touches(next, {&tensor, 1}) || next.during + bytes > limit_) break;
      clock += time(next);
      if (time(next) > Ticks(0)) to = i;
    }
    if (to == at) return false;
    for (std::size_t i = at; i < to; ++i) {
      entries_[i] = entries_[i + 1];
      entries_[i].during += bytes;
      entries_[i].after += bytes;
    }
    entry.during = before(to);
    entry.after = after(entry);
    entries_[to] = entry;
    return true;
  }

  // Moves the op at `at` behind steps that need not wait for it, if it would have to wait itself.
  // The frees of its inputs come with it.
  void put_off(std::size_t at, Ticks clock, const IdVector<TensorId, Ticks>& arrives) {
    const Entry entry = entries_[at];
    const OpId op = entry.step.op();
    Ticks until;
    for (const TensorId input : graph_.inputs(op)) until = std::max(until, arrives[input]);
    if (until <= clock || !graph_.mutates(op).empty()) return;
    const Bytes bytes = made(entry);
    std::vector<Entry> passed, frees;
    Bytes more = Bytes(0) - bytes;  // in use at the steps that are passed
    std::size_t best_passed = 0, best_frees = 0, to = at + 1;
    for (; to < entries_.size() && clock < until; ++to) {
      const std::size_t count = passed.size();
      if (limits_.spend() || !pass(entry, entries_[to], more, passed, frees)) break;
      if (passed.size() == count) continue;
      const Entry& next = passed.back();
      if (next.after + bytes + graph_.workspace(op) > limit_) break;
      clock += time(next);
      // A step that takes no time is no use, but may stand before one that does.
      if (time(next) == Ticks(0)) continue;
      best_passed = passed.size();
      best_frees = frees.size();
    }
    if (best_passed == 0) return;
    place(at, entry, passed, best_passed, frees, best_frees);
  }

  void place(std::size_t at, Entry entry, const std::vector<Entry>& passed, std::size_t count,
             const std::vector<Entry>& frees, std::size_t freed) {
    for (std::size_t i = 0; i < count; ++i) entries_[at++] = passed[i];
    entry.after = passed[count - 1].after + made(entry);
    entry.during = entry.after + graph_.workspace(entry.step.op());
    entries_[at++] = entry;
    for (std::size_t i = 0; i < freed; ++i) {
      Entry free = frees[i];
      free.during = before(at);
      free.after = after(free);
      entries_[at++] = free;
    }
  }

  const Graph& graph_;
  const Plan& plan_;
  const bool given_;
  const Bytes limit_;
  Limits& limits_;
  Bytes before_;
  std::vector<Entry> entries_;
};

}  // namespace

Plan overlapped(const Problem& problem, const Plan& plan, Bytes limit, Limits& limits) {
  Plan best = plan;
  Cost cost = simulate(problem.graph, plan).cost;
  for (int round = 0; round < kMostRounds; ++round) {
    bool is_shorter = false;
    for (const bool holds_back : {true, false}) {
      if (limits.spend(static_cast<std::int64_t>(best.steps.size()))) return best;
      Plan moved = Overlap(problem, best, limit, limits).run(holds_back);
      const Timeline timeline = simulate(problem.graph, moved);
      if (timeline.violation || timeline.cost.peak > std::max(limit, cost.peak) ||
          timeline.cost.duration >= cost.duration)
        continue;
      cost = timeline.cost;
      best = std::move(moved);
      is_shorter = true;
    }
    if (!is_shorter) break;
  }
  return best;
}

}  // namespace lowtide::driver
