// One pass over the events finds the last use of each instance of a tensor, a second what is
// copied; a third emits the steps.
#include "lowtide/plan/events.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lowtide {

namespace {

// Which copies to the host a tensor needs: of what it is at first, of what an op has changed it to.
enum Copied : std::uint8_t { kNothing = 0, kAtFirst = 1, kChanged = 2 };

// Follows which tensors have been changed in place.
class Changes {
 public:
  explicit Changes(const Graph& graph) : graph_(graph), changed_(graph.tensor_count(), 0) {}
  void see(OpId op) {
    for (TensorId id : graph_.mutates(op)) changed_[id.index()] = 1;
  }
  Copied now(TensorId id) const { return changed_[id.index()] != 0 ? kChanged : kAtFirst; }

 private:
  const Graph& graph_;
  std::vector<std::uint8_t> changed_;
};

std::vector<std::uint8_t> copies_of(const Graph& graph, std::span<const Event> events) {
  std::vector<std::uint8_t> copies(graph.tensor_count(), kNothing);
  Changes changes(graph);
  for (const Event& event : events) {
    if (event.is_compute()) {
      changes.see(event.op());
      for (TensorId id : graph.mutates(event.op()))
        if (graph.on_host(id)) copies[id.index()] |= kChanged;
    } else if (event.kind == Event::Kind::fetch) {
      const TensorId id = event.tensor();
      const Copied copy = changes.now(id);
      if (copy == kChanged || !graph.on_host(id)) copies[id.index()] |= copy;
    }
  }
  return copies;
}

constexpr std::size_t kNever = SIZE_MAX;

// The instances of tensors, one each time that a tensor is made: numbered in the order of their
// making, inputs first.
class Instances {
 public:
  explicit Instances(const Graph& graph) : now_(graph.tensor_count(), kNever) {}

  void make(TensorId id) { now_[id.index()] = count_++; }
  bool is_made(TensorId id) const { return now_[id.index()] != kNever; }
  std::size_t now(TensorId id) const { return now_[id.index()]; }  // the latest

 private:
  std::vector<std::size_t> now_;
  std::size_t count_ = 0;
};

// Of each instance.
struct Lifetimes {
  std::vector<std::size_t> last_use;  // the last event that makes, reads or holds it
  std::vector<std::uint8_t> stays;    // to the end
};

Lifetimes lifetimes_of(const Graph& graph, std::span<const Event> events) {
  Lifetimes found;
  Instances instances(graph);
  const auto make = [&](TensorId id, std::size_t at) {
    instances.make(id);
    found.last_use.push_back(at);
  };
  const auto use = [&](TensorId id, std::size_t at) { found.last_use[instances.now(id)] = at; };
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (const TensorId id(i); graph.is_input(id)) {
      make(id, kNever);
      // What is at home on the host is not live at all or, if it is never fetched, throughout: see
      // own_plan.
      found.stays.push_back(graph.on_host(id) ? 1 : 0);
    }
  for (std::size_t at = 0; at < events.size(); ++at) {
    const Event& event = events[at];
    switch (event.kind) {
      case Event::Kind::compute:
        for (TensorId input : graph.inputs(event.op())) use(input, at);
        for (TensorId output : graph.outputs(event.op())) make(output, at);
        break;
      case Event::Kind::fetch: make(event.tensor(), at); break;
      case Event::Kind::hold: use(event.tensor(), at); break;
    }
  }
  found.stays.resize(found.last_use.size(), 0);
  const auto stay = [&](TensorId id) {
    if (instances.is_made(id)) found.stays[instances.now(id)] = 1;
  };
  for (TensorId output : graph.outputs()) stay(output);
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (const TensorId id(i); graph.stays(id) || !(graph.freeable(id) || graph.on_host(id)))
      stay(id);
  return found;
}

// Emits the steps of events one after the other.
class Emitter {
 public:
  Emitter(const Graph& graph, std::span<const Event> events, InPlace in_place)
      : graph_(graph),
        in_place_(in_place),
        lifetimes_(lifetimes_of(graph, events)),
        instances_(graph),
        copies_(graph.tensor_count(), kNothing),
        computed_(graph.op_count(), 0) {
    if (transfers(events)) copies_ = copies_of(graph, events);
    plan_.steps.reserve(2 * events.size());
  }

  Plan emit(std::span<const Event> events) {
    begin();
    for (now_ = 0; now_ < events.size(); ++now_) {
      const Event& event = events[now_];
      switch (event.kind) {
        case Event::Kind::compute: compute(event.op()); break;
        case Event::Kind::fetch:
          plan_.steps.push_back(Step::prefetch(event.tensor()));
          instances_.make(event.tensor());
          free_ended(event.tensor());
          break;
        case Event::Kind::hold: free_ended(event.tensor()); break;
      }
    }
    return std::move(plan_);
  }

 private:
  // Copies of inputs, then frees of those that nothing uses.
  void begin() {
    for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
      if (const TensorId id(i); graph_.is_input(id)) {
        instances_.make(id);
        copy(id, kAtFirst);
      }
    for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
      if (const TensorId id(i); graph_.is_input(id)) free_ended(id);
  }

