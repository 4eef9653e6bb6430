// Problem: a lower bound on the duration of every plan on two lanes, without looking at memory.
//
// Idea: take one lane alone. Of each of its ops is known what must run before it at the least (its
// head: the longest chain of ops that it reads from) and after it (its tail). The ops of the lane
// run one after another, so no plan is shorter than the best schedule of one machine with these
// release times and tails. If ops may be interrupted, that schedule is found by always running the
// op with the longest tail among those that have been released; its length bounds all others.
//
// With the given order first computations alone, of which nothing is freed, take no longer than any
// plan: recomputations, frees and transfers only make others wait.
//
// Source: Jackson's preemptive schedule; Carlier, The one-machine sequencing problem (1982).
//
// Invariant: heads and tails follow only links by tensors: an op waits until what it reads exists.
// An op in `after` need only have been issued, so it has no part in a chain.
//
// Loses: what waits in the middle of a plan because of both lanes together, or because of the
// budget, is not seen.
#include "lowtide/driver/network_bound.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "lowtide/base/id_vector.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::driver {

namespace {

using Chains = IdVector<OpId, Ticks>;

struct Job {
  Ticks head, time, tail;
};

// The longest chain before each op; after each op for the reversed order.
Chains heads_of(const Graph& graph) {
  Chains heads(graph.op_count());
  for (const OpId op : graph.order())
    for (const TensorId input : graph.inputs(op))
      if (const OpId maker = graph.producer(input); maker.valid())
        heads[op] = std::max(heads[op], heads[maker] + graph.time(maker));
  return heads;
}

Chains tails_of(const Graph& graph) {
  Chains tails(graph.op_count());
  for (auto at = graph.order().rbegin(); at != graph.order().rend(); ++at)
    for (const TensorId output : graph.outputs(*at))
      for (const OpId reader : graph.consumers(output))
        tails[*at] = std::max(tails[*at], graph.time(reader) + tails[reader]);
  return tails;
}

Ticks preemptive_length(std::vector<Job> jobs) {
  std::ranges::stable_sort(jobs, {}, &Job::head);
  const auto shorter = [](const Job& a, const Job& b) { return a.tail < b.tail; };
  std::priority_queue<Job, std::vector<Job>, decltype(shorter)> released(shorter);
  Ticks now, length;
  std::size_t next = 0;
  while (next < jobs.size() || !released.empty()) {
    if (released.empty()) now = std::max(now, jobs[next].head);
    for (; next < jobs.size() && jobs[next].head <= now; ++next) released.push(jobs[next]);
    Job job = released.top();
    released.pop();
    Ticks ran = job.time;
    if (next < jobs.size()) ran = std::min(ran, jobs[next].head - now);
    now += ran;
    job.time -= ran;
    if (job.time > Ticks(0))
      released.push(job);
    else
      length = std::max(length, now + job.tail);
  }
  return length;
}

Ticks first_computations_time(const Graph& graph) {
  if (graph.has_tensors_on_host())
    return first_computations_time(Graph(graph).with_homes_on_device());
  Plan plan;
  for (const OpId op : graph.order()) plan.steps.push_back(Step::compute(op));
  return simulate(graph, plan).cost.duration;
}

}  // namespace

Ticks network_bound(const Graph& graph, Order order) {
  const Chains heads = heads_of(graph), tails = tails_of(graph);
  Ticks bound = order == Order::given ? first_computations_time(graph) : graph.least_time();
  for (const bool network : {false, true}) {
    std::vector<Job> jobs;
    for (const OpId op : graph.order())
      if (graph.on_network(op) == network) jobs.push_back({heads[op], graph.time(op), tails[op]});
    bound = std::max(bound, preemptive_length(std::move(jobs)));
  }
  return bound;
}

}  // namespace lowtide::driver
