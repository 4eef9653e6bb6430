// Builds a Graph, which cannot be made in any other way: collects tensors, ops, outputs and order;
// `build` validates them. Errors are InputErrors whose place is a JSON pointer into the graph file
// of the same content ("/ops/3/inputs/1") and whose reason names the op or tensor.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide {

// The links of one op, as indices into the lists of tensors and ops; an index may refer to an op or
// tensor that is added later.
struct OpLinks {
  std::vector<std::int64_t> inputs, outputs, after, mutates;
  std::vector<std::array<std::int64_t, 2>> in_place = {};  // pairs of input and output
  // The tensor of each of Op's operands and results. If empty, the ids in Op count.
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
  // For callers that already have ids, which cannot be out of range.
  OpId add_op(Op op, const std::vector<TensorId>& inputs, const std::vector<TensorId>& outputs);
  void set_outputs(std::vector<std::int64_t> outputs) { outputs_ = std::move(outputs); }
  void add_output(TensorId id) { outputs_.push_back(static_cast<std::int64_t>(id.index())); }
  // Without a call, the order is that in which the ops were added.
  void set_order(std::vector<std::int64_t> order);

  // Validates everything, leaves the builder empty, and throws InputError for: negative numbers;
  // indices out of range; a repeated output; an op that makes one of its own inputs; a tensor with
  // two producers; `mutates` that is no input, or two ops that mutate one tensor; an `in_place`
  // pair of tensors of unequal bytes, that the op does not read or make, that it mutates, or whose
  // operand has another layout than its result; an input in two pairs; a pair of a barrier; a
  // barrier on the network lane; an operand that is no input; a result that is neither an output
  // nor mutated; an operand or result that exceeds its storage; a produced tensor with `stays` or
  // with home on the host; a cycle (through `after` and `mutates` too); an order that is no
  // topological order of all ops; sums of 2^63 or more.
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
