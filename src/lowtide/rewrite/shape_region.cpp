// Reduces ops that an axis reaches to a region that can be split along it.
//
// Two problems occur if only some of the ops carry the axis. First, a path may leave the set and
// return; the largest convex subset is kept. Second, ops that connect the others may be missing,
// so the set has several components, each of which needs an axis to start from. Then the reach of
// the whole family is used: an op that nothing has reached starts from a tensor whose axis the
// family has. Ops that stop the axis are removed, and the procedure starts again. So are ops whose
// results must be whole before the parts, such as the targets that a loss counts.
#include <algorithm>
#include <limits>

#include "lowtide/rewrite/candidate.h"
#include "lowtide/rewrite/convex.h"

namespace lowtide::rewrite {

namespace {

using dimensions::Reach;
using dimensions::Seed;
using dimensions::State;

constexpr int kRounds = 48;

bool may_split(const Graph& graph, const Reach& reach, OpId op) {
  return reach.carries[op.index()] && !graph.is_barrier(op) && graph.mutates(op).empty() &&
         !graph.outputs(op).empty();
}

// The convex set whose outputs have most bytes.
std::vector<OpId> largest_convex(const Graph& graph, const Reach& reach, const Members& among) {
  Members before;
  for (const auto& carry : reach.carries) before.push_back(carry && carry->before);
  std::vector<OpId> best;
  double most = -1;
  for (auto& set : convex_sets(graph, among, before)) {
    double bytes = 0;
    for (const OpId op : set)
      for (const TensorId made : graph.outputs(op))
        bytes += static_cast<double>(graph.bytes(made).count());
    if (bytes <= most) continue;
    most = bytes;
    best = std::move(set);
  }
  return best;
}

// A tensor in which the op sees the family's axis along a dimension of the tensor's own shape.
std::optional<Seed> seed_at(const Graph& graph, const Reach& reach, OpId op) {
  const auto look = [&](std::span<const TensorId> tensors) -> std::optional<Seed> {
    for (const TensorId tensor : tensors) {
      const auto& state = reach.tensors[tensor.index()];
      if (state.state != State::split) continue;
      const auto& shape = graph.tensor(tensor).shape;
      for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        if (shape[dim] != state.axis.extent) continue;
        const Seed seed{tensor, static_cast<std::int64_t>(dim)};
        if (dimensions::find_axis(graph, seed) == state.axis) return seed;
      }
    }
    return std::nullopt;
  };
  if (const auto found = look(graph.outputs(op))) return found;
  return look(graph.inputs(op));
}

// Removes from `among` the ops that affect a result which is made before the parts, and all ops on
// which they depend.
bool leave_out_deciding(const Graph& graph, const Reach& reach, std::span<const OpId> ops,
                        Members& among) {
  Members deciding(graph.op_count(), 0);
  for (const OpId op : ops) {
    const auto& operands = graph.op(op).operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const OpId maker = graph.producer(operands[i].tensor);
      if (maker.valid() && dimensions::decides_before(graph.op(op), *reach.carries[op.index()], i))
        deciding[maker.index()] = 1;
    }
  }
  bool left_out = false;
  for (auto op = graph.order().rbegin(); op != graph.order().rend(); ++op) {
    if (deciding[op->index()] == 0) continue;
    for (const OpId before : graph.predecessors(*op)) deciding[before.index()] = 1;
    if (among[op->index()] == 0) continue;
    among[op->index()] = 0;
    left_out = true;
  }
  return left_out;
}

}  // namespace

std::optional<Candidate> shape_region(const Graph& graph, const Family& family,
                                      std::span<const OpId> ops) {
  Members among(graph.op_count(), 0);
  for (const OpId op : ops) among[op.index()] = may_split(graph, family.reach, op);
  Candidate made;
  made.ops = largest_convex(graph, family.reach, among);
  for (int round = 0; round < kRounds && made.ops.size() > 1; ++round) {
    if (made.axes.empty()) {
      const auto first = std::ranges::find_if(
          made.ops, [&](OpId op) { return seed_at(graph, family.reach, op).has_value(); });
      if (first == made.ops.end()) return std::nullopt;
      made.axes.push_back(*seed_at(graph, family.reach, *first));
    }
    const Reach reach = dimensions::follow(graph, made.axes, made.ops);
    const auto carried = [&](OpId op) { return reach.carries[op.index()].has_value(); };
    const auto stopped = [&](OpId op) { return reach.stops[op.index()].has_value(); };
    const bool all_carried = std::ranges::all_of(made.ops, carried);
    if (all_carried && !leave_out_deciding(graph, reach, made.ops, among)) {
      made.slices = std::numeric_limits<std::int64_t>::max();
      for (const Seed& seed : made.axes)
        made.slices = std::min(made.slices, reach.tensors[seed.tensor.index()].longest);
      if (made.slices < kFewestSlices) return std::nullopt;
      return made;
    }
    bool left_out = all_carried;
    for (const OpId op : made.ops) {
      if (carried(op)) continue;
      if (stopped(op)) {
        among[op.index()] = 0;
        left_out = true;
      }
    }
    if (!left_out) {
      // Of the next component.
      const OpId next = *std::ranges::find_if_not(made.ops, carried);
      if (const auto seed = seed_at(graph, family.reach, next);
          seed && std::ranges::find_if(made.axes, [&](const Seed& one) {
                    return one.tensor == seed->tensor;
                  }) == made.axes.end()) {
        made.axes.push_back(*seed);
        continue;
      }
      among[next.index()] = 0;
    }
    made.ops = largest_convex(graph, family.reach, among);
    std::ranges::fill(among, std::uint8_t{0});
    for (const OpId op : made.ops) among[op.index()] = 1;
    made.axes.clear();
  }
  return std::nullopt;
}

}  // namespace lowtide::rewrite
