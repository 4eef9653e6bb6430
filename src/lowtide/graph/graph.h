// The computation graph: a DAG of ops and tensors, immutable once built (see builder.h).
//
// A tensor is one storage. An op reads its inputs, makes its outputs, takes `time`, and needs
// `workspace` while it runs. docs/reference/cost.md defines the terms.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/base/ids.h"
#include "lowtide/base/units.h"
#include "lowtide/graph/operand.h"

namespace lowtide {

enum class Role : std::uint8_t { input, parameter, state, constant, activation, gradient };

// Where a tensor without producer is at the start. host: it has a valid host copy and is not on the
// device; at the end of a plan it must have a valid host copy again.
enum class Home : std::uint8_t { device, host };

// The unit of a tick. `none`: times can only be compared with one another.
enum class TickUnit : std::uint8_t { ns, us, ms, flop, none };
// The length of a tick; 0 for units that are no time.
constexpr std::int64_t nanoseconds(TickUnit unit) {
  switch (unit) {
    case TickUnit::ns: return 1;
    case TickUnit::us: return 1'000;
    case TickUnit::ms: return 1'000'000;
    default: return 0;
  }
}

// The lane on which an op runs. network: its time passes beside the computing (collectives between
// ranks). docs/reference/cost.md has the rules.
enum class Lane : std::uint8_t { compute, network };

inline constexpr std::string_view kBarrierKind = "lowtide.barrier";

// Planning uses the fields up to `home`; reports and transforms also use shape and number type.
struct Tensor {
  std::string name;
  Bytes bytes;
  Role role = Role::activation;
  // For a tensor without producer; no effect on others.
  bool releasable = false;  // a plan may free it
  bool stays = false;       // the caller holds it: it may be copied, never freed
  Home home = Home::device;
  std::vector<std::int64_t> shape;
  std::string dtype;
};

struct Op {
  std::string name;
  std::string kind;        // "aten.mm"; kBarrierKind for a barrier
  std::string phase;       // "forward", "backward" or whatever the front end says
  std::string origin;      // the module of the model that contains it
  std::string attributes;  // a JSON object as text, or empty
  Ticks time;
  Bytes workspace;
  bool recomputable = true;  // as given; see Graph::recomputable
  Lane lane = Lane::compute;
  std::vector<Operand> operands, results;
  std::vector<Argument> arguments;
};

// A pair of an input and an output: the op can write the output into the storage of the input, with
// the same bits.
struct InPlacePair {
  TensorId input, output;
  bool operator==(const InPlacePair&) const = default;
};

class Graph {
 public:
  const std::string& name() const { return name_; }
  // The same graph under another name.
  Graph named(std::string name) &&;
  // The same graph with other times, one for each op, none negative. Throws InputError (place: the
  // op) if they add up to 2^63 or more.
  Graph timed(TickUnit tick, std::span<const Ticks> times) &&;
  // The same graph for plans that may not compute any op twice, or may not run any op in place.
  Graph without_recomputation() &&;
  Graph without_in_place() &&;
  // The same graph with all inputs on the device from the start. Those with home on the host stay
  // live throughout.
  Graph with_homes_on_device() &&;
  // The same graph with all ops on the compute lane.
  Graph without_network_lane() &&;
  // The same graph with other workspaces, one for each op, none negative. Throws InputError (place:
  // the op) if the bytes of the graph add up to 2^63 or more.
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

