// Problem: every plan copies each tensor at home on the host that some op reads at least once to
// the device, and each tensor that an op changes back.
//
// Idea: each lane makes one copy after the other. A copy to the device precedes all ops that
// follow the tensor's readers. So of any set of such copies the last is followed by at least the
// smallest of these tails. A copy back follows all ops before the one that changes the tensor.
// Sorting finds the worst set: Jackson's rule for one machine with release times (tails).
//
// Invariant: ops before and after are counted once, by first computations only, so the bound holds
// for any recomputation.
//
// Loses: if memory forces plans to fetch a tensor several times; the cuts cover that.
#include "lowtide/solve/bounds/home/home_bound.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "lowtide/graph/reach.h"

namespace lowtide::solve::bounds {

namespace {

constexpr std::int64_t kMostWork = 20'000'000;  // links, with a free order

// A copy: its time, the time before it (or after it), and the part of that time that is copies.
struct Copy {
  Ticks other, time, other_copy;
};

// The maximum over all sets of copies: their sum, plus the smallest `other` of the set.
HomeBound worst(std::vector<Copy> copies) {
  std::ranges::sort(copies, std::ranges::greater{}, &Copy::other);
  HomeBound most;
  Ticks sum;
  for (const Copy& copy : copies) {
    sum = checked_add(sum, copy.time);
    if (const Ticks all = checked_add(sum, copy.other); all > most.duration)
      most = {all, sum + copy.other_copy};
  }
  return most;
}

Ticks time_of(const Graph& graph, const std::vector<bool>& ops) {
  Ticks sum;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops[i]) sum += graph.time(OpId(i));
  return sum;
}

class Around {
 public:
  explicit Around(const Problem& problem)
      : graph_(problem.graph), given_(problem.order == Order::given) {
    if (!given_) return;
    upto_.push_back(Ticks());
    for (const OpId op : graph_.order()) upto_.push_back(upto_.back() + graph_.time(op));
  }

  // The time of all ops up to the op, itself included, in every allowed order.
  Ticks before(OpId op) const {
    if (given_) return upto_[graph_.position(op) + 1];
    return time_of(graph_, ancestors(graph_, std::span(&op, 1)));
  }
  // The time of all ops from the op on, itself included.
  Ticks behind(OpId op) const {
    if (given_) return graph_.total_time() - upto_[graph_.position(op)];
    return time_of(graph_, descendants(graph_, std::span(&op, 1)));
  }

 private:
  const Graph& graph_;
  const bool given_;
  std::vector<Ticks> upto_;  // of all ops before each position of the given order
};

bool takes_too_long(const Problem& problem) {
  if (problem.order == Order::given) return false;
  const Graph& graph = problem.graph;
  std::int64_t passes = 0;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (const TensorId id(i); graph.on_host(id))
      passes += 2 * static_cast<std::int64_t>(graph.consumers(id).size());
  return passes > kMostWork / static_cast<std::int64_t>(graph.op_count() + graph.link_count() + 1);
}

}  // namespace

HomeBound home_bound(const Problem& problem) {
  const Graph& graph = problem.graph;
  if (!graph.has_tensors_on_host() || takes_too_long(problem)) return {};
  const Around around(problem);
  std::vector<Copy> in, out;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    if (!graph.on_host(id) || (graph.consumers(id).empty() && !graph.is_output(id))) continue;
    Copy come{.other = {},
              .time = problem.machine->host_to_device.transfer_time(graph.bytes(id)),
              .other_copy = {}};
    Copy leave{.other = {},
               .time = problem.machine->device_to_host.transfer_time(graph.bytes(id)),
               .other_copy = {}};
    bool changes = false;
    for (const OpId op : graph.consumers(id)) {
      come.other = std::max(come.other, around.behind(op));
      if (std::ranges::count(graph.mutates(op), id) == 0) continue;
      changes = true;
      leave.other = std::max(leave.other, around.before(op));
      if (const Ticks changed = checked_add(come.time, graph.time(op)); changed > leave.other) {
        leave.other = changed;
        leave.other_copy = come.time;
      }
    }
    in.push_back(come);
    if (changes) out.push_back(leave);
  }
  const HomeBound coming = worst(std::move(in)), leaving = worst(std::move(out));
  return coming.duration > leaving.duration ? coming : leaving;
}

}  // namespace lowtide::solve::bounds
