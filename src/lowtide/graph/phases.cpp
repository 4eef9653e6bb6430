// Problem: pair backward ops with the forward op that they undo, in graphs that do not say it.
// Idea: walk through the backward ops in the given order. An op may belong to a layer no later than
// those of the backward ops that it depends on; among the forward ops that make or read what it
// reads, take the best by what both read. Ops that depend on no other backward op and read nothing
// of the forward (transposed parameters, constants) go with those that need them.
// Source: ours; HiRemate (ICML 2025) has the pairs from the tool that made its graphs.
// Invariant: layers' positions never rise along a dependency between backward ops.
// Loses: where two forward ops read the same and have one origin, such as the projections of one
// input to queries, keys and values: the backward ops of all go to the last. Layers are then larger
// than need be, never wrong.
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

// More readers than any layer's inputs have: a mask that all layers share tells them not apart.
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
  // Forward ops alone have layers by now.
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

  // A barrier, or a forward op that no other reads and on which all of the backward depends, stands
  // alone.
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

  // Invalid if nothing says it.
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

  // The last layer of the op's origin that may be its own; `latest` if there is none.
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
  std::vector<std::uint8_t> behind_;  // ops behind the backward
  std::vector<std::size_t> votes_;
  std::vector<OpId> candidates_;
  std::unordered_map<std::string_view, std::vector<OpId>> of_origin_;  // layers, in the given order
};

}  // namespace

Phases phases_of(const Graph& graph) { return Pairing(graph).run(); }

}  // namespace lowtide
