// One function for each kind of step; each checks everything before it changes anything.
#include "lowtide/sim/replay.h"

#include <algorithm>

namespace lowtide {

namespace {
// Only readers refuse such links; a machine made in memory gets here as it is.
bool is_sound(const Link& link) {
  return link.latency >= Ticks(0) && link.bytes > Bytes(0) && link.ticks >= Ticks(0);
}
}  // namespace

Replay::Replay(const Graph& graph, const std::optional<Machine>& machine)
    : graph_(graph),
      machine_(machine),
      tensors_(graph.tensor_count()),
      computed_(graph.op_count(), 0),
      live_(graph.resident() + graph.input_bytes()),
      during_(live_) {
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    tensors_[i].live = graph.is_input(TensorId(i));
}

std::optional<std::string> Replay::apply(const Step& step) {
  const std::size_t limit = step.is_compute() ? graph_.op_count() : graph_.tensor_count();
  if (step.index < 0 || static_cast<std::size_t>(step.index) >= limit)
    return std::string(to_string(step.kind)) + " " + std::to_string(step.index) + ": there is no " +
           (step.is_compute() ? "op" : "tensor") + " " + std::to_string(step.index);
  try {
    switch (step.kind) {
      case StepKind::compute: return compute(step.op());
      case StepKind::free: return free(step.tensor());
      case StepKind::offload: return offload(step.tensor());
      case StepKind::prefetch: return prefetch(step.tensor());
    }
  } catch (const OverflowError&) {
    return "the duration of the plan does not fit into 63 bits";
  }
  return "a step of an unknown kind";
}

std::optional<std::string> Replay::compute(OpId op) {
  const auto refuse = [&](const std::string& why) {
    return "compute of " + graph_.label(op) + ": " + why;
  };
  const bool again = computed_[op.index()] != 0;
  if (again && !graph_.recomputable(op)) return refuse("it may be computed only once");
  for (OpId before : graph_.after(op))
    if (!computed_[before.index()]) return refuse(graph_.label(before) + " must come first");
  Ticks start = compute_lane_;
  for (TensorId input : graph_.inputs(op)) {
    const TensorState& tensor = state(input);
    if (!tensor.live) return refuse("its input " + graph_.label(input) + " is not live");
    if (tensor.mutated)
      return refuse("its input " + graph_.label(input) + " has been changed in place");
    start = std::max(start, tensor.exists);
  }
  Bytes made;
  for (TensorId output : graph_.outputs(op)) {
    if (state(output).live)
      return refuse("its output " + graph_.label(output) + " is still live; free it first");
    if (state(output).mutated && graph_.is_output(output))
      return refuse("its output " + graph_.label(output) +
                    " is kept by the graph and has been changed in place");
    made += graph_.bytes(output);
  }
  if (graph_.is_barrier(op)) start = std::max({start, out_lane_, in_lane_});
  const Ticks end = checked_add(start, graph_.time(op));

  during_ = live_ + made + graph_.workspace(op);
  live_ += made;
  compute_lane_ = ended_ = end;
  if (graph_.is_barrier(op)) out_lane_ = in_lane_ = end;
  for (TensorId output : graph_.outputs(op)) {
    state(output).live = true;
    state(output).exists = end;
  }
  for (TensorId changed : graph_.mutates(op)) {
    state(changed).mutated = true;
    state(changed).on_host = false;
    state(changed).exists = end;
  }
  if (!again) {
    computed_[op.index()] = 1;
    first_.push_back(op);
  }
  return std::nullopt;
}

std::optional<std::string> Replay::free(TensorId id) {
  TensorState& tensor = state(id);
  if (!tensor.live) return "free of " + graph_.label(id) + ": it is not live";
  if (!graph_.freeable(id) && !tensor.on_host)
    return "free of " + graph_.label(id) +
           ": it is an input that is not releasable and has no host copy";
  compute_lane_ = ended_ = std::max(compute_lane_, tensor.settled);
  during_ = live_;
  live_ -= graph_.bytes(id);
  tensor.live = false;
  return std::nullopt;
}

std::optional<std::string> Replay::offload(TensorId id) {
  TensorState& tensor = state(id);
  if (!tensor.live) return "offload of " + graph_.label(id) + ": it is not live";
  if (!machine_) return "offload of " + graph_.label(id) + ": the plan names no machine";
  if (!is_sound(machine_->device_to_host))
    return "offload of " + graph_.label(id) + ": a link has negative numbers or moves no bytes";
  const Ticks start = std::max(out_lane_, tensor.exists);
  const Ticks end = checked_add(start, machine_->device_to_host.transfer_time(graph_.bytes(id)));
  out_lane_ = tensor.settled = ended_ = end;
  if (!tensor.host_space) host_ += graph_.bytes(id);
  tensor.host_space = tensor.on_host = true;
  during_ = live_;
  return std::nullopt;
}

std::optional<std::string> Replay::prefetch(TensorId id) {
  TensorState& tensor = state(id);
  if (tensor.live) return "prefetch of " + graph_.label(id) + ": it is live";
  if (!machine_) return "prefetch of " + graph_.label(id) + ": the plan names no machine";
  if (!is_sound(machine_->host_to_device))
    return "prefetch of " + graph_.label(id) + ": a link has negative numbers or moves no bytes";
  if (!tensor.on_host) return "prefetch of " + graph_.label(id) + ": it has no host copy";
  const Ticks start = std::max(in_lane_, compute_lane_);
  const Ticks end = checked_add(start, machine_->host_to_device.transfer_time(graph_.bytes(id)));
  in_lane_ = tensor.settled = tensor.exists = ended_ = end;
  live_ += graph_.bytes(id);
  during_ = live_;
  tensor.live = true;
  return std::nullopt;
}

std::optional<std::string> Replay::missing_at_end() const {
  for (std::size_t i = 0; i < graph_.op_count(); ++i)
    if (computed_[i] == 0) return "at the end " + graph_.label(OpId(i)) + " was never computed";
  for (TensorId output : graph_.outputs())
    if (!is_live(output))
      return "at the end the graph's output " + graph_.label(output) + " is not live";
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
    if (!is_live(TensorId(i)) && !graph_.freeable(TensorId(i)))
      return "at the end the input " + graph_.label(TensorId(i)) + " is not live";
  return std::nullopt;
}

Ticks Replay::duration() const { return std::max({compute_lane_, out_lane_, in_lane_}); }

}  // namespace lowtide