  void compute(OpId op) {
    find_overwritten(op);
    plan_.add_compute(op, overwritten_);
    for (TensorId output : graph_.outputs(op)) instances_.make(output);
    if (std::exchange(computed_[op.index()], 1) == 0)
      for (TensorId output : graph_.outputs(op)) copy(output, kAtFirst);
    for (TensorId changed : graph_.mutates(op)) copy(changed, kChanged);
    for (TensorId input : graph_.inputs(op))
      if (std::ranges::find(overwritten_, input) == overwritten_.end()) free_ended(input);
    for (TensorId output : graph_.outputs(op)) free_ended(output);
  }

  // The inputs that end here and in whose place the op can write.
  void find_overwritten(OpId op) {
    overwritten_.clear();
    if (in_place_ != InPlace::where_possible) return;
    TensorId served;
    for (const InPlacePair& pair : graph_.overwrites(op)) {
      if (pair.output == served || !ends(pair.input)) continue;
      overwritten_.push_back(pair.input);
      served = pair.output;
    }
  }

  bool ends(TensorId id) const {
    const std::size_t instance = instances_.now(id);
    return lifetimes_.stays[instance] == 0 && lifetimes_.last_use[instance] == now_;
  }
  void free_ended(TensorId id) {
    if (ends(id)) plan_.steps.push_back(Step::free(id));
  }
  void copy(TensorId id, Copied what) {
    if ((copies_[id.index()] & what) != 0) plan_.steps.push_back(Step::offload(id));
  }

  const Graph& graph_;
  const InPlace in_place_;
  const Lifetimes lifetimes_;
  Instances instances_;
  std::vector<std::uint8_t> copies_;
  std::vector<std::uint8_t> computed_;
  std::vector<TensorId> overwritten_;
  std::size_t now_ = kNever;  // the event
  Plan plan_;
};

}  // namespace

std::vector<Event> events_from(std::span<const OpId> sequence) {
  std::vector<Event> events;
  events.reserve(sequence.size());
  for (const OpId op : sequence) events.push_back(Event::compute(op));
  return events;
}

std::vector<Event> own_events(const Graph& graph) {
  if (!graph.has_tensors_on_host()) return events_from(graph.order());
  std::vector<Event> events;
  std::vector<std::uint8_t> fetched(graph.tensor_count(), 0);
  const auto fetch = [&](TensorId id) {
    if (graph.on_host(id) && std::exchange(fetched[id.index()], 1) == 0)
      events.push_back(Event::fetch(id));
  };
  for (const OpId op : graph.order()) {
    for (TensorId input : graph.inputs(op)) fetch(input);
    events.push_back(Event::compute(op));
  }
  for (TensorId output : graph.outputs()) fetch(output);
  return events;
}

std::vector<OpId> computations(std::span<const Event> events) {
  std::vector<OpId> sequence;
  for (const Event& event : events)
    if (event.is_compute()) sequence.push_back(event.op());
  return sequence;
}

bool transfers(std::span<const Event> events) {
  return std::ranges::any_of(events,
                             [](const Event& event) { return event.kind == Event::Kind::fetch; });
}

Plan plan_from_events(const Graph& graph, std::span<const Event> events,
                      const std::optional<Machine>& machine, InPlace in_place) {
  Plan plan = Emitter(graph, events, in_place).emit(events);
  if (transfers(plan)) plan.machine = machine;
  return plan;
}

Plan plan_from_sequence(const Graph& graph, std::span<const OpId> sequence, InPlace in_place) {
  return plan_from_events(graph, events_from(sequence), std::nullopt, in_place);
}

std::vector<Event> events_of(const Graph& graph, const Plan& plan) {
  std::vector<Event> events;
  events.reserve(plan.steps.size());
  for (const Step& step : plan.steps) {
    if (step.is_compute()) events.push_back(Event::compute(step.op()));
    if (step.kind == StepKind::prefetch) events.push_back(Event::fetch(step.tensor()));
  }
  const std::vector<std::uint8_t> copies = copies_of(graph, events);
  if (std::ranges::all_of(copies, [](std::uint8_t copied) { return copied == kNothing; }))
    return events;

  // The first free behind a copy would wait for it: where it comes late, that is on purpose.
  events.clear();
  std::vector<std::size_t> touched(graph.tensor_count(), kNever);
  std::vector<std::uint8_t> freed(graph.tensor_count(), kNothing);
  Changes changes(graph);
  std::size_t latest = kNever;  // event but for holds
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::offload) continue;
    if (step.kind != StepKind::free) {
      latest = events.size();
      if (step.kind == StepKind::prefetch) {
        events.push_back(Event::fetch(step.tensor()));
        touched[step.tensor().index()] = latest;
        continue;
      }
      const OpId op = step.op();
      events.push_back(Event::compute(op));
      for (TensorId id : graph.inputs(op)) touched[id.index()] = latest;
      for (TensorId id : graph.outputs(op)) touched[id.index()] = latest;
      for (TensorId id : plan.overwritten(step)) freed[id.index()] |= changes.now(id);
      changes.see(op);
      continue;
    }
    const TensorId id = step.tensor();
    const Copied copied = changes.now(id);
    const bool first = (freed[id.index()] & copied) == 0;
    freed[id.index()] |= copied;
    if (!first || (copies[id.index()] & copied) == 0) continue;
    const auto would_overwrite = [&] {
      if (latest == kNever || !events[latest].is_compute()) return false;
      const auto pairs = graph.overwrites(events[latest].op());
      return std::ranges::find(pairs, id, &InPlacePair::input) != pairs.end();
    };
    if (touched[id.index()] != latest || would_overwrite()) events.push_back(Event::hold(id));
  }
  return events;
}

}  // namespace lowtide
