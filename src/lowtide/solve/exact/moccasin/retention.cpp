// Variables: s_v^i and a_v^i of each op, and an e of each tensor that the op makes, since the
// outputs of one computation may be held for different times. s_v^1 is fixed if the events are
// staged; a_v^1 = 1 is (7).
//
// (1) is the objective. (2) s <= e and (3) e^i <= s^{i+1} hold for active intervals; inactive
// variables are fixed to one value. (4) is one `cumulative`: an interval [s, e] holds its tensor at
// both ends, since the op makes it at s and an op reads it at e; workspace is an interval of one
// event. (5) uses literals that select the interval of the input, or a `reservoir` for each pair.
// (6) is `all_different` if the events are free. (7), (8) are domains.
//
// The paper's (10) frees a tensor at e. Then an op that is computed at e would not find it,
// although (5) allows the read. Here it is freed at e + 1.
//
// Scaling: bytes and times are divided by their greatest common divisors, which changes nothing.
// Only sums beyond 2^50 are divided further, rounded such that every solution is still a plan, and
// every bound still a bound.
#include "lowtide/solve/exact/moccasin/retention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace lowtide::solve::exact::moccasin {

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 50;
constexpr std::int64_t kAny = std::int64_t{1} << 60;  // no limit, in a linear constraint

}  // namespace

RetentionModel::RetentionModel(const Problem& problem, const Events& events,
                               const RetentionSettings& settings, Limits& limits)
    : problem_(problem),
      graph_(problem.graph),
      events_(events),
      settings_(settings),
      limits_(limits),
      one_(model_.add_var(1, 1)),
      intervals_(problem.graph.op_count()),
      input_end_(problem.graph.tensor_count(), 0) {
  scale();
  if (hopeless()) return;
  for (const OpId op : events_.order()) {
    add_intervals(op);
    if (spend(intervals_[op.index()].size())) return;
  }
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i) {
    const TensorId tensor(i);
    if (!graph_.releasable(tensor) || graph_.is_output(tensor)) continue;
    input_end_[i] = model_.add_var(0, events_.last_read(tensor));
  }
  add_precedence();
  add_rules_of_order();
  add_memory();
  if (!limits_.stopped()) add_objective();
}

bool RetentionModel::spend(std::size_t parts) {
  return limits_.spend(1 + static_cast<std::int64_t>(parts));
}

void RetentionModel::scale() {
  Bytes constant = graph_.resident();
  std::int64_t unit = 0, sum = 0;
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i) {
    const TensorId tensor(i);
    const bool fixed =
        graph_.is_input(tensor) && (!graph_.releasable(tensor) || graph_.is_output(tensor));
    if (fixed) {
      constant += graph_.bytes(tensor);
    } else {
      unit = std::gcd(unit, graph_.bytes(tensor).count());
      sum += graph_.bytes(tensor).count();
    }
  }
  std::int64_t ticks = 0;
  for (std::size_t i = 0; i < graph_.op_count(); ++i) {
    unit = std::gcd(unit, graph_.workspace(OpId(i)).count());
    ticks = std::gcd(ticks, graph_.time(OpId(i)).count());
  }
  byte_unit_ = std::max<std::int64_t>(1, unit);
  while (sum / byte_unit_ > kMost) byte_unit_ *= 2;
  tick_unit_ = std::max<std::int64_t>(1, ticks);
  while (graph_.total_time().count() / tick_unit_ > kMost) tick_unit_ *= 2;
  // All sizes are multiples of the unit, or rounded up: see add_memory.
  capacity_ = constant > problem_.budget ? -1 : (problem_.budget - constant).count() / byte_unit_;
  capacity_ = std::min(capacity_, 4 * kMost);
}

std::vector<std::int64_t> RetentionModel::with_lengths(const Interval& interval) {
  if (lengths_.empty()) {
    // About 5n values up to the largest length, as in the authors' program.
    const double longest = static_cast<double>(events_.end());
    const double count = 5.0 * static_cast<double>(graph_.op_count());
    lengths_ = {0};
    for (double i = 0; i <= count; ++i)
      lengths_.push_back(static_cast<std::int64_t>(std::round(std::pow(longest, i / count))));
  }
  std::vector<std::int64_t> values;
  for (const std::int64_t length : lengths_)
    values.push_back(std::min(interval.first + length, events_.end()));
  values.erase(std::unique(values.begin(), values.end()), values.end());
  spend(values.size());
  return values;
}

