// Minimum cuts by push-relabel, for networks whose capacities only grow between two runs.
// Private to the solver.
//
// Source and sink are not nodes: a node has a supply (the capacity from the source) and a drain
// (the capacity to the sink). Capacities are integers and their sum must stay below 2^62.
#pragma once

#include <cstdint>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/solve/bounds/common/index.h"

namespace lowtide::solve::bounds {

class MaxFlow {
 public:
  // Larger than any sum of capacities.
  static constexpr std::int64_t kUnbounded = std::int64_t{1} << 62;

  // Add nodes and arcs first, then call build(). After that only capacities change.
  std::int32_t add_node() { return nodes_++; }
  std::int32_t add_arc(std::int32_t from, std::int32_t to);
  void build();
  std::int32_t node_count() const { return nodes_; }

  // Sets the flow and all supplies, drains and capacities to 0.
  void clear();
  void grow_supply(std::int32_t node, std::int64_t by) { excess_[index(node)] += by; }
  void grow_drain(std::int32_t node, std::int64_t by) { drain_[index(node)] += by; }
  void grow_capacity(std::int32_t arc, std::int64_t by) {
    arcs_[index(place_[index(arc)])].residual += by;
  }

  // Continues from the flow of the last run. Returns false if stopped; the flow is then not
  // maximum.
  bool run(Limits& limits);
  // The value of a maximum flow and a minimum cut.
  std::int64_t value() const { return value_; }
  // The rest of a node's drain, and the excess that reached the node and could not leave it.
  std::int64_t drain_left(std::int32_t node) const { return drain_[index(node)]; }
  std::int64_t excess(std::int32_t node) const { return excess_[index(node)]; }
  // The minimum cut with most nodes on the source's side.
  bool on_source_side(std::int32_t node) const { return height_[index(node)] == out_of_reach(); }

  // The state from which a run continues.
  struct State {
    std::vector<std::int64_t> residual, excess, drain;
    std::int64_t value = 0;
  };
  void save(State& state) const;
  void restore(const State& state);

 private:
  struct Arc {
    std::int64_t residual;
    std::int32_t to, reverse;
  };
  struct Ends {
    std::int32_t from, to;
  };

  std::int32_t out_of_reach() const { return nodes_ + 1; }
  void relabel_all();
  void discharge(std::int32_t node);
  void relabel(std::int32_t node);
  void push(std::int32_t node, Arc& arc);
  void activate(std::int32_t node);
  void enter(std::int32_t node, std::int32_t height);
  void leave(std::int32_t node);
  void lift_above(std::int32_t height);
  bool charge(Limits& limits);

  std::int32_t nodes_ = 0;
  std::vector<Ends> ends_;
  std::vector<Arc> arcs_;            // by node, see first_
  std::vector<std::int32_t> first_;  // first arc of each node, and one past the last
  std::vector<std::int32_t> place_;  // index of each arc in arcs_
  std::vector<std::int64_t> excess_, drain_;
  std::vector<std::int32_t> height_, current_;
  std::vector<std::int32_t> active_, next_active_;  // lists of active nodes, by height
  // Lists of all nodes, by height.
  std::vector<std::int32_t> level_, next_in_level_, previous_in_level_;
  std::vector<std::int32_t> queue_;
  std::int32_t highest_active_ = -1, highest_level_ = 0;
  std::int64_t value_ = 0;
  std::int64_t scanned_ = 0;    // arcs since the last relabel_all
  std::int64_t uncharged_ = 0;  // arcs not yet counted as work
};

}  // namespace lowtide::solve::bounds
