// Problem: the bound of one cut point does not see recomputation that a distant one forces. But
// one run may serve both, so their bounds cannot be added.
//
// Idea: cut points that follow one another in every plan divide it into intervals. Variables: a
// tensor is live at a cut point; an op runs again in an interval. In a window between two cut
// points, a tensor that is needed inside, or live at its end, was live at its beginning or is
// recomputed inside. With multipliers on the budget of each cut point, on tensors passed from
// window to window, and on the shares of an op's time among its windows, each window is a separate
// minimum cut. Windows: each interval, from each cut point to the end, and, for few cut points,
// between any two. The primal-dual hybrid gradient method on the linear relaxation proposes the
// multipliers. With a free order only ops that certainly run inside a window need tensors there,
// and a run is free if it may be the op's first.
//
// Source: A. Chambolle and T. Pock, J. Math. Imaging Vis. 2011; D. Applegate et al., Practical
// large-scale linear programming using primal-dual hybrid gradient, NeurIPS 2021. The free order
// is ours.
//
// Invariant: `certify` (window_certify.cpp) first rounds the proposal to integers that satisfy the
// rows of the dual: the prices of holding a tensor at a cut point sum to at most the budget's
// price plus the reward for passing it on, and the shares of an op's time sum to at most the time
// in every interval. Then it adds up cuts. So the value is a bound for every proposal.
//
// Loses: it converges slowly, and if one cut point decides it only repeats that bound.
#include "lowtide/solve/bounds/window/window_bound.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lowtide/solve/bounds/common/index.h"

namespace lowtide::solve::bounds {

namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kTermsPerUnit = 512;  // for a unit of work
constexpr std::int64_t kLongest = 4000;      // iterations of a round
constexpr std::int64_t kNodeLength = 100;    // iterations of the first round from a given start
constexpr double kPart = 1e-3;               // distance of fractional variables from 0 and 1

}  // namespace

WindowBound::WindowBound(const Problem& problem, std::vector<CutPoint> moments,
                         const CutScale& scale, WindowSet set)
    : problem_(problem),
      scale_(scale),
      moments_(std::move(moments)),
      windows_(make_windows(problem, moments_, set)) {
  const Graph& graph = problem.graph;
  for (const CutPoint& moment : moments_) {
    const std::vector<std::uint8_t> in_use = in_use_at(graph, moment.op);
    Bytes fixed = graph.resident() + graph.least_workspace(moment.op);
    for (std::size_t i = 0; i < graph.tensor_count(); ++i)
      if (in_use[i] != 0) fixed += graph.bytes(TensorId(i));
    room_.push_back((problem.budget - fixed).count());
    finished_ |= room_.back() < 0;
  }
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    byte_unit_ = std::max(byte_unit_, static_cast<double>(graph.bytes(TensorId(i)).count()));
  tick_unit_ = std::max(1.0, static_cast<double>(graph.total_time().count()) / 100);
  index_windows();
  set_steps();
  fix({});
  restart(false);
}

void WindowBound::fix(std::span<const Fixed> fixed) {
  least_.assign(cost_.size(), 0);
  most_.assign(cost_.size(), 1);
  fixed_.assign(moments_.size(), std::vector<Hold>(problem_.graph.tensor_count(), Hold::open));
  for (const Fixed& one : fixed) {
    fixed_[one.moment][one.tensor.index()] = one.live ? Hold::kept : Hold::dropped;
    const std::size_t live = index(live_[one.moment][one.tensor.index()]);
    (one.live ? least_ : most_)[live] = one.live ? 1 : 0;
  }
}

void WindowBound::begin(const Start& start, std::span<const Fixed> fixed) {
  fix(fixed);
  x_.assign(start.x.begin(), start.x.end());
  dual_.assign(start.dual.begin(), start.dual.end());
  for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = std::clamp(x_[i], least_[i], most_[i]);
  extrapolated_ = x_;
  x_start_.clear();
  restart(false);
  best_ = 0;
  idle_ = 0;
  length_ = kNodeLength;
  patience_ = 0;
  finished_ = false;
}

bool WindowBound::has_room_for(std::span<const Fixed> fixed) const {
  std::vector<std::int64_t> left = room_;
  for (const Fixed& one : fixed)
    if (one.live) left[one.moment] -= problem_.graph.bytes(one.tensor).count();
  return std::ranges::all_of(left, [](std::int64_t bytes) { return bytes >= 0; });
}

