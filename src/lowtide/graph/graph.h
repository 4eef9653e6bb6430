// The network: a DAG of ops and tensors, immutable once built (see builder.h).
//
// A tensor is one storage. An op reads its inputs, makes its outputs, takes `time` and needs
// `workspace` while it runs. The words are those of docs/reference/cost.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/base/ids.h"
#include "lowtide/base/units.h"

namespace lowtide {

enum class Role : std::uint8_t { input, parameter, state, constant, activation, gradient };

// Unit of a tick; `none` means that times only compare with one another.
enum class TickUnit : std::uint8_t { ns, us, ms, flop, none };

inline constexpr std::string_view kBarrierKind = "lowtide.barrier";

// What planning needs of a tensor, and below what reports and transforms need.
struct Tensor {
  std::string name;
  Bytes bytes;
  Role role = Role::activation;
  bool releasable = false;  // an input that a plan may free; without effect on a produced tensor
  std::vector<std::int64_t> shape;
  std::string dtype;
};

struct Op {
  std::string name;
  std::string kind;        // "aten.mm"; kBarrierKind for a barrier
  std::string phase;       // "forward", "backward" or whatever the front end says
  std::string origin;      // where in the model it stands
  std::string attributes;  // a JSON object as text, or empty
  Ticks time;
  Bytes workspace;
  bool recomputable = true;  // as given; see Graph::recomputable
};

class Graph {
 public:
  const std::string& name() const { return name_; }
  // The same graph under another name.
  Graph named(std::string name) &&;
  // The same graph with other times, one for each op, none negative. InputError (place: the op) if
  // they add up to 2^63 or more.
  Graph timed(TickUnit tick, std::span<const Ticks> times) &&;
  // The same graph with other workspaces, one for each op, none negative. InputError (place: the
  // op) if the bytes of the graph add up to 2^63 or more.
  Graph with_workspaces(std::span<const Bytes> workspaces) &&;
  TickUnit tick() const { return tick_; }
  Bytes resident() const { return resident_; }

  std::size_t op_count() const { return ops_.size(); }
  std::size_t tensor_count() const { return tensors_.size(); }
  std::size_t link_count() const { return inputs_.size() + outputs_of_.size(); }
  const Op& op(OpId id) const { return ops_[id.index()]; }
  const Tensor& tensor(TensorId id) const { return tensors_[id.index()]; }

  Ticks time(OpId id) const { return times_[id.index()]; }
  Bytes workspace(OpId id) const { return workspaces_[id.index()]; }
  Bytes bytes(TensorId id) const { return bytes_[id.index()]; }

  // Links, without repetitions, in file order.
  std::span<const TensorId> inputs(OpId id) const { return inputs_[id.index()]; }
  std::span<const TensorId> outputs(OpId id) const { return outputs_of_[id.index()]; }
  std::span<const OpId> after(OpId id) const { return after_[id.index()]; }
  std::span<const TensorId> mutates(OpId id) const { return mutates_[id.index()]; }
  // Invalid for a tensor that no op produces.
  OpId producer(TensorId id) const { return producers_[id.index()]; }
  // Ops that read the tensor, by index.
  std::span<const OpId> consumers(TensorId id) const { return consumers_[id.index()]; }

  // Ops whose first computation must come before (after) this one's: producers of inputs, `after`,
  // and readers of what the op mutates. Without repetitions.
  std::span<const OpId> predecessors(OpId id) const { return predecessors_[id.index()]; }
  std::span<const OpId> successors(OpId id) const { return successors_[id.index()]; }

  // Tensors that must be live at the end.
  std::span<const TensorId> outputs() const { return outputs_; }
  bool is_output(TensorId id) const { return is_output_[id.index()] != 0; }
  bool is_input(TensorId id) const { return !producer(id).valid(); }
  bool releasable(TensorId id) const { return is_input(id) && tensor(id).releasable; }
  // May be freed by a plan without a host copy, wherever it is not needed.
  bool freeable(TensorId id) const { return !is_input(id) || tensor(id).releasable; }

  bool is_barrier(OpId id) const { return op(id).kind == kBarrierKind; }
  // Whether a plan may compute the op more than once: not if the graph says so, nor a barrier, nor
  // an op without outputs or one that mutates its inputs.
  bool recomputable(OpId id) const { return recomputable_[id.index()] != 0; }

  // The order in which the graph was given: topological, all ops.
  std::span<const OpId> order() const { return order_; }
  std::size_t position(OpId id) const { return position_[id.index()]; }

  Ticks total_time() const { return total_time_; }    // of computing each op once
  Bytes input_bytes() const { return input_bytes_; }  // of all tensors that no op produces

  // "op 3 \"mm_3\"", for messages.
  std::string label(OpId id) const;
  std::string label(TensorId id) const;

 private:
  friend class GraphBuilder;
  Graph() = default;

  std::string name_;
  TickUnit tick_ = TickUnit::none;
  Bytes resident_, input_bytes_;
  Ticks total_time_;
  std::vector<Op> ops_;
  std::vector<Tensor> tensors_;
  std::vector<Ticks> times_;
  std::vector<Bytes> workspaces_, bytes_;
  Csr<TensorId> inputs_, outputs_of_, mutates_;
  Csr<OpId> after_, consumers_, predecessors_, successors_;
  std::vector<OpId> producers_, order_;
  std::vector<std::size_t> position_;
  std::vector<TensorId> outputs_;
  std::vector<std::uint8_t> is_output_, recomputable_;
};

std::string_view to_string(Role role);
std::string_view to_string(TickUnit unit);

}  // namespace lowtide
