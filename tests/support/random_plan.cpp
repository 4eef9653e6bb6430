// A walk frees only what it believes it can bring back; where it believed wrongly it starts again,
// and after some tries it settles for the plan that frees at last use.
#include "support/random_plan.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "lowtide/plan/events.h"

namespace lowtide {

namespace {

class Walk {
 public:
  Walk(Random& random, const Graph& graph, const RandomPlanSettings& settings)
      : random_(random),
        graph_(graph),
        settings_(settings),
        live_(graph.tensor_count(), false),
        on_host_(graph.tensor_count(), false),
        mutated_(graph.tensor_count(), false),
        computed_(graph.op_count(), false) {
    for (std::size_t i = 0; i < live_.size(); ++i) {
      const TensorId id(i);
      on_host_[i] = graph.on_host(id);
      live_[i] = graph.is_input(id) && !graph.on_host(id);
    }
  }

  // Empty if the walk got stuck.
  std::optional<Plan> run() {
    for (const OpId op : op_order()) {
      fidget();
      if (!compute(op, 0)) return std::nullopt;
    }
    fidget();
    // Bringing one tensor back may cost another: a few rounds settle it or nothing will.
    for (int round = 0; round < 4; ++round) {
      bool complete = true;
      for (std::size_t i = 0; i < graph_.tensor_count(); ++i) {
        const TensorId id(i);
        if (graph_.on_host(id) && !on_host_[i]) {
          offload(id);
          if (!on_host_[i]) return std::nullopt;
        }
        const bool must_be = graph_.is_output(id) || (!graph_.freeable(id) && !graph_.on_host(id));
        if (live(id) || !must_be) continue;
        complete = false;
        if (!bring(id, 0)) return std::nullopt;
      }
      if (complete) return std::move(plan_);
    }
    return std::nullopt;
  }

 private:
  static constexpr int kDeepest = 6;

  std::vector<bool>::reference live(TensorId id) { return live_[id.index()]; }
  bool restless() { return random_.chance(settings_.restless); }
  TensorId any_tensor() { return TensorId(random_.below(graph_.tensor_count())); }

  std::vector<OpId> op_order() {
    if (settings_.order == Order::given) return {graph_.order().begin(), graph_.order().end()};
    std::vector<std::size_t> waiting(graph_.op_count());
    std::vector<OpId> ready, order;
    for (std::size_t i = 0; i < graph_.op_count(); ++i) {
      waiting[i] = graph_.predecessors(OpId(i)).size();
      if (waiting[i] == 0) ready.push_back(OpId(i));
    }
    while (!ready.empty()) {
      std::swap(ready[random_.below(ready.size())], ready.back());
      order.push_back(ready.back());
      ready.pop_back();
      for (OpId next : graph_.successors(order.back()))
        if (--waiting[next.index()] == 0) ready.push_back(next);
    }
    return order;
  }

  // Steps that nobody needs.
  void fidget() {
    if (graph_.tensor_count() == 0) return;
    for (int tries = 0; tries < 8 && restless(); ++tries) {
      const TensorId id = any_tensor();
      switch (random_.below(5)) {
        case 0: offload(id); break;
        case 1: prefetch(id); break;
        case 2: bring(id, 0); break;
        default:
          if (live(id) && can_return(id)) free(id);
      }
    }
  }

  bool still_read(TensorId id) const {
    const auto consumers = graph_.consumers(id);
    return std::any_of(consumers.begin(), consumers.end(),
                       [&](OpId op) { return !computed_[op.index()]; });
  }

  bool can_return(TensorId id) {
    if (graph_.stays(id)) return false;
    if (on_host_[id.index()]) return true;
    if (!graph_.freeable(id)) return false;
    if (!graph_.is_output(id) && !still_read(id)) return restless();
    const OpId op = graph_.producer(id);
    return op.valid() && may_run_again(op) && restless();
  }

  bool may_run_again(OpId op) const {
    if (!graph_.recomputable(op)) return false;
    for (TensorId input : graph_.inputs(op))
      if (mutated_[input.index()]) return false;
    for (TensorId output : graph_.outputs(op))
      if (mutated_[output.index()] && graph_.is_output(output)) return false;
    return true;
  }

  void offload(TensorId id) {
    if (!settings_.transfers || !live(id)) return;
    plan_.steps.push_back(Step::offload(id));
    on_host_[id.index()] = true;
  }

  bool prefetch(TensorId id) {
    if (live(id) || !on_host_[id.index()]) return false;
    plan_.steps.push_back(Step::prefetch(id));
    live(id) = true;
    return true;
  }

  void free(TensorId id) {
    plan_.steps.push_back(Step::free(id));
    live(id) = false;
  }

  bool bring(TensorId id, int depth) {
    if (live(id)) return true;
    const OpId op = graph_.producer(id);
    const bool could_run = op.valid() && computed_[op.index()] && may_run_again(op);
    if (!could_run || restless())
      if (prefetch(id)) return true;
    return could_run && depth < kDeepest && compute(op, depth);
  }

  bool compute(OpId op, int depth) {
    for (TensorId input : graph_.inputs(op))
      if (mutated_[input.index()] || !bring(input, depth + 1)) return false;
    for (TensorId output : graph_.outputs(op))
      if (live(output)) free(output);
    for (TensorId input : graph_.inputs(op))
      if (!live(input)) return false;  // lost again while another was brought
    const std::vector<TensorId> overwritten = overwritable(op);
    plan_.add_compute(op, overwritten);
    for (TensorId gone : overwritten) live(gone) = false;
    computed_[op.index()] = true;
    for (TensorId output : graph_.outputs(op)) live(output) = true;
    for (TensorId changed : graph_.mutates(op)) {
      mutated_[changed.index()] = true;
      on_host_[changed.index()] = false;
    }
    return true;
  }

  // Some of what the op can write over and need not keep.
  std::vector<TensorId> overwritable(OpId op) {
    std::vector<TensorId> chosen;
    TensorId served;
    for (const InPlacePair& pair : graph_.overwrites(op)) {
      if (pair.output == served || random_.chance(0.3)) continue;
      const bool needed = std::ranges::any_of(graph_.consumers(pair.input), [&](OpId reader) {
        return reader != op && !computed_[reader.index()];
      });
      if (needed && !can_return(pair.input)) continue;
      chosen.push_back(pair.input);
      served = pair.output;
    }
    return chosen;
  }

  Random& random_;
  const Graph& graph_;
  const RandomPlanSettings& settings_;
  std::vector<bool> live_, on_host_, mutated_, computed_;
  Plan plan_;
};

}  // namespace

Machine random_machine(Random& random) {
  const auto link = [&] {
    return Link{Ticks(random.between(0, 6)), Bytes(random.between(1, 5)),
                Ticks(random.between(0, 8))};
  };
  return {link(), link()};
}

Plan random_plan(Random& random, const Graph& graph, const RandomPlanSettings& settings) {
  Plan plan;
  if (settings.transfers) plan.machine = random_machine(random);
  for (int tries = 0; tries < 8; ++tries) {
    if (auto walked = Walk(random, graph, settings).run()) {
      walked->machine = plan.machine;
      return std::move(*walked);
    }
  }
  const std::optional<Machine> machine = plan.machine;
  plan = plan_from_events(graph, own_events(graph), machine);
  plan.machine = machine;
  return plan;
}

}  // namespace lowtide
