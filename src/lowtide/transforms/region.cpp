// Checks that a region may be split: it is convex, every op in it carries an axis, and the tensors
// that leave it can be assembled.
#include "lowtide/transforms/region.h"

#include <algorithm>
#include <utility>

#include "lowtide/transforms/refuse.h"

namespace lowtide {

namespace {

using dimensions::State;
using dimensions::View;

class Check {
 public:
  Check(const Graph& graph, const AskedRegion& asked, const Labels& labels)
      : graph_(graph), asked_(asked), labels_(labels) {}

  Region region() {
    find_ops();
    follow_axes();
    demand_convex();
    demand_operands_of_before();
    demand_slices_in_parts();
    find_joined();
    return std::move(region_);
  }

 private:
  std::string label(OpId op) const { return labels_.op(op); }
  std::string label(TensorId tensor) const { return labels_.tensor(tensor); }
  [[noreturn]] static void refuse(const std::string& reason) {
    refuse_transform("split: " + reason);
  }

  void find_ops() {
    region_.parts = asked_.parts;
    region_.inside.assign(graph_.op_count(), 0);
    for (const OpId op : asked_.ops) {
      if (graph_.is_barrier(op)) refuse(label(op) + " is a barrier, which runs once");
      if (!graph_.mutates(op).empty())
        refuse(label(op) + " mutates " + label(graph_.mutates(op).front()) +
               ", which is not allowed in a part");
      if (graph_.outputs(op).empty())
        refuse(label(op) + " has no output, so it cannot run in parts");
      region_.inside[op.index()] = 1;
    }
    for (const OpId op : graph_.order())
      if (region_.inside[op.index()] != 0) region_.ops.push_back(op);
  }

  // No path may lead from an op that runs in parts out of the region and back into it. Ops that run
  // once before all parts do not depend on the parts, so paths through them do not count. An
  // example are the ops that draw dropout masks, which the state of the generator links to each
  // other.
  void demand_convex() {
    const auto order = graph_.order();
    region_.above.assign(graph_.op_count(), 0);
    std::vector<std::uint8_t> below(graph_.op_count(), 0);
    const auto is_inside = [&](OpId op) { return region_.inside[op.index()] != 0; };
    const auto in_parts = [&](OpId op) { return is_inside(op) && !region_.carry(op).before; };
    for (const OpId op : order)
      for (const OpId before : graph_.predecessors(op)) {
        if (is_inside(op) && !in_parts(op) && in_parts(before)) continue;
        if (in_parts(before) || below[before.index()] != 0) below[op.index()] = 1;
      }
    for (auto op = order.rbegin(); op != order.rend(); ++op)
      for (const OpId next : graph_.successors(*op))
        if (is_inside(next) || region_.above[next.index()] != 0) region_.above[op->index()] = 1;
    for (const OpId op : order) {
      if (is_inside(op)) region_.above[op.index()] = 0;
      if (!is_inside(op) && below[op.index()] != 0 && region_.above[op.index()] != 0)
        refuse("the region is not convex: " + label(op) +
               " is not in it, but comes after one of its ops and before another");
    }
  }

  // Some results are made once, before the parts. No operand that affects the values of such a
  // result may be made in the parts.
  void demand_operands_of_before() const {
    for (const OpId op : region_.ops) {
      const auto& operands = graph_.op(op).operands;
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (dimensions::decides_before(graph_.op(op), region_.carry(op), i) &&
            is_made_in_parts(graph_, region_, operands[i].tensor))
          refuse(label(op) + " runs once for all parts of " + label(operands[i].tensor) +
                 ", which the parts make");
    }
  }

  void follow_axes() {
    try {
      region_.reach = dimensions::follow(graph_, asked_.axes, region_.ops);
    } catch (const InputError& error) {  // its place is the tensor
      refuse(error.what());
    }
    for (const OpId op : region_.ops) {
      if (region_.reach.carries[op.index()]) continue;
      const auto& stop = region_.reach.stops[op.index()];
      refuse(label(op) + (stop ? " " + stop->reason : " is not reached by the axes"));
    }
  }

  void demand_slices_in_parts() const {
    for (const dimensions::Seed& asked : asked_.axes) {
      const auto& state = region_.reach.tensors[asked.tensor.index()];
      demand_two_slices(
          "dimension " + std::to_string(asked.dim) + " of " + label(asked.tensor) + " has ",
          state.axis.extent, state.longest);
    }
    // Views of a cropped tensor have fewer slices than its axis.
    for (const OpId op : region_.ops) {
      const dimensions::Carry& carry = region_.carry(op);
      for (const auto* views : {&carry.operands, &carry.results})
        for (const View& view : *views)
          if (view.position && view.position->extent < carry.longest)
            demand_two_slices(label(op) + " sees ", view.position->extent, carry.longest);
    }
  }

  // Refuses if the last part of `extent` slices has fewer than two. `longest`: the most slices of
  // the tensors that are split together. `what` begins the message.
  void demand_two_slices(const std::string& what, std::int64_t extent, std::int64_t longest) const {
    const std::int64_t n = region_.parts;
    const std::int64_t last =
        n > longest ? 0 : dimensions::clipped(region_.slices(longest, n - 1), extent).count;
    if (last >= 2) return;
    refuse(what + std::to_string(extent) + " slices" +
           (extent < longest ? " of " + std::to_string(longest) : "") + ", which do not go into " +
           std::to_string(n) + " parts of two or more" +
           (last == 1 ? ": the last would have one" : ""));
  }

