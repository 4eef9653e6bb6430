// The graph as the search reads it: small integers in flat arrays, so that a move touches few cache
// lines. Ops keep their numbers; two are added that never move. The source, at the front, makes
// the inputs that a plan may free; the sink, at the end, reads the graph's outputs. Inputs that
// stay and the resident bytes are taken off the budget.
//
// Tensors that a plan can neither make nor free are left out. The others are numbered anew, those
// of one op in a row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/plan/problem.h"

namespace lowtide::solve::search {

using Node = std::int32_t;   // an op, the source or the sink
using Value = std::int32_t;  // a tensor

// What all ops may take together, each once: what recomputation adds stays exact in a double too.
inline constexpr double kMostTicks = 0x1p50;
// Why the graph's numbers do not fit into doubles; empty if they do.
std::string too_large(const Graph& graph);

// Of a graph that is not too large.
struct Network {
  explicit Network(const Problem& problem);

  Node source() const { return ops; }
  Node sink() const { return ops + 1; }
  std::span<const Value> inputs(Node node) const { return reads[at(node)]; }
  std::span<const Node> users(Value value) const { return readers[at(value)]; }
  Value first_output(Node node) const { return outputs_from[at(node)]; }
  Value output_count(Node node) const {
    return outputs_from[at(node) + 1] - outputs_from[at(node)];
  }
  double time_of(Node node) const { return time[at(node)]; }
  double bytes_of(Value value) const { return bytes[at(value)]; }
  Node maker(Value value) const { return producer[at(value)]; }
  // Of the outputs and the workspace: live during the op and not before it.
  double own_bytes(Node node) const { return own[at(node)]; }
  bool may_repeat(Node node) const { return repeatable[at(node)] != 0; }
  // Ops that end the time in which this one may run again: those that mutate what it reads, or what
  // it made if the graph keeps that.
  std::span<const Node> ends(Node node) const { return enders[at(node)]; }
  // The other way round: the ops whose every run must come before this one.
  std::span<const Node> ended(Node node) const { return ended_by[at(node)]; }

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  const Graph& graph;
  Node ops;
  Value values = 0;
  double budget;      // of what plans can choose, in bytes
  double fixed;       // bytes that are always there: resident, and inputs that stay
  double total_time;  // of each op once
  std::vector<double> time, own, workspace, bytes;
  std::vector<std::uint8_t> repeatable;
  std::vector<Value> outputs_from;
  std::vector<Node> producer;
  Csr<Value> reads;
  Csr<Node> readers, enders, ended_by;
};

}  // namespace lowtide::solve::search
