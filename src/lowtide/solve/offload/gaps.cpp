// One pass along the sequence. At each position above the target, gaps that span it are taken from
// a heap, the best first, until the target is kept. A gap's score only falls during the pass (less
// of it lies ahead), so an old score in the heap is an upper bound: the top is scored again, and
// taken if it still is the best.
#include "lowtide/solve/offload/gaps.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "lowtide/sim/simulate.h"

namespace lowtide::solve::offload {

namespace {
constexpr std::size_t kLooks = 8;
}

Gaps::Gaps(const Problem& problem, std::span<const OpId> sequence)
    : problem_(problem), graph_(problem.graph), sequence_(sequence.begin(), sequence.end()) {
  constexpr std::size_t kNowhere = SIZE_MAX;
  std::vector<std::size_t> idle_from(graph_.tensor_count(), kNowhere);
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
    if (graph_.is_input(TensorId(i))) idle_from[i] = 0;
  std::vector<std::uint8_t> home(graph_.tensor_count(), 0);
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i) home[i] = graph_.on_host(TensorId(i));
  const auto use = [&](TensorId id, std::size_t at) {
    const std::size_t from = std::exchange(idle_from[id.index()], at + 1);
    const bool at_home = std::exchange(home[id.index()], 0) != 0;
    if (!at_home && (from >= at || graph_.stays(id))) return;
    gaps_.push_back({id, from, at});
  };
  for (std::size_t at = 0; at < sequence_.size(); ++at) {
    for (TensorId input : graph_.inputs(sequence_[at])) use(input, at);
    for (TensorId output : graph_.outputs(sequence_[at])) idle_from[output.index()] = at + 1;
  }
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i) {
    const TensorId id(i);
    if (graph_.is_output(id) || !(graph_.freeable(id) || graph_.on_host(id)))
      use(id, sequence_.size());
  }
  std::stable_sort(gaps_.begin(), gaps_.end(),
                   [](const Gap& a, const Gap& b) { return a.from < b.from; });
  std::vector<std::uint8_t> seen(graph_.tensor_count(), 0);
  for (const Gap& gap : gaps_)
    due_.push_back(graph_.on_host(gap.tensor) && std::exchange(seen[gap.tensor.index()], 1) == 0);

  const Plan plan = plan_from_events(graph_, with_fetches(due_), problem_.machine);
  const Timeline timeline = simulate(graph_, plan);
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i].is_compute()) use_.push_back(timeline.live[i]);
  Bytes end = timeline.start;
  if (!plan.steps.empty()) end = timeline.live.back();
  use_.push_back(end);
  peak_ = timeline.cost.peak;
}

std::vector<Event> Gaps::with_fetches(const std::vector<std::uint8_t>& away) const {
  std::vector<std::vector<TensorId>> before(sequence_.size() + 1);
  for (std::size_t k = 0; k < gaps_.size(); ++k)
    if (away[k] != 0) before[gaps_[k].until].push_back(gaps_[k].tensor);
  std::vector<Event> events;
  for (std::size_t at = 0; at <= sequence_.size(); ++at) {
    for (const TensorId id : before[at]) events.push_back(Event::fetch(id));
    if (at < sequence_.size()) events.push_back(Event::compute(sequence_[at]));
  }
  return events;
}

std::optional<std::vector<Event>> Gaps::choose(Bytes target, Score score, Limits& limits) const {
  const std::size_t end = sequence_.size();
  // Time above the target before each position; positions without duration count slightly.
  std::vector<double> above(end + 1, 0);
  for (std::size_t at = 0; at < end; ++at)
    above[at + 1] =
        above[at] +
        (use_[at] > target ? 1e-3 + static_cast<double>(graph_.time(sequence_[at]).count()) : 0);
  std::vector<std::uint8_t> copied(graph_.tensor_count(), 0), away(due_);
  Bytes host;
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
    if (const TensorId id(i); graph_.on_host(id)) {
      copied[i] = 1;
      host += graph_.bytes(id);
    }
  const auto value = [&](const Gap& gap, std::size_t at) {
    if (score == Score::farthest) return static_cast<double>(gap.until);
    const Bytes bytes = graph_.bytes(gap.tensor);
    double transfer =
        static_cast<double>(problem_.machine->host_to_device.transfer_time(bytes).count());
    if (copied[gap.tensor.index()] == 0)
      transfer +=
          static_cast<double>(problem_.machine->device_to_host.transfer_time(bytes).count());
    return static_cast<double>(bytes.count()) * (above[gap.until] - above[at]) / (1e-3 + transfer);
  };
  using Entry = std::pair<double, std::size_t>;
  const auto worse = [](const Entry& a, const Entry& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  };
  std::priority_queue<Entry, std::vector<Entry>, decltype(worse)> heap(worse);
  std::vector<Entry> looked;
  std::vector<std::vector<TensorId>> back(end + 1);
  Bytes gone;
  std::size_t next = 0;
  for (std::size_t at = 0; at <= end; ++at) {
    for (const TensorId id : back[at]) gone -= graph_.bytes(id);
    for (; next < gaps_.size() && gaps_[next].from <= at; ++next)
      if (due_[next] == 0 && graph_.bytes(gaps_[next].tensor) > Bytes(0))
        heap.emplace(value(gaps_[next], at), next);
    while (use_[at] - gone > target && !heap.empty()) {
      if (limits.spend()) return std::nullopt;
      looked.clear();
      while (looked.size() < kLooks && !heap.empty()) {
        const std::size_t k = heap.top().second;
        heap.pop();
        if (gaps_[k].until <= at) continue;
        looked.emplace_back(value(gaps_[k], at), k);
        if (!heap.empty() && !worse(looked.back(), heap.top())) break;
      }
      if (looked.empty()) break;
      const auto best = std::ranges::max_element(looked, worse);
      const Gap& gap = gaps_[best->second];
      const std::size_t taken = best->second;
      for (const Entry& entry : looked)
        if (entry.second != taken) heap.push(entry);
      const Bytes bytes = graph_.bytes(gap.tensor);
      if (copied[gap.tensor.index()] == 0) {
        if (problem_.host_budget && bytes > *problem_.host_budget - host) continue;
        copied[gap.tensor.index()] = 1;
        host += bytes;
      }
      away[taken] = 1;
      gone += bytes;
      back[gap.until].push_back(gap.tensor);
    }
    if (limits.spend()) return std::nullopt;
  }
  return with_fetches(away);
}

}  // namespace lowtide::solve::offload
