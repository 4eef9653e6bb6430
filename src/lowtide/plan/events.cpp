// One pass gives every making of a tensor its last use, and says what is copied; a second emits the
// steps.
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
  constexpr std::size_t kNever = SIZE_MAX;
  // Instances are numbered in the order of their making: inputs first, then what each event makes.
  std::vector<std::size_t> current(graph.tensor_count(), kNever);
  std::vector<std::size_t> last_use;
  const auto make = [&](TensorId id, std::size_t at) {
    current[id.index()] = last_use.size();
    last_use.push_back(at);
  };
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (graph.is_input(TensorId(i))) make(TensorId(i), kNever);
  for (std::size_t at = 0; at < events.size(); ++at) {
    const Event& event = events[at];
    if (!event.is_compute()) {
      if (event.kind == Event::Kind::fetch)
        make(event.tensor(), at);
      else
        last_use[current[event.tensor().index()]] = at;
      continue;
    }
    for (TensorId input : graph.inputs(event.op())) last_use[current[input.index()]] = at;
    for (TensorId output : graph.outputs(event.op())) make(output, at);
  }
  std::vector<std::uint8_t> keep(last_use.size(), 0);
  const auto keep_last = [&](TensorId id) {
    if (current[id.index()] != kNever) keep[current[id.index()]] = 1;
  };
  for (TensorId output : graph.outputs()) keep_last(output);
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (const TensorId id(i); graph.stays(id) || !(graph.freeable(id) || graph.on_host(id)))
      keep_last(id);

  Plan plan;
  plan.steps.reserve(2 * events.size());
  std::vector<std::uint8_t> copies(graph.tensor_count(), kNothing);
  if (transfers(events)) copies = copies_of(graph, events);
  const auto copy = [&](TensorId id, Copied what) {
    if ((copies[id.index()] & what) != 0) plan.steps.push_back(Step::offload(id));
  };
  std::size_t made = 0;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (const TensorId id(i); graph.is_input(id)) {
      current[i] = made++;
      // Not live at all, or, where it is never fetched, throughout: see own_plan.
      if (graph.on_host(id)) keep[current[i]] = 1;
      copy(id, kAtFirst);
    }
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (const TensorId id(i);
        graph.is_input(id) && keep[current[i]] == 0 && last_use[current[i]] == kNever)
      plan.steps.push_back(Step::free(id));
  std::vector<std::uint8_t> computed(graph.op_count(), 0);
  std::vector<TensorId> overwritten;
  for (std::size_t at = 0; at < events.size(); ++at) {
    const Event& event = events[at];
    const auto ends = [&](TensorId id) {
      const std::size_t instance = current[id.index()];
      return keep[instance] == 0 && last_use[instance] == at;
    };
    if (!event.is_compute()) {
      const TensorId id = event.tensor();
      if (event.kind == Event::Kind::fetch) {
        plan.steps.push_back(Step::prefetch(id));
        current[id.index()] = made++;
      }
      if (ends(id)) plan.steps.push_back(Step::free(id));
      continue;
    }
    const OpId op = event.op();
    overwritten.clear();
    TensorId served;
    if (in_place == InPlace::where_possible)
      for (const InPlacePair& pair : graph.overwrites(op)) {
        if (pair.output == served || !ends(pair.input)) continue;
        overwritten.push_back(pair.input);
        served = pair.output;
      }
    plan.add_compute(op, overwritten);
    for (TensorId output : graph.outputs(op)) current[output.index()] = made++;
    if (std::exchange(computed[op.index()], 1) == 0)
      for (TensorId output : graph.outputs(op)) copy(output, kAtFirst);
    for (TensorId changed : graph.mutates(op)) copy(changed, kChanged);
    for (TensorId input : graph.inputs(op))
      if (ends(input) && std::ranges::find(overwritten, input) == overwritten.end())
        plan.steps.push_back(Step::free(input));
    for (TensorId output : graph.outputs(op))
      if (ends(output)) plan.steps.push_back(Step::free(output));
  }
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
  constexpr std::size_t kNever = SIZE_MAX;
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