WindowBound::Start WindowBound::start() const {
  return {{x_.begin(), x_.end()}, {dual_.begin(), dual_.end()}};
}

std::optional<WindowBound::Fixed> WindowBound::in_part() const {
  std::optional<Fixed> best;
  double most = 0;
  for (std::size_t moment = 0; moment < moments_.size(); ++moment)
    for (std::size_t i = 0; i < live_[moment].size(); ++i) {
      const std::int32_t live = live_[moment][i];
      if (live < 0 || fixed_[moment][i] != Hold::open) continue;
      const double x = x_[index(live)];
      const double part = std::min(x, 1 - x);
      if (part < kPart) continue;
      const double score = part * static_cast<double>(problem_.graph.bytes(TensorId(i)).count());
      if (score <= most) continue;
      most = score;
      best = Fixed{moment, TensorId(i), x > 0.5};
    }
  return best;
}

std::int32_t WindowBound::variable(double cost) {
  cost_.push_back(cost);
  return small(cost_.size()) - 1;
}

void WindowBound::index_windows() {
  const Graph& graph = problem_.graph;
  const std::size_t moments = moments_.size();
  live_.assign(moments, std::vector<std::int32_t>(graph.tensor_count(), -1));
  first_run_.assign(graph.op_count(), -1);
  for (const Window& window : windows_) {
    for (const Window::Item& item : window.items) {
      std::int32_t& live = live_[window.from][item.tensor.index()];
      if (live < 0) live = variable(0);
    }
    for (const OpId op : window.ops) {
      if (first_run_[op.index()] >= 0) continue;
      first_run_[op.index()] = small(cost_.size());
      for (std::size_t i = 0; i < moments; ++i)
        variable(has_run(op, i) ? static_cast<double>(graph.time(op).count()) / tick_unit_ : 0);
    }
  }
  places_.resize(windows_.size());
  for (std::size_t i = 0; i < windows_.size(); ++i) place(i);
  memory_.resize(moments);
  for (std::size_t moment = 0; moment < moments; ++moment)
    for (std::size_t i = 0; i < graph.tensor_count(); ++i)
      if (const std::int32_t live = live_[moment][i]; live >= 0)
        memory_[moment].emplace_back(
            live, static_cast<double>(graph.bytes(TensorId(i)).count()) / byte_unit_);
}

void WindowBound::place(std::size_t i) {
  const Window& window = windows_[i];
  Place& place = places_[i];
  const std::size_t items = window.items.size();
  std::vector<std::int32_t> need(items, -1);  // variables; -1 for needed items, which have none
  place.keep_row.assign(items, -1);
  place.carry_row.assign(items, -1);
  for (std::size_t j = 0; j < items; ++j)
    if (!window.items[j].needed) need[j] = variable(0);
  for (const OpId op : window.ops) {
    const std::int32_t first = first_run_[op.index()] + small(window.from);
    place.again.push_back(window.unit() ? first : variable(0));
    if (window.unit()) continue;
    place.split_row.push_back(small(splits_.size()));
    splits_.push_back({first, small(window.to - window.from), place.again.back()});
  }
  for (std::size_t j = 0; j < items; ++j) {
    const Window::Item& item = window.items[j];
    place.keep_row[j] = small(rows_.size());
    rows_.push_back({live_[window.from][item.tensor.index()],
                     item.producer < 0 ? -1 : place.again[index(item.producer)], need[j],
                     item.needed ? 1.0 : 0.0});
    if (item.needed || window.to == moments_.size()) continue;
    const std::int32_t live = live_[window.to][item.tensor.index()];
    if (live < 0) continue;
    place.carry_row[j] = small(rows_.size());
    rows_.push_back({need[j], -1, live, 0});
  }
  for (std::size_t op = 0; op < window.ops.size(); ++op)
    for (const std::int32_t read : window.reads[op])
      if (need[index(read)] >= 0) rows_.push_back({need[index(read)], -1, place.again[op], 0});
}