  // Links, without duplicates, in file order.
  std::span<const TensorId> inputs(OpId id) const { return inputs_[id.index()]; }
  std::span<const TensorId> outputs(OpId id) const { return outputs_of_[id.index()]; }
  std::span<const OpId> after(OpId id) const { return after_[id.index()]; }
  std::span<const TensorId> mutates(OpId id) const { return mutates_[id.index()]; }
  // The in-place pairs, in file order. Each input is in at most one pair, an output perhaps in
  // several.
  std::span<const InPlacePair> in_place(OpId id) const { return in_place_[id.index()]; }
  // The pairs whose input a plan may overwrite, grouped by output, in the order of the first pair.
  std::span<const InPlacePair> overwrites(OpId id) const { return overwrites_[id.index()]; }
  bool has_overwrites() const { return overwrites_.size() > 0; }
  // The least bytes that the op takes beside all its inputs and outputs: its workspace, minus every
  // output that can overwrite an input. Negative for most ops that can run in place.
  Bytes least_workspace(OpId id) const { return least_workspaces_[id.index()]; }
  // The op that produces the tensor; invalid if there is none.
  OpId producer(TensorId id) const { return producers_[id.index()]; }
  // Ops that read the tensor, by index.
  std::span<const OpId> consumers(TensorId id) const { return consumers_[id.index()]; }

  // Ops whose first computation must come before (after) that of this op: producers of inputs,
  // `after`, and readers of what the op mutates. Without duplicates.
  std::span<const OpId> predecessors(OpId id) const { return predecessors_[id.index()]; }
  std::span<const OpId> successors(OpId id) const { return successors_[id.index()]; }

  // Tensors that must be live at the end.
  std::span<const TensorId> outputs() const { return outputs_; }
  bool is_output(TensorId id) const { return is_output_[id.index()] != 0; }
  bool is_input(TensorId id) const { return !producer(id).valid(); }
  bool has_tensors_on_host() const { return has_tensors_on_host_; }
  bool on_host(TensorId id) const { return is_input(id) && tensor(id).home == Home::host; }
  bool stays(TensorId id) const { return is_input(id) && tensor(id).stays; }
  bool releasable(TensorId id) const {
    return is_input(id) && tensor(id).releasable && !stays(id) && !on_host(id);
  }
  // Whether a plan may free the tensor without a host copy.
  bool freeable(TensorId id) const { return !is_input(id) || releasable(id); }
  // Whether an op may overwrite the tensor in place: it is freeable, and no output of the graph.
  bool overwritable(TensorId id) const { return freeable(id) && !is_output(id); }

  bool is_barrier(OpId id) const { return is_barrier_[id.index()] != 0; }
  bool on_network(OpId id) const { return op(id).lane == Lane::network; }
  bool has_network_ops() const { return has_network_ops_; }
  // Whether a plan may compute the op more than once. False if the graph says so, for a barrier,
  // and for an op without outputs or one that mutates inputs.
  bool recomputable(OpId id) const { return recomputable_[id.index()] != 0; }

  // The given order: a topological order of all ops.
  std::span<const OpId> order() const { return order_; }
  std::size_t position(OpId id) const { return position_[id.index()]; }

  Ticks total_time() const { return total_time_; }      // of computing each op once
  Ticks network_time() const { return network_time_; }  // the share of it of network ops
  // No plan takes less: each op is computed once, on its lane.
  Ticks least_time() const { return std::max(network_time_, total_time_ - network_time_); }
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
  Ticks total_time_, network_time_;
  std::vector<Op> ops_;
  std::vector<Tensor> tensors_;
  std::vector<Ticks> times_;
  std::vector<Bytes> workspaces_, least_workspaces_, bytes_;
  Csr<TensorId> inputs_, outputs_of_, mutates_;
  Csr<InPlacePair> in_place_, overwrites_;
  Csr<OpId> after_, consumers_, predecessors_, successors_;
  std::vector<OpId> producers_, order_;
  std::vector<std::size_t> position_;
  std::vector<TensorId> outputs_;
  std::vector<std::uint8_t> is_output_, is_barrier_, recomputable_;
  bool has_tensors_on_host_ = false, has_network_ops_ = false;
};

std::string_view to_string(Role role);
std::string_view to_string(Home home);
std::string_view to_string(Lane lane);
std::string_view to_string(TickUnit unit);

}  // namespace lowtide
