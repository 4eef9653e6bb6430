// Problem: cut the same network for a sequence of increasing prices.
//
// Idea: push-relabel, first phase only (a maximum preflow gives the minimum cut), active nodes by
// highest label, with gap and global relabelling. When capacities grow, the preflow of the last
// run stays valid, so a run continues from it: labels are recomputed from the residual network,
// and only excess that can still reach the sink moves.
//
// Source: A. Goldberg and R. Tarjan, A new approach to the maximum-flow problem, JACM 1988; B.
// Cherkassky and A. Goldberg, On implementing the push-relabel method, Algorithmica 1997.
//
// Invariant: heights are at most the distance to the sink (1 for a node with drain left); a node
// of height node_count() or more cannot reach it.
//
// Loses: on long thin networks, in which every unit of flow crosses many nodes.
#include "lowtide/solve/bounds/common/max_flow.h"

#include <algorithm>

namespace lowtide::solve::bounds {

namespace {
constexpr std::int32_t kNone = -1;
constexpr std::int64_t kArcsPerUnit = 256;  // of work
}  // namespace

std::int32_t MaxFlow::add_arc(std::int32_t from, std::int32_t to) {
  ends_.push_back({from, to});
  return static_cast<std::int32_t>(ends_.size()) - 1;
}

void MaxFlow::build() {
  const std::size_t nodes = index(nodes_);
  first_.assign(nodes + 1, 0);
  for (const Ends& ends : ends_) {
    ++first_[index(ends.from) + 1];
    ++first_[index(ends.to) + 1];
  }
  for (std::size_t node = 0; node < nodes; ++node) first_[node + 1] += first_[node];
  std::vector<std::int32_t> fill(first_.begin(), first_.end() - 1);
  arcs_.resize(2 * ends_.size());
  place_.resize(ends_.size());
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const auto [from, to] = ends_[i];
    const std::int32_t forward = fill[index(from)]++, backward = fill[index(to)]++;
    arcs_[index(forward)] = {0, to, backward};
    arcs_[index(backward)] = {0, from, forward};
    place_[i] = forward;
  }
  ends_ = {};
  for (auto* list : {&height_, &current_, &next_active_, &next_in_level_, &previous_in_level_})
    list->assign(nodes, 0);
  active_.assign(nodes + 2, kNone);
  level_.assign(nodes + 2, kNone);
  clear();
}

void MaxFlow::clear() {
  for (Arc& arc : arcs_) arc.residual = 0;
  excess_.assign(index(nodes_), 0);
  drain_.assign(index(nodes_), 0);
  value_ = 0;
}

void MaxFlow::save(State& state) const {
  state.residual.resize(arcs_.size());
  for (std::size_t i = 0; i < arcs_.size(); ++i) state.residual[i] = arcs_[i].residual;
  state.excess = excess_;
  state.drain = drain_;
  state.value = value_;
}

void MaxFlow::restore(const State& state) {
  for (std::size_t i = 0; i < arcs_.size(); ++i) arcs_[i].residual = state.residual[i];
  excess_ = state.excess;
  drain_ = state.drain;
  value_ = state.value;
}

bool MaxFlow::charge(Limits& limits) {
  const std::int64_t units = uncharged_ / kArcsPerUnit;
  uncharged_ -= units * kArcsPerUnit;
  return limits.spend(units);
}

bool MaxFlow::run(Limits& limits) {
  relabel_all();
  const std::int64_t patience =
      2 * static_cast<std::int64_t>(arcs_.size()) + std::int64_t{8} * nodes_ + 64;
  while (highest_active_ >= 0) {
    const std::int32_t node = active_[index(highest_active_)];
    if (node == kNone) {
      --highest_active_;
      continue;
    }
    active_[index(highest_active_)] = next_active_[index(node)];
    discharge(node);
    if (uncharged_ >= 64 * kArcsPerUnit && charge(limits)) return false;
    if (scanned_ > patience) relabel_all();
  }
  // Heights are only bounds on the distance; a cut needs the exact set of nodes that reach the
  // sink.
  relabel_all();
  return !charge(limits);
}