// Pock and Chambolle's diagonal preconditioning.
void WindowBound::set_steps() {
  step_.assign(cost_.size(), 0);
  dual_step_.assign(memory_begin() + memory_.size(), 0);
  double costs = 0, leasts = 0;
  for (const double cost : cost_) costs += cost * cost;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    leasts += rows_[i].least;
    for (const std::int32_t x : {rows_[i].plus, rows_[i].also, rows_[i].minus}) {
      if (x < 0) continue;
      ++step_[index(x)];
      ++dual_step_[i];
    }
  }
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    const Split& split = splits_[i];
    ++step_[index(split.again)];
    for (std::int32_t run = 0; run < split.runs; ++run) ++step_[index(split.first_run + run)];
    dual_step_[splits_begin() + i] = split.runs + 1;
  }
  for (std::size_t i = 0; i < memory_.size(); ++i)
    for (const auto& [x, bytes] : memory_[i]) {
      step_[index(x)] += bytes;
      dual_step_[memory_begin() + i] += bytes;
    }
  for (double& step : step_) step = 1 / std::max(step, 1e-9);
  for (double& step : dual_step_) step = 1 / std::max(step, 1e-9);
  weight_ = std::sqrt(costs / std::max(leasts, 1.0));
  if (!(weight_ > 0)) weight_ = 1;
  x_.assign(cost_.size(), 0);
  extrapolated_ = x_;
  dual_.assign(dual_step_.size(), 0);
}

void WindowBound::iterate() {
  gradient_ = cost_;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const double dual = dual_[i];
    if (dual == 0) continue;
    const Row& row = rows_[i];
    if (row.plus >= 0) gradient_[index(row.plus)] -= dual;
    if (row.also >= 0) gradient_[index(row.also)] -= dual;
    if (row.minus >= 0) gradient_[index(row.minus)] += dual;
  }
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    const double dual = dual_[splits_begin() + i];
    if (dual == 0) continue;
    const Split& split = splits_[i];
    gradient_[index(split.again)] += dual;
    for (std::int32_t run = 0; run < split.runs; ++run)
      gradient_[index(split.first_run + run)] -= dual;
  }
  for (std::size_t i = 0; i < memory_.size(); ++i)
    for (const auto& [x, bytes] : memory_[i])
      gradient_[index(x)] += dual_[memory_begin() + i] * bytes;
  for (std::size_t i = 0; i < x_.size(); ++i) {
    const double next = std::clamp(x_[i] - step_[i] / weight_ * gradient_[i], least_[i], most_[i]);
    extrapolated_[i] = 2 * next - x_[i];
    x_[i] = next;
    x_sum_[i] += next;
  }
  const auto ascend = [&](std::size_t i, double missing) {
    dual_[i] = std::max(0.0, dual_[i] + dual_step_[i] * weight_ * missing);
    dual_sum_[i] += dual_[i];
  };
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    double missing = row.least;
    if (row.plus >= 0) missing -= extrapolated_[index(row.plus)];
    if (row.also >= 0) missing -= extrapolated_[index(row.also)];
    if (row.minus >= 0) missing += extrapolated_[index(row.minus)];
    ascend(i, missing);
  }
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    const Split& split = splits_[i];
    double missing = extrapolated_[index(split.again)];
    for (std::int32_t run = 0; run < split.runs; ++run)
      missing -= extrapolated_[index(split.first_run + run)];
    ascend(splits_begin() + i, missing);
  }
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    double missing = -static_cast<double>(room_[i]) / byte_unit_;
    for (const auto& [x, bytes] : memory_[i]) missing += bytes * extrapolated_[index(x)];
    ascend(memory_begin() + i, missing);
  }
  ++sum_count_;
}

void WindowBound::restart(bool from_average) {
  if (from_average && sum_count_ > 0) {
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = x_sum_[i] / sum_count_;
    for (std::size_t i = 0; i < dual_.size(); ++i) dual_[i] = dual_sum_[i] / sum_count_;
  }
  if (!x_start_.empty()) {
    double moved = 0, dual_moved = 0;
    for (std::size_t i = 0; i < x_.size(); ++i)
      moved += (x_[i] - x_start_[i]) * (x_[i] - x_start_[i]) / step_[i];
    for (std::size_t i = 0; i < dual_.size(); ++i)
      dual_moved += (dual_[i] - dual_start_[i]) * (dual_[i] - dual_start_[i]) / dual_step_[i];
    if (moved > 1e-12 && dual_moved > 1e-12)
      weight_ = std::sqrt(weight_ * std::sqrt(dual_moved / moved));
  }
  x_start_ = x_;
  dual_start_ = dual_;
  x_sum_.assign(x_.size(), 0);
  dual_sum_.assign(dual_.size(), 0);
  sum_count_ = 0;
}

