// The events of one step, with ids that go on where the last step left them.
#include "lowtide/layout/plan_trace.h"

#include <map>

#include "lowtide/layout/lifetimes.h"

namespace lowtide::layout {

namespace {

class Writer {
 public:
  Writer(const Graph& graph, const Plan& plan)
      : graph_(graph), found_(lifetimes(graph, plan)), ids_(found_.buffers.size(), kNone) {}

  Trace write(int steps) {
    for (std::size_t i = 0; i < found_.buffers.size(); ++i)
      if (at_start(i) && stays(i)) kept_[found_.origins[i].tensor] = allocate(i);
    for (int step = 0; step < steps; ++step) {
      write_step();
      trace_.push_back({TraceEvent::Kind::end_step});
    }
    return std::move(trace_);
  }

 private:
  static constexpr std::int64_t kNone = -1;

  bool at_start(std::size_t buffer) const {
    return found_.origins[buffer].step == BufferOrigin::kStart;
  }
  static bool is_kept(Role role) {
    return role == Role::parameter || role == Role::state || role == Role::constant;
  }
  // Whether it is memory of a tensor that is there from step to step.
  bool stays(std::size_t buffer) const {
    const BufferOrigin& origin = found_.origins[buffer];
    if (origin.kind == BufferOrigin::Kind::resident) return true;
    if (origin.kind != BufferOrigin::Kind::input && origin.kind != BufferOrigin::Kind::fetched)
      return false;
    const TensorId tensor = origin.tensor;
    return tensor.index() < graph_.tensor_count() && graph_.is_input(tensor) &&
           is_kept(graph_.tensor(tensor).role) && !graph_.releasable(tensor) &&
           !graph_.on_host(tensor);
  }

  void write_step() {
    for (std::size_t i = 0; i < ids_.size(); ++i)
      ids_[i] = !at_start(i) ? kNone : stays(i) ? kept_.at(found_.origins[i].tensor) : allocate(i);
    for (const MemoryEvent& event : found_.events) {
      const auto buffer = static_cast<std::size_t>(event.buffer);
      if (event.kind == MemoryEvent::Kind::free)
        free(buffer);
      else if (!at_start(buffer))
        ids_[buffer] = allocate(buffer);
    }
    for (const bool inputs : {false, true})
      for (std::size_t i = 0; i < ids_.size(); ++i) {
        if (ids_[i] == kNone || at_start(i) != inputs) continue;
        if (stays(i))
          kept_[found_.origins[i].tensor] = ids_[i];
        else
          free(i);
      }
  }

  std::int64_t allocate(std::size_t buffer) {
    trace_.push_back({TraceEvent::Kind::allocate, next_, found_.buffers[buffer].bytes});
    return next_++;
  }
  void free(std::size_t buffer) {
    trace_.push_back({TraceEvent::Kind::free, ids_[buffer]});
    ids_[buffer] = kNone;
  }

  const Graph& graph_;
  const Lifetimes found_;
  std::vector<std::int64_t> ids_;          // of each buffer, in this step
  std::map<TensorId, std::int64_t> kept_;  // of what stays; the invalid tensor: resident bytes
  std::int64_t next_ = 0;
  Trace trace_;
};

}  // namespace

Trace plan_trace(const Graph& graph, const Plan& plan, int steps) {
  return Writer(graph, plan).write(steps);
}

}  // namespace lowtide::layout
