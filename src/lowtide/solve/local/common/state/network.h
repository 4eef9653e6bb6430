// The graph in the form that the search uses: small integers in flat arrays, so that a move touches
// few cache lines.
//
// A node is an op, with the same number, or one of two additional nodes that never move. The
// source, at the front, makes the inputs that a plan may free; the sink, at the end, reads the
// graph's outputs. Inputs that stay, and the resident bytes, are subtracted from the budget.
//
// A value is a tensor that a plan can make or free; other tensors are omitted. Values are
// renumbered, those of one node consecutively.
//
// With a machine all inputs are values except those that the caller holds: the sink reads those
// that must be live at the end. Each value then has two more nodes, after all others, which occur
// in a sequence any number of times or never: `fetch` makes the value and reads nothing; `hold`
// reads it and makes nothing (see Event). Neither takes time on the compute lane.
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

// For a problem whose numbers fit.
struct Network {
  explicit Network(const Problem& problem);

  std::size_t op_count() const { return ops; }
  // Ops, source and sink, which occur in every sequence.
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
  // The values that one node makes, which are numbered consecutively.
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
  // The bytes of the outputs and the workspace: live during the op and not before it.
  double own_bytes(Node node) const { return own[node]; }
  bool may_repeat(Node node) const { return repeatable[node] != 0; }
  // Pairs of values, grouped by the first: the node can write the first over the second.
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
  // The value of a fetch or a hold.
  Value value_of(Node node) const {
    const std::size_t i = node.index() - first_count();
    return Value(is_fetch(node) ? i : i - value_count());
  }
  // The value of a tensor, if it has one.
  Value value_for(TensorId id) const { return number[id]; }
  // Its home is the host: the source does not make it live, and no node may read it before a fetch.
  bool is_away(Value value) const { return away[value] != 0; }
  bool is_barrier(Node node) const { return barrier[node] != 0; }
  // The values that the op mutates, in its order; and the op that mutates a value (invalid: none).
  // Such values are numbered by `change`.
  std::span<const Value> changes(Node node) const { return changed[node]; }
  Node changer(Value value) const { return changed_by[value]; }
  // The ops after which this op may not run again: those that mutate its inputs, or its outputs
  // that the graph keeps.
  std::span<const Node> ends(Node node) const { return enders[node]; }
  // The inverse: the ops whose every run must come before this op.
  std::span<const Node> ended(Node node) const { return ended_by[node]; }

  const Graph& graph;
  const std::optional<Machine> machine;
  std::size_t ops;
  double budget;      // bytes, without those in `fixed`
  double fixed;       // bytes that are always live: resident bytes, and inputs that stay
  double total_time;  // sum of all ops
  bool transfers;     // whether there is a machine
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
  // With a machine: ticks of a copy, out and in.
  IdVector<Value, double> copy_out, copy_in;
  IdVector<Node, std::uint8_t> barrier;
  IdVector<Value, std::uint8_t> away;
  Csr<Value, Node> changed;
  std::vector<Value> changed_values;  // by `change`
  IdVector<Value, Node> changed_by;
  IdVector<Value, std::int32_t> change;  // -1: no op mutates it
  double host_budget, host_home;         // bytes; of tensors at home there
  // Tensors with fewer bytes are small. Moving them costs nearly nothing, so without distinction
  // the search would be occupied with them.
  double small = 0;

 private:
  void add_transfers(const Problem& problem);
};

}  // namespace lowtide::solve::local
