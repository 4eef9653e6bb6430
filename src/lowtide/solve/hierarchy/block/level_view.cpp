// A backward half reads the tensors that its forward half saved for it, and those tensors of the
// child's border that its schedule needs. Both follow from the schedules.
#include "lowtide/solve/hierarchy/block/level_view.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lowtide/solve/sequence/in_place.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::hierarchy {

namespace {

using DataNumbers = std::vector<std::size_t>;

bool within(const DataNumbers& inner, const DataNumbers& outer) {
  return std::includes(outer.begin(), outer.end(), inner.begin(), inner.end());
}

// Removes moments that another moment dominates.
std::vector<NodeRun::Moment> decisive(std::vector<NodeRun::Moment> moments) {
  std::vector<NodeRun::Moment> kept;
  for (NodeRun::Moment& moment : moments) {
    const auto weaker = [&](const NodeRun::Moment& than, const NodeRun::Moment& one) {
      return one.bytes <= than.bytes && within(than.ended, one.ended) &&
             within(than.unneeded, one.unneeded);
    };
    if (std::ranges::any_of(kept, [&](const auto& other) { return weaker(other, moment); }))
      continue;
    std::erase_if(kept, [&](const auto& other) { return weaker(moment, other); });
    kept.push_back(std::move(moment));
  }
  return kept;
}

// Of the runs that pass: those that none dominates in time and peak.
void keep_best(std::vector<NodeRun>& runs) {
  std::ranges::stable_sort(runs, {},
                           [](const NodeRun& run) { return std::pair(run.time, run.peak()); });
  std::vector<NodeRun> kept;
  for (NodeRun& run : runs)
    if (kept.empty() || run.peak() < kept.back().peak()) kept.push_back(std::move(run));
  runs = std::move(kept);
}

}  // namespace

std::vector<Bytes> bytes_along(const Graph& graph, std::span<const OpId> ops,
                               std::span<const TensorId> before,
                               const std::function<bool(TensorId)>& counted,
                               const std::function<bool(TensorId)>& kept) {
  // Backwards: the tensors needed after each op.
  std::unordered_map<TensorId, bool> needed;
  const auto is_needed = [&](TensorId id) -> bool& {
    const auto [place, is_new] = needed.try_emplace(id, false);
    if (is_new) place->second = kept(id);
    return place->second;
  };
  std::vector<std::vector<TensorId>> ends(ops.size()), unread(ops.size());
  for (std::size_t i = ops.size(); i > 0; --i) {
    for (const TensorId made : graph.outputs(ops[i - 1]))
      if (!std::exchange(is_needed(made), false)) unread[i - 1].push_back(made);
    for (const TensorId read : graph.inputs(ops[i - 1]))
      if (!std::exchange(is_needed(read), true)) ends[i - 1].push_back(read);
  }
  std::unordered_set<TensorId> live;
  Bytes sum;
  for (const TensorId id : before)
    if (is_needed(id) && live.insert(id).second) sum += graph.bytes(id);
  std::vector<Bytes> result;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    for (const TensorId made : graph.outputs(ops[i]))
      if (counted(made) && live.insert(made).second) sum += graph.bytes(made);
    const Bytes saves = overwritten_bytes(graph, ops[i], [&](TensorId read) {
      return live.contains(read) && std::ranges::find(ends[i], read) != ends[i].end();
    });
    result.push_back(sum + graph.workspace(ops[i]) - saves);
    for (const auto* gone : {&ends[i], &unread[i]})
      for (const TensorId id : *gone)
        if (live.erase(id) > 0) sum -= graph.bytes(id);
  }
  return result;
}

Bytes NodeRun::peak() const {
  Bytes most = moments.front().bytes;
  for (const Moment& moment : moments) most = std::max(most, moment.bytes);
  return most;
}

LevelView::LevelView(const BlockProblem& block, const Level& level)
    : block_(block),
      graph_(block.graph()),
      level_(level),
      runs_(level.nodes.size()),
      makes_(level.nodes.size()),
      recomputable_(level.nodes.size(), 0),
      partner_(level.nodes.size(), kNoNode) {
  std::vector<std::array<std::size_t, 2>> halves(level.children.size(), {kNoNode, kNoNode});
  const auto deadlines = rerun_deadlines(graph_, graph_.order());
  for (std::size_t k = 0; k < node_count(); ++k) {
    const LevelNode& node = level.nodes[k];
    if (node.kind == LevelNode::Kind::rest) rest_ = k;
    if (!node.op.valid()) halves[node.child][is_forward(k) ? 0 : 1] = k;
  }
  for (const auto& [forward, backward] : halves) {
    if (forward == kNoNode || backward == kNoNode) continue;
    partner_[forward] = backward;
    partner_[backward] = forward;
  }
  find_data();
  for (std::size_t k = 0; k < node_count(); ++k) {
    const LevelNode& node = level.nodes[k];
    const auto may = [&](OpId op) {
      return graph_.recomputable(op) && deadlines[op.index()] == graph_.op_count();
    };
    if (node.op.valid()) {
      recomputable_[k] = may(node.op) ? 1 : 0;
    } else {
      const auto& ops = level.children[node.child].ops;
      recomputable_[k] = std::ranges::all_of(
          ops, [&](OpId op) { return block_.is_forward(op) != is_forward(k) || may(op); });
    }
    add_runs(k);
  }
}

