#include "support/swap_plan.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lowtide {

namespace {

enum class Fate : std::uint8_t { kept, hosted, dropped };

class SwapPlan {
 public:
  SwapPlan(Random& random, const Graph& graph)
      : random_(random),
        graph_(graph),
        fate_(graph.tensor_count(), Fate::kept),
        live_(graph.tensor_count(), 0),
        on_host_(graph.tensor_count(), 0),
        computed_(graph.op_count(), 0) {}

  std::optional<Plan> run(const std::vector<OpId>& order, const Machine& machine) {
    plan_.machine = machine;
    const double hosted = random_.uniform(), dropped = random_.uniform() * 0.5;
    for (std::size_t i = 0; i < fate_.size(); ++i) {
      const TensorId id(i);
      on_host_[i] = graph_.on_host(id);
      live_[i] = graph_.is_input(id) && !graph_.on_host(id);
      if (random_.chance(hosted))
        fate_[i] = Fate::hosted;
      else if (random_.chance(dropped))
        fate_[i] = Fate::dropped;
    }
    const std::size_t moment = random_.below(order.size());
    const bool at_once = random_.chance(0.5);
    for (std::size_t i = 0; i < fate_.size(); ++i)
      if (live_[i] != 0 && fate_[i] == Fate::hosted) offload(TensorId(i));
    for (at_ = 0; at_ < order.size(); ++at_) {
      for (TensorId id : graph_.inputs(order[at_]))
        if (!bring(id, 0)) return std::nullopt;
      if (at_ == moment) leave(order[at_]);
      if (!compute(order[at_])) return std::nullopt;
      tidy();
      if (at_ == moment && at_once) fetch_all();
    }
    for (std::size_t i = 0; i < fate_.size(); ++i)
      if (needed_at_end(TensorId(i)) && !bring(TensorId(i), 0)) return std::nullopt;
    for (std::size_t i = 0; i < fate_.size(); ++i)
      if (const TensorId id(i); graph_.on_host(id) && on_host_[i] == 0) offload(id);
    return std::move(plan_);
  }

 private:
  void add(Step step) { plan_.steps.push_back(step); }
  void offload(TensorId id) {
    add(Step::offload(id));
    on_host_[id.index()] = 1;
  }
  void free(TensorId id) {
    add(Step::free(id));
    live_[id.index()] = 0;
  }
  void fetch(TensorId id) {
    add(Step::prefetch(id));
    live_[id.index()] = 1;
  }
  bool may_free(TensorId id) const {
    return !graph_.stays(id) && (graph_.freeable(id) || on_host_[id.index()] != 0);
  }
  bool needed_at_end(TensorId id) const {
    return graph_.is_output(id) || (!graph_.freeable(id) && !graph_.on_host(id));
  }
  bool read_later(TensorId id) const {
    const auto readers = graph_.consumers(id);
    return std::ranges::any_of(readers, [&](OpId op) { return computed_[op.index()] == 0; });
  }

  void leave(OpId op) {
    for (std::size_t i = 0; i < fate_.size(); ++i) {
      const TensorId id(i);
      if (live_[i] == 0 || fate_[i] == Fate::kept || !may_free(id)) continue;
      if (std::ranges::count(graph_.inputs(op), id) > 0) continue;
      if (fate_[i] == Fate::hosted && on_host_[i] == 0) offload(id);
      free(id);
    }
  }

  // What nothing needs any more goes; what is made again and again may go too.
  void tidy() {
    for (std::size_t i = 0; i < fate_.size(); ++i) {
      const TensorId id(i);
      if (live_[i] != 0 && graph_.freeable(id) && !graph_.is_output(id) && !read_later(id))
        free(id);
    }
  }

  void fetch_all() {
    for (std::size_t i = 0; i < fate_.size(); ++i) {
      const TensorId id(i);
      if (live_[i] == 0 && on_host_[i] != 0 && (read_later(id) || needed_at_end(id))) fetch(id);
    }
  }

  bool bring(TensorId id, int depth) {
    if (live_[id.index()] != 0) return true;
    if (on_host_[id.index()] != 0) {
      fetch(id);
      return true;
    }
    const OpId op = graph_.producer(id);
    if (!op.valid() || computed_[op.index()] == 0 || !graph_.recomputable(op) || depth > 8)
      return false;
    for (TensorId input : graph_.inputs(op))
      if (!bring(input, depth + 1)) return false;
    for (TensorId output : graph_.outputs(op))
      if (live_[output.index()] != 0) free(output);
    if (!compute(op)) return false;
    for (TensorId output : graph_.outputs(op))
      if (output != id && !read_later(output) && !graph_.is_output(output)) free(output);
    return true;
  }

  bool compute(OpId op) {
    for (TensorId input : graph_.inputs(op))
      if (live_[input.index()] == 0) return false;
    const bool first = computed_[op.index()] == 0;
    computed_[op.index()] = 1;
    std::vector<TensorId> over;
    TensorId served;
    for (const InPlacePair& pair : graph_.overwrites(op))
      if (pair.output != served && !read_later(pair.input) && random_.chance(0.8)) {
        over.push_back(pair.input);
        served = pair.output;
      }
    plan_.add_compute(op, over);
    for (TensorId gone : over) live_[gone.index()] = 0;
    for (TensorId made : graph_.outputs(op)) {
      live_[made.index()] = 1;
      if (first && fate_[made.index()] == Fate::hosted && (read_later(made) || needed_at_end(made)))
        offload(made);
    }
    for (TensorId changed : graph_.mutates(op)) {
      on_host_[changed.index()] = 0;
      if (fate_[changed.index()] == Fate::hosted && needed_at_end(changed)) offload(changed);
    }
    return true;
  }

  Random& random_;
  const Graph& graph_;
  std::vector<Fate> fate_;
  std::vector<std::uint8_t> live_, on_host_, computed_;
  std::size_t at_ = 0;
  Plan plan_;
};

std::vector<OpId> order_of(Random& random, const Graph& graph, Order order) {
  if (order == Order::given) return {graph.order().begin(), graph.order().end()};
  std::vector<std::size_t> waiting(graph.op_count());
  std::vector<OpId> ready, result;
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    waiting[i] = graph.predecessors(OpId(i)).size();
    if (waiting[i] == 0) ready.push_back(OpId(i));
  }
  while (!ready.empty()) {
    std::swap(ready[random.below(ready.size())], ready.back());
    result.push_back(ready.back());
    ready.pop_back();
    for (OpId next : graph.successors(result.back()))
      if (--waiting[next.index()] == 0) ready.push_back(next);
  }
  return result;
}

}  // namespace

std::optional<Plan> swap_plan(Random& random, const Graph& graph, Order order,
                              const Machine& machine) {
  const std::vector<OpId> ops = order_of(random, graph, order);
  if (ops.empty()) return std::nullopt;
  return SwapPlan(random, graph).run(ops, machine);
}

}  // namespace lowtide
