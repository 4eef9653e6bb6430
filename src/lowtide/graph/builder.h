// The only way to make a Graph: collect tensors, ops, outputs and order, then `build`, which
// validates. Errors are InputErrors whose place is a JSON pointer into the graph file of the same
// content ("/ops/3/inputs/1") and whose reason names the op or tensor.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide {

// Links of one op, as indices into the lists of tensors and ops; they may point forward.
struct OpLinks {
  std::vector<std::int64_t> inputs, outputs, after, mutates;
  std::vector<std::array<std::int64_t, 2>> in_place = {};  // pairs of input and output
  // One for each of Op's lists; empty: those that stand there.
  std::vector<std::int64_t> operand_tensors = {}, result_tensors = {};
};

class GraphBuilder {
 public:
  void set_name(std::string name) { name_ = std::move(name); }
  void set_tick(TickUnit tick) { tick_ = tick; }
  void set_resident(Bytes bytes) { resident_ = bytes; }
  void reserve(std::size_t ops, std::size_t tensors);

  TensorId add_tensor(Tensor tensor);
  OpId add_op(Op op, const OpLinks& links);
  // For code that already has ids, which cannot be out of range.
  OpId add_op(Op op, const std::vector<TensorId>& inputs, const std::vector<TensorId>& outputs);
  void set_outputs(std::vector<std::int64_t> outputs) { outputs_ = std::move(outputs); }
  void add_output(TensorId id) { outputs_.push_back(static_cast<std::int64_t>(id.index())); }
  // Without a call, the order in which the ops were added.
  void set_order(std::vector<std::int64_t> order);

  // Refuses: negative numbers; indices out of range; a repeated output; an op that makes one of its
  // own inputs; a tensor with two producers; `mutates` that is no input, or two ops that mutate one
  // tensor; an `in_place` pair of tensors of unequal bytes, that the op does not read or make, that
  // it mutates, or whose operand is not laid out as its result; an input in two pairs; a pair of a
  // barrier; an operand that is no input, or a result that is no output nor mutated, or that
  // leaves its storage; a produced tensor that stays or whose home is the host; a cycle (through
  // `after` and `mutates` too); an order that is no topological order of all ops; sums beyond 2^63.
  // Leaves the builder empty.
  Graph build();

 private:
  void link_consumers(Graph& graph) const;
  void link_precedence(Graph& graph) const;
  void check_operands(Graph& graph) const;
  void link_in_place(Graph& graph) const;
  void place_order(Graph& graph) const;
  void sum_up(Graph& graph) const;

  std::string name_;
  TickUnit tick_ = TickUnit::none;
  Bytes resident_;
  std::vector<Op> ops_;
  std::vector<Tensor> tensors_;
  Csr<std::int64_t> inputs_, made_, after_, mutates_, operands_, results_;
  Csr<std::array<std::int64_t, 2>> in_place_;
  std::vector<std::int64_t> outputs_, order_;
  bool has_order_ = false;
};

}  // namespace lowtide
