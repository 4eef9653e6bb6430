// Most changes break a plan at once; `again` and `away` make several steps that belong together, so
// that what they break lies deeper.
#include "support/mutated_plan.h"

#include <algorithm>
#include <array>
#include <vector>

namespace lowtide {

std::string_view to_string(Mutation mutation) {
  constexpr std::array<std::string_view, kMutations> kNames = {
      "drop",   "duplicate", "swap", "move",     "retarget", "rekind",
      "insert", "again",     "away", "truncate", "forget"};
  return kNames[static_cast<std::size_t>(mutation)];
}

namespace {

bool is_compute(StepKind kind) { return Step{kind, 0}.is_compute(); }

// A step in place overwrites one input of a pair of its op, or now and then any tensor at all.
Step random_step(Random& random, const Graph& graph, Plan& plan, StepKind kind) {
  const std::size_t count = is_compute(kind) ? graph.op_count() : graph.tensor_count();
  // One index too many now and then.
  const std::size_t limit = count + (count == 0 || random.chance(0.02) ? 1 : 0);
  Step step{kind, static_cast<std::int32_t>(random.below(limit))};
  if (kind != StepKind::compute_in_place) return step;
  std::span<const InPlacePair> pairs;
  if (static_cast<std::size_t>(step.index) < graph.op_count()) pairs = graph.in_place(step.op());
  step.first = static_cast<std::uint32_t>(plan.in_place_of.size());
  step.count = 1;
  plan.in_place_of.push_back(pairs.empty() || random.chance(0.1)
                                 ? TensorId(random.below(graph.tensor_count() + 1))
                                 : pairs[random.below(pairs.size())].input);
  return step;
}

StepKind random_kind(Random& random) { return kStepKinds[random.below(kStepKinds.size())]; }

void insert(Plan& plan, std::size_t at, Step step) {
  plan.steps.insert(plan.steps.begin() + static_cast<std::ptrdiff_t>(at), step);
}

// Between the first computation of the op, if it has one, and the end.
void compute_again(Random& random, const Graph& graph, Plan& plan) {
  const OpId op(random.below(graph.op_count()));
  const auto first = std::find(plan.steps.begin(), plan.steps.end(), Step::compute(op));
  const auto begin = static_cast<std::size_t>(first - plan.steps.begin());
  const std::size_t at = std::min(begin + 1 + random.below(8), plan.steps.size());
  insert(plan, at, Step::compute(op));
  for (TensorId output : graph.outputs(op)) insert(plan, at, Step::free(output));
}

void send_away(Random& random, Plan& plan) {
  std::vector<std::size_t> offloads;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i].kind == StepKind::offload) offloads.push_back(i);
  if (offloads.empty()) return;
  const std::size_t from = offloads[random.below(offloads.size())];
  const TensorId id = plan.steps[from].tensor();
  const std::size_t gone = from + 1 + random.below(plan.steps.size() - from);
  insert(plan, gone, Step::free(id));
  insert(plan, gone + 1 + random.below(plan.steps.size() - gone), Step::prefetch(id));
}

}  // namespace

Plan mutated(Random& random, const Graph& graph, Plan plan, Mutation mutation) {
  std::vector<Step>& steps = plan.steps;
  if (mutation == Mutation::forget) plan.machine.reset();
  if (mutation == Mutation::insert)
    insert(plan, random.below(steps.size() + 1),
           random_step(random, graph, plan, random_kind(random)));
  if (mutation == Mutation::again && graph.op_count() > 0) compute_again(random, graph, plan);
  if (mutation == Mutation::away) send_away(random, plan);
  if (steps.empty()) return plan;
  const std::size_t at = random.below(steps.size());
  const auto there = steps.begin() + static_cast<std::ptrdiff_t>(at);
  switch (mutation) {
    case Mutation::drop: steps.erase(there); break;
    case Mutation::duplicate: steps.insert(there, *there); break;
    case Mutation::swap:
      if (at + 1 < steps.size()) std::swap(steps[at], steps[at + 1]);
      break;
    case Mutation::move: {
      const Step step = *there;
      steps.erase(there);
      insert(plan, random.below(steps.size() + 1), step);
      break;
    }
    case Mutation::retarget: *there = random_step(random, graph, plan, there->kind); break;
    case Mutation::rekind: {
      Step step = random_step(random, graph, plan, random_kind(random));
      const std::size_t limit = step.is_compute() ? graph.op_count() : graph.tensor_count();
      if (static_cast<std::size_t>(there->index) >= limit) break;
      step.index = there->index;
      *there = step;
      break;
    }
    case Mutation::truncate: steps.resize(at); break;
    case Mutation::insert:
    case Mutation::again:
    case Mutation::away:
    case Mutation::forget: break;
  }
  return plan;
}

}  // namespace lowtide