engines::CpExpr RetentionModel::start_expr(OpId op, engines::CpVar var) const {
  if (events_.domain() == Domain::free) return engines::CpExpr::of(var);
  return engines::CpExpr::of(
      var, static_cast<std::int64_t>(events_.stride()),
      events_.event(1, events_.position(op)) - static_cast<std::int64_t>(events_.stride()));
}

void RetentionModel::add_after(const engines::CpExpr& a, const engines::CpExpr& b,
                               std::int64_t at_least, engines::CpModel::Literals enforce) {
  std::vector<engines::CpTerm> terms;
  if (a.var != engines::CpExpr::kNone) terms.push_back({a.var, a.coefficient});
  if (b.var != engines::CpExpr::kNone) terms.push_back({b.var, -b.coefficient});
  std::int64_t least = at_least - a.offset + b.offset;
  if (terms.empty() && least <= 0) return;
  // A comparison of two stages is equivalent to one of two events, and smaller.
  if (terms.size() == 2 && a.coefficient == b.coefficient && a.coefficient > 1) {
    least = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(least) / static_cast<double>(a.coefficient)));
    terms[0].coefficient = 1;
    terms[1].coefficient = -1;
  }
  if (terms.empty()) terms.push_back({one_, 0});
  model_.add_linear(terms, {least, kAny}, enforce);
}

void RetentionModel::add_end(TensorId tensor, const Interval& interval, engines::CpVar& end) {
  const bool first = interval.active == one_;
  const bool fixed = interval.first == interval.last;
  const std::int64_t last = std::max(interval.last, events_.last_read(tensor));
  if (settings_.log_lengths && fixed)
    end = model_.add_var(with_lengths(interval));
  else
    end = model_.add_var(interval.first, last);
  if (!fixed) {
    const engines::CpVar active[] = {interval.active};
    add_after(engines::CpExpr::of(end), interval.start, 0,
              first ? engines::CpModel::Literals() : engines::CpModel::Literals(active));  // (2)
  }
  if (first) return;
  const engines::CpVar absent[] = {engines::cp_not(interval.active)};
  model_.add_linear({{end, 1}}, {last, last}, absent);
}

void RetentionModel::add_intervals(OpId op) {
  auto& list = intervals_[op.index()];
  const bool staged = events_.domain() == Domain::staged;
  for (int k = 0; k < events_.intervals(op); ++k) {
    const Events::Range range = events_.starts(op, k);
    if (range.empty()) break;
    Interval interval{
        .start = range.low, .first = range.low, .last = range.high, .active = one_, .ends = {}};
    if (staged) {
      interval.first = events_.event(static_cast<std::size_t>(range.low), events_.position(op));
      interval.last = events_.event(static_cast<std::size_t>(range.high), events_.position(op));
      interval.start = interval.first;
    }
    const bool fixed = range.low == range.high;
    engines::CpVar start = 0;
    if (!fixed) interval.start = start_expr(op, start = model_.add_var(range.low, range.high));
    if (k > 0) interval.active = model_.add_bool();
    for (const TensorId made : graph_.outputs(op))
      add_end(made, interval, interval.ends.emplace_back());
    if (k > 0) {
      const engines::CpVar active[] = {interval.active},
                           absent[] = {engines::cp_not(interval.active)};
      if (k > 1) model_.add_and(std::span(&list.back().active, 1), active);
      // With (6) the starts of inactive intervals differ too, as in the paper.
      if (staged && !fixed) model_.add_linear({{start, 1}}, {range.high, range.high}, absent);
      for (const engines::CpVar end : list.back().ends)
        add_after(interval.start, engines::CpExpr::of(end), 0, active);  // (3)
      add_after(interval.start, list.back().start, 1, active);
    }
    list.push_back(std::move(interval));
  }
}

