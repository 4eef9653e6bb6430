// One pass over the steps, which knows the buffer of every live tensor.
#include "lowtide/layout/lifetimes.h"

#include <algorithm>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/base/id_vector.h"
#include "lowtide/plan/transformed_problem.h"

namespace lowtide::layout {

namespace {

using Kind = BufferOrigin::Kind;

// Of a plan without transforms.
class Recorder {
 public:
  Recorder(const Graph& graph, const Plan& plan)
      : graph_(graph), plan_(plan), of_(graph.tensor_count(), kNotLive) {}

  Lifetimes record() {
    allocate(Kind::resident, TensorId(), graph_.resident());
    for (const TensorId id : AllIds<TensorId>(graph_.tensor_count()))
      if (graph_.is_input(id) && !graph_.on_host(id)) make(Kind::input, id);
    for (const Step& step : plan_.steps) {
      ++step_;
      switch (step.kind) {
        case StepKind::compute:
        case StepKind::compute_in_place: compute(step.op(), plan_.overwritten(step)); break;
        case StepKind::free: release(take(step.tensor())); break;
        case StepKind::offload: break;
        case StepKind::prefetch: make(Kind::fetched, step.tensor()); break;
      }
    }
    return std::move(found_);
  }

 private:
  static constexpr std::int32_t kNotLive = -2, kNoBytes = -1;  // in place of a buffer

  void compute(OpId op, std::span<const TensorId> overwritten) {
    for (const TensorId output : graph_.outputs(op))
      check(of_[output] == kNotLive, "what an op makes was not live before");
    const auto pairs = graph_.in_place(op);
    for (const TensorId input : overwritten) {
      const auto pair = std::ranges::find(pairs, input, &InPlacePair::input);
      check(pair != pairs.end(), "an op overwrites only what it is paired with");
      of_[pair->output] = take(input);
    }
    for (const TensorId output : graph_.outputs(op))
      if (of_[output] == kNotLive) make(Kind::computed, output);
    release(allocate(Kind::workspace, TensorId(), graph_.workspace(op)));
  }

  void make(Kind kind, TensorId id) {
    check(of_[id] == kNotLive, "what is brought back was not live before");
    of_[id] = allocate(kind, id, graph_.bytes(id));
  }
  std::int32_t take(TensorId id) {
    check(of_[id] != kNotLive, "what a step frees or overwrites is live");
    return std::exchange(of_[id], kNotLive);
  }

  std::int32_t allocate(Kind kind, TensorId id, Bytes bytes) {
    if (bytes == Bytes(0)) return kNoBytes;
    const auto index = static_cast<std::int32_t>(found_.buffers.size());
    // What is live at the end is so during the last step; without steps, at moment 0.
    const auto end = std::max<std::int64_t>(1, static_cast<std::int64_t>(plan_.steps.size()));
    found_.buffers.push_back({std::max(step_, 0), end, bytes});
    found_.origins.push_back({kind, step_, id});
    found_.events.push_back({MemoryEvent::Kind::allocate, index, step_});
    return index;
  }
  void release(std::int32_t buffer) {
    if (buffer == kNoBytes) return;
    found_.buffers[static_cast<std::size_t>(buffer)].end = step_ + 1;
    found_.events.push_back({MemoryEvent::Kind::free, buffer, step_});
  }

  const Graph& graph_;
  const Plan& plan_;
  IdVector<TensorId, std::int32_t> of_;  // the buffer of each tensor
  std::int32_t step_ = BufferOrigin::kStart;
  Lifetimes found_;
};

}  // namespace

Lifetimes lifetimes(const Graph& graph, const Plan& plan) {
  const PlanOnGraph on(graph, plan);
  Lifetimes found = Recorder(on.graph(), on.plan()).record();
  if (const TransformedGraph* transformed = on.transformed())
    for (BufferOrigin& origin : found.origins)
      if (origin.tensor.valid()) origin.tensor = transformed->tensor_index[origin.tensor];
  return found;
}

Lifetimes placeable(const Graph& graph, const Plan& plan) {
  Lifetimes found = lifetimes(graph, plan);
  found.events.clear();
  if (!found.origins.empty() && found.origins.front().kind == Kind::resident) {
    found.origins.erase(found.origins.begin());
    found.buffers.erase(found.buffers.begin());
  }
  return found;
}

}  // namespace lowtide::layout
