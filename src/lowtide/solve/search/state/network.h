// The graph as the search reads it: small integers in flat arrays, so that a move touches few cache
// lines.
//
// A node is an op, which keeps its number, or one of two that are added and never move. The source,
// at the front, makes the inputs that a plan may free; the sink, at the end, reads the graph's
// outputs. Inputs that stay and the resident bytes are taken off the budget.
//
// A value is a tensor that a plan can make or free; the others are left out. They are numbered
// anew, those of one node in a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lowtide/base/csr.h"
#include "lowtide/base/id_vector.h"
#include "lowtide/base/ids.h"
#include "lowtide/plan/problem.h"

namespace lowtide::solve::search {

using Node = Id<struct NodeTag>;
using Value = Id<struct ValueTag>;

// What all ops may take together, each once: what recomputation adds stays exact in a double too.
inline constexpr double kMostTicks = 0x1p50;
// Why the graph's numbers do not fit into doubles; empty if they do.
std::string too_large(const Graph& graph);

// Of a graph that is not too large.
struct Network {
  explicit Network(const Problem& problem);

  std::size_t op_count() const { return ops; }
  std::size_t node_count() const { return ops + 2; }
  std::size_t value_count() const { return bytes.size(); }
  Node source() const { return Node(ops); }
  Node sink() const { return Node(ops + 1); }
  bool is_op(Node node) const { return node.index() < ops; }
  static Node node_of(OpId op) { return Node(op.index()); }
  static OpId op_of(Node node) { return OpId(node.index()); }  // neither source nor sink

  std::span<const Value> inputs(Node node) const { return reads[node]; }
  std::span<const Node> users(Value value) const { return readers[value]; }
  // The k-th output of the node, from 0 to output_count - 1.
  int output_count(Node node) const {
    return static_cast<int>(outputs_from[Node(node.index() + 1)].index() -
                            outputs_from[node].index());
  }
  Value output(Node node, int k) const {
    return Value(outputs_from[node].index() + static_cast<std::size_t>(k));
  }
  int output_index(Value value) const {  // its k
    return static_cast<int>(value.index() - outputs_from[producer[value]].index());
  }
  double time_of(Node node) const { return time[node]; }
  double bytes_of(Value value) const { return bytes[value]; }
  Node maker(Value value) const { return producer[value]; }
  // Of the outputs and the workspace: live during the op and not before it.
  double own_bytes(Node node) const { return own[node]; }
  bool may_repeat(Node node) const { return repeatable[node] != 0; }
  // Values that a run of the node may write in place of values it reads, grouped by the former.
  struct Overwrite {
    Value input, output;
  };
  std::span<const Overwrite> overwrites(Node node) const { return overwritable[node]; }
  bool has_overwrites() const { return overwritable.size() > 0; }
  // Ops that end the time in which this one may run again: those that mutate what it reads, or what
  // it made if the graph keeps that.
  std::span<const Node> ends(Node node) const { return enders[node]; }
  // The other way round: the ops whose every run must come before this one.
  std::span<const Node> ended(Node node) const { return ended_by[node]; }

  const Graph& graph;
  std::size_t ops;
  double budget;      // of what plans can choose, in bytes
  double fixed;       // bytes that are always there: resident, and inputs that stay
  double total_time;  // of each op once
  IdVector<Node, double> time, own, workspace;
  IdVector<Node, std::uint8_t> repeatable;
  IdVector<Node, Value> outputs_from;  // one more than there are nodes
  IdVector<Value, double> bytes;
  IdVector<Value, Node> producer;
  Csr<Value, Node> reads;
  Csr<Node, Value> readers;
  Csr<Node, Node> enders, ended_by;
  Csr<Overwrite, Node> overwritable;
};

}  // namespace lowtide::solve::search