std::optional<double> WindowBound::overload(const CutPoint& cut, bool soon) const {
  const Graph& graph = problem_.graph;
  const auto side_of = [&](const CutPoint& moment) { return cut.side[moment.op.index()]; };
  const std::size_t next = static_cast<std::size_t>(
      std::ranges::find(moments_, Side::after, side_of) - moments_.begin());
  for (std::size_t i = 0; i < moments_.size(); ++i)
    if (side_of(moments_[i]) != (i < next ? Side::before : Side::after)) return std::nullopt;
  const CutPoint* before = next == 0 ? nullptr : &moments_[next - 1];
  const CutPoint* after = next == moments_.size() ? nullptr : &moments_[next];
  const auto in_use = in_use_at(graph, cut.op);
  const auto used_before = before ? in_use_at(graph, before->op) : std::vector<std::uint8_t>();
  const auto used_after = after ? in_use_at(graph, after->op) : std::vector<std::uint8_t>();
  const auto live = [&](std::size_t moment, std::size_t tensor) {
    const std::int32_t variable = live_[moment][tensor];
    return variable < 0 ? 0 : x_[index(variable)];
  };
  const auto needed = [&](TensorId id) {
    if (after ? used_after[id.index()] != 0 : graph.is_output(id)) return 1.0;
    for (const OpId reader : graph.consumers(id)) {
      if (cut.side[reader.index()] != Side::after) continue;
      if (!after) return 1.0;
      const Side side = after->side[reader.index()];
      if (side == Side::before || side == Side::at) return 1.0;
    }
    return after ? live(next, id.index()) : 0.0;
  };
  const auto there = [&](TensorId id) {
    const OpId producer = graph.producer(id);
    const bool old = before && (!producer.valid() || has_run(producer, next - 1));
    if (!old || used_before[id.index()] != 0) return 1.0;
    const double kept = live(next - 1, id.index());
    if (!soon || !producer.valid() || first_run_[producer.index()] < 0) return kept;
    return std::min(1.0, kept + x_[index(first_run_[producer.index()]) + next - 1]);
  };
  double bytes = static_cast<double>(
      (graph.resident() + graph.least_workspace(cut.op) - problem_.budget).count());
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    const OpId producer = graph.producer(id);
    const bool made = !producer.valid() || cut.side[producer.index()] == Side::before;
    const double share = in_use[i] != 0 ? 1 : made ? std::min(needed(id), there(id)) : 0;
    bytes += share * static_cast<double>(graph.bytes(id).count());
  }
  return bytes;
}

bool WindowBound::infeasible() const {
  const Wide all = Wide{scale_.scaled(problem_.graph.total_time())};
  return best_ > all * static_cast<std::int64_t>(moments_.size());
}

void WindowBound::run(std::int64_t rounds, Limits& limits) {
  const std::int64_t terms = static_cast<std::int64_t>(4 * rows_.size() + 4 * cost_.size() +
                                                       (moments_.size() + 2) * splits_.size());
  for (std::int64_t round = 0; round < rounds && !finished_; ++round) {
    for (std::int64_t i = 0; i < length_; ++i) {
      if (limits.spend(1 + terms / kTermsPerUnit)) return;
      iterate();
    }
    std::vector<double> average(dual_sum_);
    for (double& dual : average) dual /= std::max(1.0, sum_count_);
    const std::int64_t of_average = certify(average, limits);
    const std::int64_t of_last = limits.stopped() ? 0 : certify(dual_, limits);
    const std::int64_t value = std::max(of_average, of_last);
    idle_ = value > best_ + best_ / 1000 ? 0 : idle_ + 1;
    best_ = std::max(best_, value);
    if (limits.stopped()) return;
    restart(of_average >= of_last);
    length_ = std::min(length_ + length_ / 4 + 5, kLongest);
    finished_ = idle_ > patience_ || infeasible();
  }
}

}  // namespace lowtide::solve::bounds