  void find_joined() {
    region_.is_joined.assign(graph_.tensor_count(), 0);
    for (const OpId op : region_.ops) {
      if (asked_.exact && region_.carry(op).weight == dimensions::Weight::share)
        refuse("\"exact\" is claimed, but what " + label(op) +
               " makes is weighted by the part's share of the slices, which rounds once more");
      for (const TensorId tensor : graph_.outputs(op)) {
        if (is_made_before(graph_, region_, tensor)) continue;
        const State state = region_.reach.tensors[tensor.index()].state;
        if (!is_needed_outside(graph_, region_, tensor) || state == State::whole) continue;
        if (state == State::partial && asked_.exact && is_rounded(op, tensor))
          refuse("\"exact\" is claimed, but " + label(tensor) +
                 " is added up over the parts, in another order than at once");
        region_.joined.push_back(tensor);
        region_.is_joined[tensor.index()] = 1;
      }
    }
  }

  // Whether a sum in the number type of this result may depend on the order of the addends.
  bool is_rounded(OpId op, TensorId tensor) const {
    for (const Operand& result : graph_.op(op).results)
      if (result.tensor == tensor)
        return !result.dtype.starts_with('i') && !result.dtype.starts_with('u');
    return true;
  }

  const Graph& graph_;
  const AskedRegion& asked_;
  const Labels& labels_;
  Region region_;
};

}  // namespace

dimensions::Slices Region::slices(std::int64_t longest, std::int64_t part) const {
  const std::int64_t most = longest / parts + (longest % parts != 0 ? 1 : 0);
  return dimensions::clipped({part * most, most}, longest);
}

dimensions::Slices Region::slices(const dimensions::Carry& carry, std::int64_t part) const {
  return dimensions::clipped(slices(carry.longest, part), carry.extent);
}

dimensions::Slices Region::slices(const dimensions::TensorState& tensor, std::int64_t part) const {
  return dimensions::clipped(slices(tensor.longest, part), tensor.axis.extent);
}

Labels labels_of(const Graph& graph) {
  return {[&graph](OpId op) { return graph.label(op); },
          [&graph](TensorId tensor) { return graph.label(tensor); }};
}

Region region_of(const Graph& graph, const AskedRegion& asked, const Labels& labels) {
  return Check(graph, asked, labels).region();
}

bool is_made_before(const Graph& graph, const Region& region, TensorId tensor) {
  const OpId maker = graph.producer(tensor);
  if (!maker.valid() || region.inside[maker.index()] == 0) return false;
  if (region.carry(maker).before) return true;
  const Op& op = graph.op(maker);
  bool before = false;
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    if (op.results[i].tensor != tensor) continue;
    if (!region.carry(maker).results[i].before) return false;
    before = true;
  }
  return before;
}

bool widens(const Graph& graph, const Region& region, TensorId tensor) {
  if (region.parts <= 2 || region.reach.tensors[tensor.index()].state != dimensions::State::partial)
    return false;
  std::string_view dtype = graph.tensor(tensor).dtype;
  for (const Operand& result : graph.op(graph.producer(tensor)).results)
    if (result.tensor == tensor) {
      dtype = result.dtype;
      break;
    }
  return dtype == "f16" || dtype == "bf16";
}

bool is_needed_outside(const Graph& graph, const Region& region, TensorId tensor) {
  return graph.is_output(tensor) || std::ranges::any_of(graph.consumers(tensor), [&](OpId op) {
           return region.inside[op.index()] == 0;
         });
}

bool runs_before(const Graph& graph, const Region& region, OpId op) {
  return std::ranges::any_of(graph.outputs(op),
                             [&](TensorId t) { return is_made_before(graph, region, t); });
}

bool runs_in_parts(const Graph& graph, const Region& region, OpId op) {
  return !std::ranges::all_of(graph.outputs(op),
                              [&](TensorId t) { return is_made_before(graph, region, t); });
}

bool is_made_in_parts(const Graph& graph, const Region& region, TensorId tensor) {
  const OpId maker = graph.producer(tensor);
  return maker.valid() && region.inside[maker.index()] != 0 &&
         !is_made_before(graph, region, tensor);
}

PartOfOp part_of_op(const Graph& graph, const Region& region, OpId id, std::int64_t part,
                    const Labels& labels) {
  const Op& op = graph.op(id);
  const dimensions::Carry& carry = region.carry(id);
  const dimensions::Slices slices = region.slices(carry.longest, part);
  const auto in_part = [&](const Operand& whole, const View& view) {
    if (view.state != State::split) return whole;
    return dimensions::in_part(whole, *view.position,
                               region.reach.tensors[whole.tensor.index()].axis, slices);
  };
  PartOfOp made{
      .operands = {}, .results = {}, .arguments = dimensions::part_arguments(op, carry, slices)};
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const Operand& whole = op.operands[i];
    const View& view = carry.operands[i];
    Operand& seen = made.operands.emplace_back(whole);
    if (is_made_in_parts(graph, region, whole.tensor)) {
      seen = in_part(whole, view);
    } else if (view.state == State::split) {
      const auto slice = dimensions::in_whole(whole, *view.position, slices);
      if (!slice)
        refuse_transform("split: " + labels.op(id) + " reads slices of " +
                         labels.tensor(whole.tensor) +
                         " which are no strided part of it, so that a part would have to copy "
                         "them");
      seen = *slice;
    } else if (view.position) {  // all slices are the same: as many of them as the part has
      std::int64_t& extent = seen.shape[view.position->dim];
      const std::int64_t of = view.position->extent;
      extent = extent / of * dimensions::clipped(slices, of).count;
    }
  }
  for (std::size_t i = 0; i < op.results.size(); ++i)
    if (!is_made_before(graph, region, op.results[i].tensor))
      made.results.push_back(in_part(op.results[i], carry.results[i]));
  return made;
}

}  // namespace lowtide
