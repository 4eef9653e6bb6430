// Problem: find the forward op of each backward op, in graphs that do not record it.
//
// Idea: process the backward ops in the given order. The layer of an op is at most the earliest
// layer of the backward ops on which it depends. Among the forward ops that make or read the
// tensors that the op reads, choose the one with most common tensors. Ops that depend on no other
// backward op and read nothing of the forward (transposed parameters, constants) belong to the
// layers of their readers.
//
// Source: no publication; HiRemate (ICML 2025) gets the pairs from the tool that made its graphs.
//
// Invariant: the positions of layers never rise along a dependency between backward ops.
//
// Loses: if two forward ops read the same tensors and have one origin, such as the projections of
// one input to queries, keys and values. The backward ops of all then belong to the last of them.
// Layers are then larger than necessary, but never wrong.
#include "lowtide/graph/phases.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lowtide {

namespace {

// Tensors with more readers are ignored: a mask that all layers share does not distinguish layers.
constexpr std::size_t kMostReaders = 64;

class Pairing {
 public:
  explicit Pairing(const Graph& graph) : graph_(graph), votes_(graph.op_count(), 0) {
    const std::size_t count = graph.op_count();
    phases_.of.assign(count, Phase::forward);
    phases_.layer.assign(count, OpId());
    behind_.assign(count, 0);
  }

  Phases run() {
    split();
    if (!phases_.has_backward) {
      for (const OpId op : graph_.order()) {
        phases_.of[op] = Phase::forward;
        phases_.layer[op] = op;
      }
      return std::move(phases_);
    }
    find_turns();
    for (const OpId op : graph_.order())
      if (is_backward(op) && !behind(op)) phases_.layer[op] = layer_by_reads(op);
    const auto order = graph_.order();
    for (std::size_t i = order.size(); i-- > 0;)
      if (is_backward(order[i]) && !behind(order[i]) && !phases_.layer[order[i]].valid())
        phases_.layer[order[i]] = latest_layer(graph_.successors(order[i]));
    return std::move(phases_);
  }

 private:
  bool is_backward(OpId op) const { return phases_.of[op] == Phase::backward; }
  bool behind(OpId op) const { return behind_[op.index()] != 0; }
  // At this point only forward ops have layers.
  bool is_layer(OpId op) const { return op.valid() && !is_backward(op) && phases_.layer[op] == op; }

  void split() {
    std::size_t backward = 0;
    for (const OpId op : graph_.order()) {
      const std::string& said = graph_.op(op).phase;
      bool late = said == "backward", last = false;
      for (const OpId before : graph_.predecessors(op)) {
        late = late || is_backward(before) || graph_.is_barrier(before);
        last = last || behind(before);
      }
      if (!late) continue;
      ++backward;
      phases_.of[op] = Phase::backward;
      const bool other = !said.empty() && said != "backward" && said != "forward";
      behind_[op.index()] = last || other ? 1 : 0;
    }
    phases_.has_backward = backward > 0 && backward < graph_.op_count();
  }

  // A barrier has no layer. Nor has a forward op without forward readers on which the whole
  // backward depends.
  void find_turns() {
    std::vector<std::size_t> starts(graph_.op_count(), 0);
    std::size_t count = 0;
    for (const OpId op : graph_.order()) {
      if (!is_backward(op)) continue;
      const auto before = graph_.predecessors(op);
      if (std::ranges::any_of(before, [&](OpId other) { return is_backward(other); })) continue;
      ++count;
      for (const OpId other : before) ++starts[other.index()];
    }
    for (const OpId op : graph_.order()) {
      if (is_backward(op)) continue;
      const bool last =
          std::ranges::all_of(graph_.successors(op), [&](OpId next) { return is_backward(next); });
      const bool turn = last && !graph_.successors(op).empty() &&
                        (graph_.is_barrier(op) || starts[op.index()] == count);
      if (turn) continue;
      phases_.layer[op] = op;
      if (!graph_.op(op).origin.empty()) of_origin_[graph_.op(op).origin].push_back(op);
    }
  }

  // Invalid if nothing determines the layer.
  OpId layer_by_reads(OpId op) {
    OpId earliest;
    for (const OpId before : graph_.predecessors(op)) {
      if (!is_backward(before)) continue;
      const OpId layer = phases_.layer[before];
      if (layer.valid() && (!earliest.valid() || position(layer) < position(earliest)))
        earliest = layer;
    }
    candidates_.clear();
    for (const TensorId tensor : graph_.inputs(op)) vote(tensor, earliest);
    const auto rank = [&](OpId layer) {
      return std::tuple(votes_[layer.index()], same_origin(layer, op), position(layer));
    };
    const auto best = std::ranges::max_element(candidates_, {}, rank);
    const OpId found = best != candidates_.end() ? *best : layer_by_origin(op, earliest);
    for (const OpId layer : candidates_) votes_[layer.index()] = 0;
    return found;
  }

  // The latest layer of the op's origin that is allowed for the op; `latest` if there is none.
  OpId layer_by_origin(OpId op, OpId latest) const {
    const auto found = of_origin_.find(graph_.op(op).origin);
    if (!latest.valid() || found == of_origin_.end()) return latest;
    const auto& layers = found->second;
    const auto end = std::ranges::upper_bound(layers, position(latest), {},
                                              [&](OpId layer) { return position(layer); });
    return end == layers.begin() ? latest : *(end - 1);
  }

  void vote(TensorId tensor, OpId latest) {
    const OpId maker = graph_.producer(tensor);
    if (maker.valid() && !is_layer(maker)) return;
    const auto add = [&](OpId op) {
      if (!is_layer(op) || (latest.valid() && position(op) > position(latest))) return;
      if (votes_[op.index()]++ == 0) candidates_.push_back(op);
    };
    add(maker);
    const auto readers = graph_.consumers(tensor);
    if (readers.size() > kMostReaders) return;
    for (const OpId reader : readers) add(reader);
  }

  bool same_origin(OpId a, OpId b) const {
    const std::string& origin = graph_.op(a).origin;
    return !origin.empty() && origin == graph_.op(b).origin;
  }

  OpId latest_layer(std::span<const OpId> ops) const {
    OpId latest;
    for (const OpId op : ops) {
      const OpId layer = phases_.layer[op];
      if (layer.valid() && (!latest.valid() || position(layer) > position(latest))) latest = layer;
    }
    return latest;
  }

  std::size_t position(OpId op) const { return graph_.position(op); }

  const Graph& graph_;
  Phases phases_;
  std::vector<std::uint8_t> behind_;  // ops after the backward
  std::vector<std::size_t> votes_;
  std::vector<OpId> candidates_;
  std::unordered_map<std::string_view, std::vector<OpId>> of_origin_;  // layers, in the given order
};

}  // namespace

Phases phases_of(const Graph& graph) { return Pairing(graph).run(); }

}  // namespace lowtide
