#include "lowtide/rewrite/priced_region.h"

#include <algorithm>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/transforms/if_legal.h"

namespace lowtide::rewrite {

namespace {

using dimensions::State;

// Throws OverflowError beyond 63 bits, as for all sums and products here: files may contain any
// sizes.
std::int64_t times(std::int64_t value, std::int64_t count) {
  return checked_mul_div(value, count, 1, Rounding::floor);
}

AskedRegion asked(const Candidate& candidate, std::int64_t parts) {
  AskedRegion region;
  region.ops = candidate.ops;
  region.axes = candidate.axes;
  region.parts = parts;
  return region;
}

}  // namespace

std::optional<PricedRegion> PricedRegion::make(const Graph& graph, const Candidate& candidate,
                                               std::int64_t parts, const PartPricer& pricer) {
  return if_legal([&] {
    PricedRegion made(graph, candidate, parts, pricer);
    made.check_sums();
    return made;
  });
}

PricedRegion::PricedRegion(const Graph& graph, const Candidate& candidate, std::int64_t parts,
                           const PartPricer& pricer)
    : graph_(graph),
      pricer_(pricer),
      axes_(candidate.axes),
      labels_(labels_of(graph)),
      region_(region_of(graph, asked(candidate, parts), labels_)) {
  for (const std::int64_t part : sizes()) {
    auto& costs = costs_.emplace_back();
    for (const OpId op : region_.ops) costs.push_back(part_cost(op, part));
  }
}

void PricedRegion::check_sums() const {
  Ticks time = graph_.total_time();
  Bytes bytes = graph_.resident();
  const auto add = [&](Bytes more) { bytes = checked_add(bytes, more); };
  for (const OpId op : AllIds<OpId>(graph_.op_count())) add(graph_.workspace(op));
  for (const TensorId id : AllIds<TensorId>(graph_.tensor_count())) {
    add(graph_.bytes(id));
    if (is_made_in_parts(graph_, region_, id)) add(part_bytes(id));
  }
  for (std::size_t i = 0; i < region_.ops.size(); ++i) {
    time = checked_add(time, all_parts(i));
    add(costs_.front()[i].workspace);
    if (runs_before(graph_, region_, region_.ops[i])) add(before_cost(region_.ops[i]).workspace);
  }
  for (const TensorId tensor : region_.joined) {
    time = checked_add(time, joining(tensor));
    add(join_cost(tensor).workspace);
    add(put_together_bytes(tensor));
  }
}

std::vector<std::int64_t> PricedRegion::sizes() const {
  // A tensor with all slices of its axis, which can be split into as many parts.
  const bool even = std::ranges::all_of(region_.ops, [&](OpId op) {
    const dimensions::Carry& carry = region_.carry(op);
    const auto cropped = [&](const dimensions::View& view) {
      return view.position && view.position->extent < carry.longest;
    };
    return carry.longest % region_.parts == 0 && std::ranges::none_of(carry.operands, cropped) &&
           std::ranges::none_of(carry.results, cropped);
  });
  if (even) return {0};
  return {0, region_.parts - 1};
}

PartPricer::Cost PricedRegion::part_cost(OpId id, std::int64_t part) const {
  if (!runs_in_parts(graph_, region_, id)) return {Ticks(0), Bytes(0)};
  const PartOfOp seen = part_of_op(graph_, region_, id, part, labels_);
  const Op& op = graph_.op(id);
  const bool told = !op.operands.empty() || !op.results.empty();
  try {
    if (told) return pricer_.part(id, {op.kind, seen.operands, seen.results, seen.arguments});
  } catch (const InputError&) {  // the operations of this kind cannot be counted
  }
  const std::int64_t of = region_.carry(id).extent;
  const std::int64_t count = region_.slices(region_.carry(id), part).count;
  const auto share = [&](std::int64_t all) {
    return of > 0 ? checked_mul_div(all, count, of, Rounding::ceil) : all;
  };
  return {Ticks(share(op.time.count())), Bytes(share(op.workspace.count()))};
}

// Work before the parts: a random draw takes its whole time; a count reads the tensors that it
// counts.
PartPricer::Cost PricedRegion::before_cost(OpId op) const {
  if (!runs_in_parts(graph_, region_, op)) return {graph_.time(op), graph_.workspace(op)};
  Bytes moved(0);
  for (const TensorId read : graph_.inputs(op))
    if (!is_made_in_parts(graph_, region_, read)) moved = checked_add(moved, graph_.bytes(read));
  for (const TensorId made : graph_.outputs(op))
    if (is_made_before(graph_, region_, made)) moved = checked_add(moved, graph_.bytes(made));
  return pricer_.copy(moved.count());
}

PartPricer::Cost PricedRegion::join_cost(TensorId tensor) const {
  // A sum of two number types is computed in pieces, for which a kernel makes copies in single
  // precision.
  constexpr std::int64_t kPiece = 1 << 14, kCopies = 8;  // elements; bytes of both copies of one
  const bool adds = region_.reach.tensors[tensor.index()].state == State::partial;
  PartPricer::Cost cost = pricer_.copy(times(part_bytes(tensor).count(), adds ? 3 : 2));
  if (widens(graph_, region_, tensor))
    cost.workspace = Bytes(std::min(graph_.bytes(tensor).count() / 2, kPiece) * kCopies);
  return cost;
}

Bytes PricedRegion::part_bytes(TensorId tensor) const {
  const auto& state = region_.reach.tensors[tensor.index()];
  if (state.state != State::split) return graph_.bytes(tensor);
  return dimensions::part_bytes(graph_.bytes(tensor), state.axis, region_.slices(state, 0).count);
}

// Sums of more than two parts are accumulated in single precision.
Bytes PricedRegion::put_together_bytes(TensorId tensor) const {
  const Bytes bytes = graph_.bytes(tensor);
  return widens(graph_, region_, tensor) ? checked_add(bytes, bytes) : bytes;
}

Split PricedRegion::split(const TransformedGraph& now) const {
  Split split;
  split.parts = region_.parts;
  for (const OpId op : region_.ops) split.ops.push_back(now.op_index[op]);
  for (const auto& seed : axes_) split.axes.push_back({now.tensor_index[seed.tensor], seed.dim});
  // One list if all parts have one size.
  const auto count = costs_.size() == 1 ? 1 : static_cast<std::size_t>(region_.parts);
  for (std::size_t part = 0; part < count; ++part) {
    auto& prices = split.prices.emplace_back();
    const auto& costs = part + 1 == count ? costs_.back() : costs_.front();
    for (std::size_t i = 0; i < region_.ops.size(); ++i)
      prices.push_back({now.op_index[region_.ops[i]], costs[i].time, costs[i].workspace});
  }
  for (const OpId op : region_.ops) {
    if (!runs_before(graph_, region_, op)) continue;
    const auto cost = before_cost(op);
    split.before.push_back({now.op_index[op], cost.time, cost.workspace});
  }
  for (const TensorId tensor : region_.joined) {
    const auto cost = join_cost(tensor);
    split.joins.push_back({now.tensor_index[tensor], cost.time, cost.workspace});
  }
  return split;
}

Ticks PricedRegion::all_parts(std::size_t i) const {
  const std::int64_t alike = region_.parts - static_cast<std::int64_t>(costs_.size()) + 1;
  Ticks all(times(costs_.front()[i].time.count(), alike));
  if (costs_.size() > 1) all = checked_add(all, costs_.back()[i].time);
  const OpId op = region_.ops[i];
  return runs_before(graph_, region_, op) ? checked_add(all, before_cost(op).time) : all;
}

Ticks PricedRegion::joining(TensorId tensor) const {
  // Sums start with the value of the first part.
  const bool adds = region_.reach.tensors[tensor.index()].state == State::partial;
  return Ticks(times(join_cost(tensor).time.count(), region_.parts - (adds ? 1 : 0)));
}

RegionInParts PricedRegion::in_parts() const {
  RegionInParts found{.ops = region_.ops, .time = {}, .workspace = {}, .made = {}, .held = {}};
  std::vector<std::uint8_t> held(graph_.tensor_count(), 0);
  for (std::size_t i = 0; i < region_.ops.size(); ++i) {
    const OpId op = region_.ops[i];
    found.time.push_back(all_parts(i));
    found.workspace.push_back(costs_.front()[i].workspace);
    for (const TensorId read : graph_.inputs(op))
      if (!is_made_in_parts(graph_, region_, read) && std::exchange(held[read.index()], 1) == 0)
        found.held.push_back(read);
    for (const TensorId made : graph_.outputs(op)) {
      if (!is_made_in_parts(graph_, region_, made)) continue;
      auto& one = found.made.emplace_back();
      one.tensor = made;
      one.part = part_bytes(made);
      if (region_.is_joined[made.index()] == 0) continue;
      one.joined = true;
      one.together = put_together_bytes(made);
      one.joining = joining(made);
      one.workspace = join_cost(made).workspace;
    }
  }
  return found;
}

std::optional<Hoist> priced_hoist(const TransformedGraph& now, const PartPricer& pricer) {
  const Graph& graph = now.graph;
  for (const OpId op : graph.order()) {
    if (!graph.is_barrier(op) || graph.outputs(op).size() != 1) continue;
    Hoist hoist{
        .tangent = now.tensor_index[graph.outputs(op).front()], .exact = false, .joins = {}};
    std::vector<std::uint8_t> behind(graph.op_count(), 0);
    behind[op.index()] = 1;
    for (const OpId later : graph.order())
      for (const OpId before : graph.predecessors(later))
        if (behind[before.index()] != 0) behind[later.index()] = 1;
    for (const TensorId output : graph.outputs()) {
      const OpId maker = graph.producer(output);
      if (!maker.valid() || maker == op || behind[maker.index()] == 0) continue;
      const auto cost = pricer.copy(times(graph.bytes(output).count(), 2));
      hoist.joins.push_back({now.tensor_index[output], cost.time, cost.workspace});
    }
    return hoist;
  }
  return std::nullopt;
}

}  // namespace lowtide::rewrite