std::vector<RetentionModel::Held> RetentionModel::held(TensorId tensor) const {
  std::vector<Held> all;
  const OpId maker = graph_.producer(tensor);
  if (!maker.valid()) {
    if (graph_.releasable(tensor) && !graph_.is_output(tensor))
      all.push_back({0, 0, one_, input_end_[tensor.index()]});
    return all;
  }
  const auto made = graph_.outputs(maker);
  const auto which =
      static_cast<std::size_t>(std::find(made.begin(), made.end(), tensor) - made.begin());
  for (const Interval& interval : intervals_[maker.index()])
    all.push_back({interval.start, interval.first, interval.active, interval.ends[which]});
  return all;
}

void RetentionModel::add_precedence() {
  const auto require = [&](TensorId tensor, const engines::CpExpr& at, std::int64_t latest,
                           engines::CpVar active) {
    if (graph_.is_input(tensor) && held(tensor).empty()) return;
    if (settings_.reservoir)
      add_precedence_reservoir(tensor, at, active);
    else
      add_precedence_literals(tensor, at, latest, active);
  };
  for (const OpId op : events_.order())
    for (const Interval& interval : intervals_[op.index()])
      for (const TensorId read : graph_.inputs(op)) {
        require(read, interval.start, interval.last, interval.active);
        if (spend(held(read).size())) return;
      }
  for (const TensorId output : graph_.outputs())
    require(output, events_.end(), events_.end(), one_);
}

void RetentionModel::add_precedence_literals(TensorId tensor, const engines::CpExpr& at,
                                             std::int64_t latest, engines::CpVar active) {
  std::vector<engines::CpVar> which;
  if (active != one_) which.push_back(engines::cp_not(active));
  for (const Held& held : held(tensor)) {
    if (held.first >= latest) continue;
    const engines::CpVar chosen = model_.add_bool();
    which.push_back(chosen);
    const engines::CpVar enforce[] = {chosen};
    if (held.active != one_) model_.add_and(std::span(&held.active, 1), enforce);
    add_after(engines::CpExpr::of(held.end), at, 0, enforce);  // s + 1 <= at <= e
    add_after(at, held.start, 1, enforce);
  }
  model_.add_exactly_one(which);
}

void RetentionModel::add_precedence_reservoir(TensorId tensor, const engines::CpExpr& at,
                                              engines::CpVar active) {
  std::vector<engines::CpExpr> times;
  std::vector<std::int64_t> changes;
  std::vector<engines::CpVar> actives;
  const auto add = [&](engines::CpExpr time, std::int64_t later, std::int64_t change,
                       engines::CpVar if_active) {
    time.offset += later;
    times.push_back(time);
    changes.push_back(change);
    actives.push_back(if_active);
  };
  add(at, 0, -1, active);
  add(at, 1, 1, active);
  for (const Held& held : held(tensor)) {
    add(held.start, 0, 1, held.active);
    add(engines::CpExpr::of(held.end), 1, -1, held.active);
  }
  model_.add_reservoir(times, changes, actives, 0);
}

void RetentionModel::add_rules_of_order() {
  if (events_.domain() == Domain::staged) return;
  std::vector<engines::CpExpr> starts;
  for (const auto& list : intervals_)
    for (const Interval& interval : list) starts.push_back(interval.start);
  model_.add_all_different(starts);  // (6)
  const auto before = [&](const Interval& a, const Interval& b) {
    const engines::CpVar active[] = {a.active};
    add_after(b.start, a.start, 1, active);
  };
  OpId last;
  for (const OpId op : events_.order()) {
    if (spend(graph_.predecessors(op).size())) return;
    const Interval& first = intervals_[op.index()].front();
    for (const OpId earlier : graph_.predecessors(op))
      before(intervals_[earlier.index()].front(), first);
    if (problem_.order == Order::given && last.valid())
      before(intervals_[last.index()].front(), first);
    last = op;
    for (const TensorId changed : graph_.mutates(op)) {
      for (const OpId reader : graph_.consumers(changed))
        if (reader != op)
          for (const Interval& again : intervals_[reader.index()]) before(again, first);
      if (graph_.is_output(changed) && !graph_.is_input(changed))
        for (const Interval& again : intervals_[graph_.producer(changed).index()])
          before(again, first);
    }
  }
}