bool LevelView::is_forward(std::size_t node) const {
  const LevelNode& it = level_.nodes[node];
  if (it.kind == LevelNode::Kind::op) return block_.is_forward(it.op);
  return it.kind == LevelNode::Kind::forward;
}

std::vector<OpId> LevelView::ops_of(std::size_t node, std::size_t option) const {
  const LevelStep step[] = {{node, option}};
  return level_.sequence(step);
}

void LevelView::find_data() {
  // Finds the node of each op, and the tensors between the halves of children.
  std::vector<std::size_t> node_of(graph_.op_count(), kNoNode), group(graph_.op_count(), kNoNode);
  for (std::size_t k = 0; k < node_count(); ++k) {
    const LevelNode& node = level_.nodes[k];
    if (node.op.valid()) {
      node_of[node.op.index()] = group[node.op.index()] = k;
      continue;
    }
    for (const OpId op : level_.children[node.child].ops)
      if (block_.is_forward(op) == is_forward(k)) {
        node_of[op.index()] = k;
        group[op.index()] = std::min(k, partner_[k]);
      }
  }
  data_of_.assign(graph_.tensor_count(), kNoNode);
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x) {
    const TensorId id(x);
    const OpId maker = graph_.producer(id);
    if (!maker.valid() || maker == block_.rest()) continue;
    const auto readers = graph_.consumers(id);
    const bool crosses = std::ranges::any_of(
        readers, [&](OpId reader) { return group[reader.index()] != group[maker.index()]; });
    if (!crosses && !graph_.is_output(id)) continue;
    data_of_[x] = data_.size();
    makes_[node_of[maker.index()]].push_back(data_.size());
    data_.push_back({.id = id,
                     .bytes = graph_.bytes(id),
                     .maker = node_of[maker.index()],
                     .kept = graph_.is_output(id),
                     .given = std::ranges::find(readers, block_.rest()) != readers.end()});
  }
}

std::vector<TensorId> LevelView::saved_by(std::size_t forward, std::size_t backward,
                                          std::size_t option) const {
  if (forward == kNoNode || backward == kNoNode) return {};
  std::unordered_set<TensorId> made, seen;
  for (const OpId op : ops_of(forward, option))
    for (const TensorId id : graph_.outputs(op))
      if (data_of_[id.index()] == kNoNode) made.insert(id);
  std::vector<TensorId> saved;
  for (const OpId op : ops_of(backward, option)) {
    for (const TensorId id : graph_.inputs(op))
      if (made.contains(id) && seen.insert(id).second) saved.push_back(id);
    for (const TensorId id : graph_.outputs(op)) seen.insert(id);
  }
  return saved;
}

NodeRun LevelView::run_of(std::size_t node, std::size_t option,
                          std::span<const TensorId> saved) const {
  NodeRun run;
  run.option = option;
  const std::vector<OpId> ops = ops_of(node, option);
  const std::unordered_set<TensorId> between(saved.begin(), saved.end());
  for (const TensorId id : between) run.saved += graph_.bytes(id);
  run.passes = run.saved == Bytes(0);
  const auto own = [&](TensorId id) {
    const std::size_t d = data_of_[id.index()];
    return d != kNoNode && data_[d].maker == node;
  };
  const bool forward = is_forward(node);
  const auto along = bytes_along(
      graph_, ops, forward ? std::span<const TensorId>() : saved,
      [&](TensorId id) { return !own(id); },
      [&](TensorId id) { return forward && between.contains(id); });
  // For each data: its producer and its last reader.
  std::map<std::size_t, std::size_t> read, made;
  std::unordered_set<TensorId> inside;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    run.time += graph_.time(ops[i]);
    for (const TensorId id : graph_.inputs(ops[i])) {
      const std::size_t d = data_of_[id.index()];
      if (d != kNoNode && (own(id) || !inside.contains(id))) (own(id) ? made : read)[d] = i;
    }
    for (const TensorId id : graph_.outputs(ops[i])) {
      if (own(id)) made[data_of_[id.index()]] = i;
      inside.insert(id);
    }
  }
  for (const auto& [d, last] : read) run.reads.push_back(d);
  Bytes outputs;
  inside.clear();
  std::vector<NodeRun::Moment> moments;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    for (const TensorId id : graph_.outputs(ops[i]))
      if (own(id) && inside.insert(id).second) outputs += graph_.bytes(id);
    NodeRun::Moment now;
    now.bytes = along[i] + outputs - (forward ? Bytes(0) : run.saved);
    for (const auto& [d, last] : read)
      if (last < i) now.ended.push_back(d);
    for (const auto& [d, last] : made)
      if (last < i) now.unneeded.push_back(d);
    if (!moments.empty() && moments.back().ended == now.ended &&
        moments.back().unneeded == now.unneeded)
      moments.back().bytes = std::max(moments.back().bytes, now.bytes);
    else
      moments.push_back(std::move(now));
  }
  run.moments = decisive(std::move(moments));
  if (run.moments.empty()) run.moments.emplace_back();
  return run;
}

