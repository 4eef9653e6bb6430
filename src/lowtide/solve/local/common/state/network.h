// The graph as the search reads it: small integers in flat arrays, so that a move touches few cache
// lines.
//
// A node is an op, which keeps its number, or one of two that are added and never move. The source,
// at the front, makes the inputs that a plan may free; the sink, at the end, reads the graph's
// outputs. Inputs that stay and the resident bytes are taken off the budget.
//
// A value is a tensor that a plan can make or free; the others are left out. They are numbered
// anew, those of one node in a row.
//
// With a machine all inputs are values but those that the caller holds: the sink reads those that
// must be there at the end. And each value has two nodes more, after all others, that stand in a
// sequence any number of times or never: `fetch` makes it, and reads nothing; `hold` reads it, and
// makes nothing (see Event). Neither takes time on the compute lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/base/id_vector.h"
#include "lowtide/base/ids.h"
#include "lowtide/plan/problem.h"

namespace lowtide::solve::local {

using Node = Id<struct NodeTag>;
using Value = Id<struct ValueTag>;

// Why the problem's numbers do not fit into doubles; empty if they do.
std::string too_large(const Problem& problem);

// Of a problem that is not too large.
struct Network {
  explicit Network(const Problem& problem);

  std::size_t op_count() const { return ops; }
  // Ops, source and sink: they stand in every sequence.
  std::size_t first_count() const { return ops + 2; }
  std::size_t node_count() const { return time.size(); }
  std::size_t value_count() const { return bytes.size(); }
  Node source() const { return Node(ops); }
  Node sink() const { return Node(ops + 1); }
  bool is_op(Node node) const { return node.index() < ops; }
  static Node node_of(OpId op) { return Node(op.index()); }
  static OpId op_of(Node node) { return OpId(node.index()); }  // neither source nor sink

  std::span<const Value> inputs(Node node) const { return reads[node]; }
  std::span<const Node> users(Value value) const { return readers[value]; }
  // Those that one node makes: they are numbered in a row.
  class Values {
   public:
    Values(Value first, std::int32_t count)
        : begin_(first.index()), end_(first.index() + static_cast<std::size_t>(count)) {}
    auto begin() const { return AllIds<Value>::Iterator(begin_); }
    auto end() const { return AllIds<Value>::Iterator(end_); }

   private:
    std::size_t begin_, end_;
  };
  Values outputs(Node node) const { return {made[node].first, made[node].count}; }
  int output_count(Node node) const { return made[node].count; }
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
  // With a machine.
  Node fetch(Value value) const { return Node(first_count() + value.index()); }
  Node hold(Value value) const { return Node(first_count() + value_count() + value.index()); }
  bool is_fetch(Node node) const {
    return node.index() >= first_count() && node.index() < first_count() + value_count();
  }
  bool is_hold(Node node) const { return node.index() >= first_count() + value_count(); }
  // Of a fetch or a hold.
  Value value_of(Node node) const {
    const std::size_t i = node.index() - first_count();
    return Value(is_fetch(node) ? i : i - value_count());
  }
  // Of a tensor that is one.
  Value value_for(TensorId id) const { return number[id]; }
  // Its home is the host: what the source makes of it is not there, and nobody may read that.
  bool is_away(Value value) const { return away[value] != 0; }
  bool is_barrier(Node node) const { return barrier[node] != 0; }
  // The values that the op changes in place, in its order, and the op that changes a value (not
  // valid: none). Such values are numbered by `change`.
  std::span<const Value> changes(Node node) const { return changed[node]; }
  Node changer(Value value) const { return changed_by[value]; }
  // Ops that end the time in which this one may run again: those that mutate what it reads, or what
  // it made if the graph keeps that.
  std::span<const Node> ends(Node node) const { return enders[node]; }
  // The other way round: the ops whose every run must come before this one.
  std::span<const Node> ended(Node node) const { return ended_by[node]; }

  const Graph& graph;
  const std::optional<Machine> machine;
  std::size_t ops;
  double budget;      // of what plans can choose, in bytes
  double fixed;       // bytes that are always there: resident, and inputs that stay
  double total_time;  // of each op once
  bool transfers;     // there is a machine
  IdVector<Node, double> time, own, workspace;
  IdVector<Node, std::uint8_t> repeatable;
  struct Made {
    Value first;
    std::int32_t count = 0;
  };
  IdVector<Node, Made> made;
  IdVector<Value, double> bytes;
  IdVector<Value, TensorId> tensor;
  IdVector<TensorId, Value> number;
  IdVector<Value, Node> producer;
  Csr<Value, Node> reads;
  Csr<Node, Value> readers;
  Csr<Node, Node> enders, ended_by;
  Csr<Overwrite, Node> overwritable;
  // With a machine; ticks of a copy, out and in.
  IdVector<Value, double> copy_out, copy_in;
  IdVector<Node, std::uint8_t> barrier;
  IdVector<Value, std::uint8_t> away;
  Csr<Value, Node> changed;
  std::vector<Value> changed_values;  // by `change`
  IdVector<Value, Node> changed_by;
  IdVector<Value, std::int32_t> change;  // -1: none changes it
  double host_budget, host_home;         // bytes; of those at home there
  // Bytes from which on the absence of a tensor is felt. Smaller ones are nearly free to move, so
  // that a search which draws all alike is busy with them.
  double small = 0;

 private:
  void add_transfers(const Problem& problem);
};

}  // namespace lowtide::solve::local