void RetentionModel::add_memory() {
  std::vector<std::int64_t> intervals;
  std::vector<engines::CpExpr> demands;
  const auto units = [&](Bytes bytes) { return (bytes.count() + byte_unit_ - 1) / byte_unit_; };
  const auto add = [&](const engines::CpExpr& start, engines::CpVar end, engines::CpVar active,
                       std::int64_t demand) {
    const engines::CpVar enforce[] = {active};
    const std::span<const engines::CpVar> when = active == one_
                                                     ? std::span<const engines::CpVar>()
                                                     : std::span<const engines::CpVar>(enforce);
    const engines::CpExpr past = engines::CpExpr::of(end, 1, 1);
    if (start.var == engines::CpExpr::kNone) {
      intervals.push_back(
          model_.add_interval(start, engines::CpExpr::of(end, 1, 1 - start.offset), past, when));
    } else {
      const engines::CpVar size = model_.add_var(1, events_.end() + 1);
      model_.add_linear({{start.var, start.coefficient}, {size, 1}, {end, -1}},
                        {1 - start.offset, 1 - start.offset}, when);
      intervals.push_back(model_.add_interval(start, engines::CpExpr::of(size), past, when));
    }
    demands.emplace_back(demand);
  };
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i) {
    const std::int64_t demand = units(graph_.bytes(TensorId(i)));
    if (demand == 0) continue;
    if (spend(1)) return;
    for (const Held& held : held(TensorId(i))) {
      add(held.start, held.end, held.active, demand);
      sum += demand;
    }
  }
  for (const OpId op : events_.order()) {
    const std::int64_t demand = units(graph_.workspace(op));
    if (demand == 0) continue;
    for (const Interval& interval : intervals_[op.index()]) {
      const engines::CpVar enforce[] = {interval.active};
      engines::CpExpr past = interval.start;
      past.offset += 1;
      intervals.push_back(model_.add_interval(interval.start, 1, past,
                                              interval.active == one_
                                                  ? std::span<const engines::CpVar>()
                                                  : std::span<const engines::CpVar>(enforce)));
      demands.emplace_back(demand);
      sum += demand;
    }
  }
  if (!settings_.memory_first) {
    model_.add_cumulative(intervals, demands, capacity_);  // (4)
    return;
  }
  const std::int64_t least = std::max<std::int64_t>(0, capacity_);
  peak_ = model_.add_var(0, std::max(sum, least));
  excess_ = model_.add_var(least, std::max(sum, least));
  model_.add_cumulative(intervals, demands, engines::CpExpr::of(peak_));  // (13)
  model_.add_linear({{excess_, 1}, {peak_, -1}}, {0, kAny});              // tau of (12)
}

void RetentionModel::add_objective() {
  if (settings_.memory_first) {
    const engines::CpTerm terms[] = {{excess_, 1}};
    model_.minimise(terms);
    return;
  }
  std::vector<engines::CpTerm> terms;
  for (const OpId op : events_.order())
    for (const Interval& interval : intervals_[op.index()]) {
      const std::int64_t time = graph_.time(op).count() / tick_unit_;
      if (interval.active != one_ && time > 0) terms.push_back({interval.active, time});
    }
  model_.minimise(terms);
}

std::int64_t RetentionModel::unscaled(double objective) const {
  // A claim beyond 63 bits proves nothing.
  if (!(std::fabs(objective) < static_cast<double>(4 * kMost))) objective = 0;
  const auto whole = static_cast<std::int64_t>(std::ceil(objective - 1e-6));
  if (settings_.memory_first) return whole * byte_unit_;
  const Ticks base = graph_.total_time();
  if (whole > (Ticks::max() - base).count() / tick_unit_) return base.count();
  return base.count() + whole * tick_unit_;
}

}  // namespace lowtide::solve::exact::moccasin
