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

Replay::Replay(const Graph& graph, const Plan& plan)
    : graph_(graph),
      plan_(plan),
      tensors_(graph.tensor_count()),
      computed_(graph.op_count(), 0),
      live_(graph.resident() + graph.input_bytes()),
      during_(live_) {
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    tensors_[i].live = graph.is_input(id);
    if (!graph.on_host(id)) continue;
    tensors_[i].live = false;
    tensors_[i].on_host = tensors_[i].host_space = true;
    host_ += graph.bytes(id);
    live_ -= graph.bytes(id);
  }
  during_ = live_;
}

std::optional<std::string> Replay::apply(const Step& step) {
  const std::size_t limit = step.is_compute() ? graph_.op_count() : graph_.tensor_count();
  if (step.index < 0 || static_cast<std::size_t>(step.index) >= limit)
    return std::string(to_string(step.kind)) + " " + std::to_string(step.index) + ": there is no " +
           (step.is_compute() ? "op" : "tensor") + " " + std::to_string(step.index);
  try {
    switch (step.kind) {
      case StepKind::compute:
      case StepKind::compute_in_place: return compute(step.op(), plan_.overwritten(step));
      case StepKind::free: return free(step.tensor());
      case StepKind::offload: return offload(step.tensor());
      case StepKind::prefetch: return prefetch(step.tensor());
    }
  } catch (const OverflowError&) {
    return "the duration of the plan does not fit into 63 bits";
  }
  return "a step of an unknown kind";
}

std::optional<std::string> Replay::not_overwritable(OpId op,
                                                    std::span<const TensorId> overwritten) const {
  if (!overwritten.empty() && graph_.is_barrier(op)) return "a barrier does not run in place";
  std::vector<TensorId> taken;
  for (const TensorId id : overwritten) {
    if (id.index() >= graph_.tensor_count())
      return "there is no tensor " + std::to_string(id.index());
    const auto pairs = graph_.in_place(op);
    const auto pair = std::ranges::find(pairs, id, &InPlacePair::input);
    if (pair == pairs.end()) return "it cannot write in place of " + graph_.label(id);
    if (std::ranges::find(taken, pair->output) != taken.end())
      return "its output " + graph_.label(pair->output) + " takes the place of two tensors";
    if (!graph_.overwritable(id))
      return "it would overwrite " + graph_.label(id) + ", " +
             (graph_.is_output(id) ? "an output of the graph"
              : graph_.stays(id)   ? "which the caller holds"
                                   : "an input that is not releasable");
    taken.push_back(pair->output);
  }
  return std::nullopt;
}

std::optional<std::string> Replay::compute(OpId op, std::span<const TensorId> overwritten) {
  const auto refuse = [&](const std::string& why) {
    const StepKind kind = overwritten.empty() ? StepKind::compute : StepKind::compute_in_place;
    return std::string(to_string(kind)) + " of " + graph_.label(op) + ": " + why;
  };
  const bool again = computed_[op.index()] != 0;
  if (again && !graph_.recomputable(op)) return refuse("it may be computed only once");
  for (OpId before : graph_.after(op))
    if (!computed_[before.index()]) return refuse(graph_.label(before) + " must come first");
  if (const auto why = not_overwritable(op, overwritten)) return refuse(*why);
  const bool on_network = graph_.on_network(op);
  Ticks start = on_network ? std::max(compute_lane_, network_lane_) : compute_lane_;
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
  for (const TensorId gone : overwritten) {
    start = std::max({start, state(gone).settled, state(gone).network});
    made -= graph_.bytes(gone);
  }
  for (const TensorId changed : graph_.mutates(op)) start = std::max(start, state(changed).network);
  if (graph_.is_barrier(op)) start = std::max({start, out_lane_, in_lane_, network_lane_});
  const Ticks end = checked_add(start, graph_.time(op));

  during_ = live_ + made + graph_.workspace(op);
  live_ += made;
  began_ = start;
  ended_ = end;
  (on_network ? network_lane_ : compute_lane_) = end;
  if (graph_.is_barrier(op)) out_lane_ = in_lane_ = end;
  for (const TensorId gone : overwritten) state(gone).live = false;
  for (TensorId output : graph_.outputs(op)) {
    state(output).live = true;
    state(output).exists = end;
  }
  for (TensorId changed : graph_.mutates(op)) {
    state(changed).mutated = true;
    state(changed).on_host = false;
    state(changed).exists = end;
  }
  if (on_network)
    for (const auto links : {graph_.inputs(op), graph_.outputs(op)})
      for (const TensorId used : links) state(used).network = end;
  if (!again) {
    computed_[op.index()] = 1;
    first_.push_back(op);
  }
  return std::nullopt;
}

std::optional<std::string> Replay::free(TensorId id) {
  TensorState& tensor = state(id);
  if (!tensor.live) return "free of " + graph_.label(id) + ": it is not live";
  if (graph_.stays(id)) return "free of " + graph_.label(id) + ": the caller holds it";
  if (!graph_.freeable(id) && !tensor.on_host)
    return "free of " + graph_.label(id) +
           ": it is an input that is not releasable and has no host copy";
  began_ = compute_lane_;
  compute_lane_ = ended_ = std::max({compute_lane_, tensor.settled, tensor.network});
  during_ = live_;
  live_ -= graph_.bytes(id);
  tensor.live = false;
  return std::nullopt;
}

std::optional<std::string> Replay::offload(TensorId id) {
  TensorState& tensor = state(id);
  if (!tensor.live) return "offload of " + graph_.label(id) + ": it is not live";
  if (!plan_.machine) return "offload of " + graph_.label(id) + ": the plan names no machine";
  if (!is_sound(plan_.machine->device_to_host))
    return "offload of " + graph_.label(id) + ": a link has negative numbers or moves no bytes";
  const Ticks start = std::max(out_lane_, tensor.exists);
  const Ticks end =
      checked_add(start, plan_.machine->device_to_host.transfer_time(graph_.bytes(id)));
  began_ = start;
  out_lane_ = tensor.settled = ended_ = end;
  if (!tensor.host_space) host_ += graph_.bytes(id);
  tensor.host_space = tensor.on_host = true;
  during_ = live_;
  return std::nullopt;
}

std::optional<std::string> Replay::prefetch(TensorId id) {
  TensorState& tensor = state(id);
  if (tensor.live) return "prefetch of " + graph_.label(id) + ": it is live";
  if (!plan_.machine) return "prefetch of " + graph_.label(id) + ": the plan names no machine";
  if (!is_sound(plan_.machine->host_to_device))
    return "prefetch of " + graph_.label(id) + ": a link has negative numbers or moves no bytes";
  if (!tensor.on_host) return "prefetch of " + graph_.label(id) + ": it has no host copy";
  const Ticks start = std::max(in_lane_, compute_lane_);
  const Ticks end =
      checked_add(start, plan_.machine->host_to_device.transfer_time(graph_.bytes(id)));
  began_ = start;
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
    if (const TensorId id(i); graph_.on_host(id)) {
      if (!tensors_[i].on_host)
        return "at the end the input " + graph_.label(id) + ", whose home is the host, has no " +
               "valid copy there";
    } else if (!is_live(id) && !graph_.freeable(id)) {
      return "at the end the input " + graph_.label(id) + " is not live";
    }
  return std::nullopt;
}

Ticks Replay::duration() const {
  return std::max({compute_lane_, out_lane_, in_lane_, network_lane_});
}

}  // namespace lowtide
