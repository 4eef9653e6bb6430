// Converts plans to values of the model, and back.
#include <algorithm>
#include <utility>

#include "lowtide/solve/exact/moccasin/retention.h"

namespace lowtide::solve::exact::moccasin {

namespace {

constexpr std::int64_t kNever = -1;

// The event (or, staged, the stage) of each computation of the sequence. The model has no events
// for a stage that computes an op twice, or computes ops out of order: then the first computation
// counts, and the order is the model's.
std::vector<std::vector<std::int64_t>> times(const Events& events, std::size_t ops,
                                             std::span<const OpId> sequence) {
  std::vector<std::vector<std::int64_t>> all(ops);
  std::int64_t number = 0;
  std::size_t stage = 1;
  for (const OpId op : sequence) {
    auto& mine = all[op.index()];
    ++number;
    std::int64_t at = number;
    if (events.domain() == Domain::staged) {
      at = events.event(stage, events.position(op));
      if (mine.empty()) ++stage;
    }
    if (mine.empty() || mine.back() < at) mine.push_back(at);
  }
  return all;
}

}  // namespace

std::vector<OpId> at_events(const Events& events, std::size_t ops, std::span<const OpId> sequence) {
  const auto when = times(events, ops, sequence);
  std::vector<std::pair<std::int64_t, OpId>> computed;
  for (std::size_t i = 0; i < ops; ++i)
    for (const std::int64_t at : when[i]) computed.emplace_back(at, OpId(i));
  std::sort(computed.begin(), computed.end());
  std::vector<OpId> result;
  for (const auto& [at, op] : computed) result.push_back(op);
  return result;
}

void RetentionModel::hint(std::span<const OpId> sequence) {
  const auto when = times(events_, graph_.op_count(), sequence);
  std::vector<std::int64_t> spare;  // events without a computation
  if (events_.domain() == Domain::free) {
    std::vector<std::uint8_t> used(static_cast<std::size_t>(events_.end()) + 1, 0);
    for (const auto& list : when)
      for (const std::int64_t at : list)
        if (at < events_.end()) used[static_cast<std::size_t>(at)] = 1;
    for (std::int64_t at = 1; at < events_.end(); ++at)
      if (used[static_cast<std::size_t>(at)] == 0) spare.push_back(at);
  }
  const auto hint_start = [&](const Interval& interval, std::int64_t at) {
    model_.add_hint(interval.start.var, (at - interval.start.offset) / interval.start.coefficient);
  };
  // The last event at which the tensor made at `from` is read before it is made again.
  const auto last_use = [&](TensorId tensor, std::int64_t from, std::int64_t until) {
    std::int64_t last = kNever;
    for (const OpId reader : graph_.consumers(tensor))
      for (const std::int64_t at : when[reader.index()])
        if (at > from && (until == kNever || at < until)) last = std::max(last, at);
    if (graph_.is_output(tensor) && until == kNever) last = events_.end();
    return last;
  };
  for (const OpId op : events_.order()) {
    const auto& mine = when[op.index()];
    const auto& list = intervals_[op.index()];
    for (std::size_t k = 0; k < list.size(); ++k) {
      const Interval& interval = list[k];
      const bool active = k < mine.size();
      if (interval.active != one_) model_.add_hint(interval.active, active);
      if (!active) {
        if (interval.start.var == engines::CpExpr::kNone) continue;
        std::int64_t at = interval.last;
        if (!spare.empty()) {
          at = spare.back();
          spare.pop_back();
        }
        hint_start(interval, at);
        continue;
      }
      if (interval.start.var != engines::CpExpr::kNone) hint_start(interval, mine[k]);
      const std::int64_t until = k + 1 < mine.size() ? mine[k + 1] : kNever;
      for (std::size_t i = 0; i < interval.ends.size(); ++i) {
        const std::int64_t last = last_use(graph_.outputs(op)[i], mine[k], until);
        model_.add_hint(interval.ends[i], last == kNever ? mine[k] : last);
      }
    }
  }
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
    if (graph_.is_input(TensorId(i)) && !held(TensorId(i)).empty())
      model_.add_hint(input_end_[i], std::max<std::int64_t>(0, last_use(TensorId(i), 0, kNever)));
}

std::optional<std::vector<OpId>> RetentionModel::sequence(
    std::span<const std::int64_t> values) const {
  std::vector<std::pair<std::int64_t, OpId>> computed;
  const auto value = [&](engines::CpVar var) { return values[static_cast<std::size_t>(var)]; };
  if (values.size() != model_.var_count()) return std::nullopt;
  for (std::size_t i = 0; i < intervals_.size(); ++i)
    for (const Interval& interval : intervals_[i]) {
      if (value(interval.active) == 0) continue;
      std::int64_t at = interval.start.offset;
      if (interval.start.var != engines::CpExpr::kNone)
        at += interval.start.coefficient * value(interval.start.var);
      computed.emplace_back(at, OpId(i));
    }
  std::sort(computed.begin(), computed.end());
  std::vector<OpId> order;
  std::vector<std::uint8_t> made(graph_.op_count(), 0);
  for (const auto& [at, op] : computed) {
    for (const TensorId read : graph_.inputs(op))
      if (!graph_.is_input(read) && made[graph_.producer(read).index()] == 0) return std::nullopt;
    made[op.index()] = 1;
    order.push_back(op);
  }
  if (std::count(made.begin(), made.end(), 1) != static_cast<std::ptrdiff_t>(made.size()))
    return std::nullopt;
  return order;
}

}  // namespace lowtide::solve::exact::moccasin
