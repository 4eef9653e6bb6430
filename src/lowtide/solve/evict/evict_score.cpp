// The published scores. The lowest is evicted first; tensors without a further use come before all
// others.
#include <algorithm>
#include <array>
#include <utility>

#include "lowtide/solve/evict/evict_run.h"

namespace lowtide::solve::evict {

namespace {
constexpr std::size_t kMostLinks = 256;
}

std::span<const TensorId> EvictRun::sources(TensorId id) {
  const OpId producer = graph_.producer(id);
  if (!producer.valid()) return {};
  const auto inputs = graph_.inputs(producer);
  context_.limits().spend(static_cast<std::int64_t>(std::min(inputs.size(), kMostLinks) / 32));
  return inputs.first(std::min(inputs.size(), kMostLinks));
}

std::span<const OpId> EvictRun::readers(TensorId id, std::size_t most) {
  const auto all = graph_.consumers(id);
  context_.limits().spend(static_cast<std::int64_t>(std::min(all.size(), most) / 32));
  return all.first(std::min(all.size(), most));
}

double EvictRun::key(TensorId id) {
  const OpId producer = graph_.producer(id);
  const double bytes = static_cast<double>(std::max<std::int64_t>(1, graph_.bytes(id).count()));
  const double time =
      producer.valid() ? static_cast<double>(graph_.time(producer).count()) + 1.0 : 1.0;
  const std::size_t next = std::min(state(id).next_use, order_.size());
  const double distance = next > now_ ? static_cast<double>(next - now_) : 1.0;
  double key = 0;
  switch (settings_.score) {
    case EvictScore::dtr: key = (time + searched_time(id, true)) / (bytes * distance); break;
    case EvictScore::dtr_eq: key = (time + evicted_time(id)) / (bytes * distance); break;
    case EvictScore::local: key = time / (bytes * distance); break;
    case EvictScore::lru: key = 1.0 / distance; break;
    case EvictScore::size: key = 1.0 / bytes; break;
    case EvictScore::msps: key = (time + searched_time(id, false)) / bytes; break;
  }
  constexpr double kDeadFirst = 1e-9;
  return dead(id) || state(id).next_use == SIZE_MAX ? key * kDeadFirst : key;
}

// The time of the groups of evicted tensors adjacent to this one.
double EvictRun::evicted_time(TensorId id) {
  double sum = 0;
  constexpr std::size_t kNeighbours = 16;
  std::array<std::int32_t, kNeighbours> seen{};
  std::size_t count = 0;
  const auto add = [&](TensorId neighbour) {
    if (count == kNeighbours || state(neighbour).group < 0) return;
    const std::int32_t group = find_group(state(neighbour).group);
    if (std::find(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(count), group) !=
        seen.begin() + static_cast<std::ptrdiff_t>(count))
      return;
    seen[count++] = group;
    sum += std::max(0.0, group_time_[static_cast<std::size_t>(group)]);
  };
  for (TensorId input : sources(id)) add(input);
  for (OpId reader : readers(id, kNeighbours))
    for (TensorId made : graph_.outputs(reader)) add(made);
  return sum;
}

// The time of the evicted ancestors that recomputing this tensor would reach (and for the whole
// neighbourhood also of descendants), through evicted tensors only; the search is truncated.
double EvictRun::searched_time(TensorId id, bool descendants) {
  constexpr std::size_t kVisits = 48;
  ++visit_;
  visited_[id.index()] = visit_;
  std::size_t visits = 0;
  double sum = 0;
  const auto search = [&](auto expand) {
    stack_.assign(1, id);
    while (!stack_.empty() && visits < kVisits) {
      const TensorId at = stack_.back();
      stack_.pop_back();
      expand(at, [&](TensorId next) {
        if (!gone(next) || visited_[next.index()] == visit_ || !graph_.producer(next).valid() ||
            visits >= kVisits)
          return;
        visited_[next.index()] = visit_;
        ++visits;
        sum += static_cast<double>(graph_.time(graph_.producer(next)).count());
        stack_.push_back(next);
      });
    }
  };
  search([&](TensorId at, auto add) {
    for (TensorId input : sources(at)) add(input);
  });
  if (!descendants) return sum;
  search([&](TensorId at, auto add) {
    for (OpId reader : readers(at, kVisits))
      for (TensorId made : graph_.outputs(reader)) add(made);
  });
  return sum;
}

std::int32_t EvictRun::find_group(std::int32_t group) {
  const auto parent = [&](std::int32_t g) -> std::int32_t& {
    return group_parent_[static_cast<std::size_t>(g)];
  };
  while (parent(group) != group) group = parent(group) = parent(parent(group));
  return group;
}

// An evicted tensor joins the groups of its evicted neighbours. As in the paper, a recomputed
// tensor subtracts its time from its group, but the group is not split.
void EvictRun::join_groups(TensorId id) {
  const auto own = static_cast<std::int32_t>(group_parent_.size());
  group_parent_.push_back(own);
  group_time_.push_back(static_cast<double>(graph_.time(graph_.producer(id)).count()));
  state(id).group = own;
  const auto join = [&](TensorId neighbour) {
    if (state(neighbour).group < 0) return;
    const std::int32_t from = find_group(state(neighbour).group), to = find_group(own);
    if (from == to) return;
    group_parent_[static_cast<std::size_t>(to)] = from;
    group_time_[static_cast<std::size_t>(from)] += group_time_[static_cast<std::size_t>(to)];
  };
  for (TensorId input : sources(id)) join(input);
  for (OpId reader : readers(id, kMostLinks))
    for (TensorId made : graph_.outputs(reader)) join(made);
}

}  // namespace lowtide::solve::evict
