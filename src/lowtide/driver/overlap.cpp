// Problem: hide the time of network ops behind computing, within the budget.
//
// Idea: two passes over the steps, each of which moves steps one place at a time past neighbours
// that do not depend on them, and keeps account of the bytes in use.
//   1. Issue. A network op is due when its first reader runs, if computing never waited. Going back
//      from the one that is due last, each gets the latest start at which it and those that are due
//      later arrive in time. It is issued at the last step by which that time has come, or as soon
//      after it as memory allows; before others only if they are due later. Issued earlier than
//      that, it would only hold memory.
//   2. Wait. Going forward, an op that would wait for the network is put off behind the steps after
//      it, until what it waits for has arrived, or something needs its result.
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
  Overlap(const Problem& problem, const Plan& plan, Bytes limit)
      : graph_(problem.graph), plan_(plan), given_(problem.order == Order::given), limit_(limit) {
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

  Plan run() && {
    issue();
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

  void issue() {
    find_latest_starts();
    Ticks clock;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (sends(entries_[i]))
        bring_forward(i, clock);
      else
        clock += time(entries_[i]);
    }
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

  // Issues the network op at `at` earlier; `clock` is when computing reaches it.
  void bring_forward(std::size_t at, Ticks clock) {
    const Entry entry = entries_[at];
    const OpId op = entry.step.op();
    if (!overwritten(entry).empty() || !graph_.mutates(op).empty()) return;
    const Bytes bytes = made(entry);
    std::size_t to = at;
    for (; to > 0 && clock > entry.latest; --to) {
      const Entry& passed = entries_[to - 1];
      if (ordered(passed, entry) || touches(passed, graph_.inputs(op)) ||
          touches(passed, graph_.outputs(op)) || passed.during + bytes > limit_ ||
          before(to - 1) + bytes + graph_.workspace(op) > limit_)
        break;
      clock -= time(passed);
    }
    if (to == at) return;
    const Bytes there = before(to);
    for (std::size_t i = at; i > to; --i) {
      entries_[i] = entries_[i - 1];
      entries_[i].during += bytes;
      entries_[i].after += bytes;
    }
    entries_[to] = entry;
    entries_[to].after = there + bytes;
    entries_[to].during = entries_[to].after + graph_.workspace(op);
  }

  void wait() {
    IdVector<TensorId, Ticks> arrives(graph_.tensor_count());
    Ticks clock, network;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (computes(entries_[i]) && !sends(entries_[i])) put_off(i, clock, arrives);
      const Entry& entry = entries_[i];
      if (!computes(entry)) continue;
      const OpId op = entry.step.op();
      Ticks start = sends(entry) ? std::max(clock, network) : clock;
      for (const TensorId input : graph_.inputs(op)) start = std::max(start, arrives[input]);
      const Ticks end = start + graph_.time(op);
      (sends(entry) ? network : clock) = end;
      for (const TensorId output : graph_.outputs(op)) arrives[output] = end;
    }
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
      Entry next = entries_[to];
      if (next.step.kind == StepKind::free && among(graph_.inputs(op), next.step.tensor())) {
        frees.push_back(next);
        more += graph_.bytes(next.step.tensor());
        continue;
      }
      if (ordered(entry, next) || touches(next, graph_.inputs(op)) ||
          touches(next, graph_.outputs(op)) || reads(next, graph_.outputs(op)))
        break;
      next.during += more;
      next.after += more;
      if (next.during > limit_ || next.after + bytes + graph_.workspace(op) > limit_) break;
      clock += time(next);
      // A step that itself waits for the network is no use, but may stand before one that is.
      passed.push_back(next);
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
  Bytes before_;
  std::vector<Entry> entries_;
};

}  // namespace

Plan overlapped(const Problem& problem, const Plan& plan, Bytes limit) {
  Plan best = plan;
  Cost cost = simulate(problem.graph, plan).cost;
  for (int round = 0; round < kMostRounds; ++round) {
    Plan moved = Overlap(problem, best, limit).run();
    const Timeline timeline = simulate(problem.graph, moved);
    if (timeline.violation || timeline.cost.peak > std::max(limit, cost.peak) ||
        timeline.cost.duration >= cost.duration)
      break;
    cost = timeline.cost;
    best = std::move(moved);
  }
  return best;
}

}  // namespace lowtide::driver