// Breadth first from the sink along residual arcs, backwards.
void MaxFlow::relabel_all() {
  std::fill(height_.begin(), height_.end(), out_of_reach());
  std::fill(active_.begin(), active_.end(), kNone);
  std::fill(level_.begin(), level_.end(), kNone);
  queue_.clear();
  highest_active_ = -1;
  highest_level_ = 0;
  const auto reach = [&](std::int32_t node, std::int32_t height) {
    height_[index(node)] = height;
    queue_.push_back(node);
    enter(node, height);
    current_[index(node)] = first_[index(node)];
    if (excess_[index(node)] > 0) activate(node);
  };
  for (std::int32_t node = 0; node < nodes_; ++node)
    if (drain_[index(node)] > 0) reach(node, 1);
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const std::int32_t node = queue_[i];
    for (std::int32_t at = first_[index(node)]; at < first_[index(node) + 1]; ++at) {
      const Arc& arc = arcs_[index(at)];
      if (height_[index(arc.to)] == out_of_reach() && arcs_[index(arc.reverse)].residual > 0)
        reach(arc.to, height_[index(node)] + 1);
    }
  }
  uncharged_ += static_cast<std::int64_t>(arcs_.size()) + std::int64_t{4} * nodes_;
  scanned_ = 0;
}

void MaxFlow::enter(std::int32_t node, std::int32_t height) {
  const std::int32_t head = level_[index(height)];
  next_in_level_[index(node)] = head;
  previous_in_level_[index(node)] = kNone;
  if (head != kNone) previous_in_level_[index(head)] = node;
  level_[index(height)] = node;
  highest_level_ = std::max(highest_level_, height);
}

void MaxFlow::leave(std::int32_t node) {
  const std::int32_t next = next_in_level_[index(node)], before = previous_in_level_[index(node)];
  if (next != kNone) previous_in_level_[index(next)] = before;
  if (before != kNone)
    next_in_level_[index(before)] = next;
  else
    level_[index(height_[index(node)])] = next;
}

void MaxFlow::activate(std::int32_t node) {
  const std::int32_t height = height_[index(node)];
  next_active_[index(node)] = active_[index(height)];
  active_[index(height)] = node;
  highest_active_ = std::max(highest_active_, height);
}

void MaxFlow::push(std::int32_t node, Arc& arc) {
  const std::int64_t moved = std::min(excess_[index(node)], arc.residual);
  arc.residual -= moved;
  arcs_[index(arc.reverse)].residual += moved;
  excess_[index(node)] -= moved;
  if (excess_[index(arc.to)] == 0) activate(arc.to);
  excess_[index(arc.to)] += moved;
}

void MaxFlow::discharge(std::int32_t node) {
  const std::size_t v = index(node);
  while (excess_[v] > 0) {
    if (height_[v] == 1 && drain_[v] > 0) {
      const std::int64_t moved = std::min(excess_[v], drain_[v]);
      excess_[v] -= moved;
      drain_[v] -= moved;
      value_ += moved;
      continue;
    }
    const std::int32_t start = current_[v], end = first_[v + 1];
    std::int32_t at = start;
    while (at < end) {
      Arc& arc = arcs_[index(at)];
      if (arc.residual > 0 && height_[index(arc.to)] == height_[v] - 1) {
        push(node, arc);
        if (excess_[v] == 0) break;
      } else {
        ++at;
      }
    }
    current_[v] = at;
    uncharged_ += at - start + 1;
    scanned_ += at - start + 1;
    if (at < end) return;
    relabel(node);
    // Return to the caller, who counts the work: a node with many arcs may rise often.
    if (height_[v] < out_of_reach()) activate(node);
    return;
  }
}

void MaxFlow::relabel(std::int32_t node) {
  const std::size_t v = index(node);
  const std::int32_t old = height_[v];
  leave(node);
  if (level_[index(old)] == kNone) {
    lift_above(old);
    height_[v] = out_of_reach();
    return;
  }
  std::int32_t lowest = drain_[v] > 0 ? 0 : nodes_;
  for (std::int32_t at = first_[v]; at < first_[v + 1]; ++at)
    if (arcs_[index(at)].residual > 0)
      lowest = std::min(lowest, height_[index(arcs_[index(at)].to)]);
  const std::int64_t links = first_[v + 1] - first_[v];
  uncharged_ += links + 4;
  scanned_ += links + 12;
  height_[v] = std::min(lowest + 1, out_of_reach());
  current_[v] = first_[v];
  if (height_[v] < out_of_reach()) enter(node, height_[v]);
}

// No node is left at that height, so those above cannot reach the sink.
void MaxFlow::lift_above(std::int32_t height) {
  for (std::int32_t above = height + 1; above <= highest_level_; ++above) {
    for (std::int32_t node = level_[index(above)]; node != kNone;
         node = next_in_level_[index(node)])
      height_[index(node)] = out_of_reach();
    level_[index(above)] = kNone;
    active_[index(above)] = kNone;
  }
  highest_level_ = height;
}

}  // namespace lowtide::solve::bounds