void LevelView::add_runs(std::size_t node) {
  const LevelNode& it = level_.nodes[node];
  std::vector<NodeRun>& runs = runs_[node];
  if (it.op.valid()) {
    runs.push_back(run_of(node, 0, {}));
    return;
  }
  const Child& child = level_.children[it.child];
  std::vector<std::size_t> options = child.chosen;
  if (options.empty())
    for (std::size_t o = 0; o < child.options.size(); ++o) options.push_back(o);
  const bool forward = is_forward(node);
  std::vector<NodeRun> saving;
  for (const std::size_t option : options) {
    const auto saved =
        forward ? saved_by(node, partner_[node], option) : saved_by(partner_[node], node, option);
    NodeRun run = run_of(node, option, saved);
    if (forward) {
      runs.push_back(run_of(node, option, {}));
      if (!run.passes) saving.push_back(std::move(run));
    } else {
      runs.push_back(std::move(run));
    }
  }
  if (!forward) return;
  keep_best(runs);
  for (NodeRun& run : saving) runs.push_back(std::move(run));
}

std::vector<LevelView::Chosen> LevelView::runs_of(std::span<const LevelStep> steps) const {
  std::vector<Chosen> chosen(steps.size());
  std::vector<std::size_t> used(level_.children.size(), kNoNode);  // by the next backward half
  for (std::size_t i = steps.size(); i > 0; --i) {
    const LevelStep& step = steps[i - 1];
    const LevelNode& node = level_.nodes[step.node];
    const auto& runs = runs_[step.node];
    chosen[i - 1] = {step.node, 0};
    if (node.op.valid()) continue;
    std::size_t option = step.option;
    if (!is_forward(step.node)) used[node.child] = option;
    if (is_forward(step.node)) option = std::exchange(used[node.child], kNoNode);
    const auto found = std::ranges::find_if(runs, [&](const NodeRun& run) {
      return run.option == option && (!is_forward(step.node) || !run.passes);
    });
    if (found != runs.end())
      chosen[i - 1].run = static_cast<std::size_t>(found - runs.begin());
    else if (!is_forward(step.node))
      chosen[i - 1].run = kNoNode;
  }
  return chosen;
}

std::vector<LevelStep> LevelView::steps_of(std::span<const OpId> sequence) const {
  std::unordered_map<OpId, std::vector<LevelStep>> starts;
  for (std::size_t k = 0; k < node_count(); ++k) {
    const LevelNode& node = level_.nodes[k];
    const std::size_t count = node.op.valid() ? 1 : level_.children[node.child].options.size();
    for (std::size_t option = 0; option < count; ++option)
      if (const auto ops = ops_of(k, option); !ops.empty())
        starts[ops.front()].push_back({k, option});
  }
  std::vector<LevelStep> steps;
  std::vector<std::size_t> latest(level_.children.size(), kNoNode);  // last forward step
  for (std::size_t at = 0; at < sequence.size();) {
    std::size_t longest = 0;
    LevelStep best;
    for (const LevelStep& step : starts[sequence[at]]) {
      const auto ops = ops_of(step.node, step.option);
      if (ops.size() <= longest || ops.size() > sequence.size() - at) continue;
      if (!std::equal(ops.begin(), ops.end(), sequence.begin() + static_cast<std::ptrdiff_t>(at)))
        continue;
      longest = ops.size();
      best = step;
    }
    if (longest == 0) return {};
    at += longest;
    const LevelNode& node = level_.nodes[best.node];
    if (node.kind == LevelNode::Kind::forward) latest[node.child] = steps.size();
    if (node.kind == LevelNode::Kind::backward && latest[node.child] != kNoNode) {
      // Several options may have the same forward half.
      LevelStep& forward = steps[latest[node.child]];
      const auto& options = level_.children[node.child].options;
      if (options[forward.option].forward == options[best.option].forward)
        forward.option = best.option;
    }
    steps.push_back(best);
  }
  return steps;
}

}  // namespace lowtide::solve::hierarchy
