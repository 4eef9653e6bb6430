// Checkmate's stages, restricted to the critical steps: the first computations whose step exceeds
// the budget if nothing is evicted. A segment lies between two critical steps. R_{s,i}: op i is
// recomputed in segment s. L_{s,x}: tensor x is live at the critical step that ends segment s.
//   L_{s,x} <= L_{s-1,x} + R_{s,i}      x was live before, or is recomputed
//   1 or R_{s,j} <= L_{s-1,x} + R_{s,i} an op that segment s computes first, or recomputes, reads x
//   sum L_{s,x} <= budget               at the critical step
// If all steps from the first critical one on are critical, T_{s,x} stands for a tensor that is
// live at both ends of a segment and not recomputed in it:
//   sum T_{s,x} + (what op i needs) R_{s,i} <= budget
// These rows hold for every plan with this order of first computations, however often it computes
// an op and whatever it does between the critical steps. So the optimum is a bound of the problem
// itself, which Checkmate's own program never gives, and the program is much smaller.
//
// Invariant: a relaxation. HiGHS computes in doubles, so the value that it proves is lowered by a
// millionth before it is rounded up to whole ticks.
//
// Loses: if memory is short between critical steps, while many ops are recomputed. There the bound
// stays below the best plan.
#include "lowtide/solve/exact/checkmate/frontier.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "lowtide/sim/simulate.h"
#include "lowtide/solve/exact/checkmate/program.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::exact::checkmate {

namespace {

constexpr double kScale = 1e4;

}  // namespace

FrontierProgram::FrontierProgram(const Problem& problem, std::vector<OpId> order, bool every,
                                 Limits& limits)
    : problem_(problem),
      graph_(problem.graph),
      order_(std::move(order)),
      position_(graph_.op_count(), 0),
      last_needed_(graph_.op_count(), 0) {
  for (std::size_t i = 0; i < order_.size(); ++i) position_[order_[i].index()] = i;
  std::int64_t ticks = 0;
  for (const OpId op : order_) ticks = std::gcd(ticks, graph_.time(op).count());
  tick_unit_ = std::max<std::int64_t>(1, ticks);
  find_critical(every);
  add_columns();
  for (std::size_t s = 0; s < segments(); ++s) {
    const std::size_t before = model_.entry_count();
    add_rows(s);
    if (s < critical_.size()) add_memory(s);
    if (every && s > 0 && s < critical_.size()) add_through(s);
    const auto entries = static_cast<std::int64_t>(model_.entry_count() - before);
    if (limits.spend(entries / 16 + static_cast<std::int64_t>(graph_.link_count()) / 4 + 1)) return;
  }
}

void FrontierProgram::find_critical(bool every) {
  const Plan plan = plan_from_sequence(graph_, order_);
  const Timeline timeline = simulate(graph_, plan);
  std::size_t at = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (!plan.steps[i].is_compute()) continue;
    if (timeline.live[i] > problem_.budget || (every && !critical_.empty()))
      critical_.push_back(at);
    ++at;
  }
}

std::size_t FrontierProgram::segment_of(std::size_t position) const {
  return static_cast<std::size_t>(std::lower_bound(critical_.begin(), critical_.end(), position) -
                                  critical_.begin());
}

bool FrontierProgram::earlier(std::size_t segment, TensorId tensor) const {
  const OpId maker = graph_.producer(tensor);
  return !maker.valid() || segment_of(position_[maker.index()]) < segment;
}

void FrontierProgram::add_columns() {
  const auto deadlines = rerun_deadlines(graph_, order_);
  std::vector<std::size_t> last_use(graph_.tensor_count(), 0);  // segments
  for (std::size_t i = order_.size(); i > 0; --i) {
    const OpId op = order_[i - 1];
    std::size_t last = 0;
    for (const TensorId made : graph_.outputs(op)) {
      if (graph_.is_output(made)) last_use[made.index()] = segments() - 1;
      last = std::max(last, last_use[made.index()]);
    }
    const std::size_t deadline = deadlines[op.index()];
    if (deadline < order_.size()) last = std::min(last, segment_of(deadline));
    const std::size_t own = segment_of(i - 1);
    if (!graph_.recomputable(op)) last = own;
    last_needed_[op.index()] = last;
    for (const TensorId read : graph_.inputs(op))
      last_use[read.index()] = std::max({last_use[read.index()], own, last});
  }
  for (const TensorId output : graph_.outputs()) last_use[output.index()] = segments() - 1;
  again_.assign(segments(), std::vector<std::int32_t>(graph_.op_count(), kNone));
  live_.assign(segments(), std::vector<std::int32_t>(graph_.tensor_count(), kNone));
  for (const OpId op : order_) {
    const double cost = static_cast<double>(graph_.time(op).count() / tick_unit_);
    for (std::size_t s = segment_of(position_[op.index()]) + 1; s <= last_needed_[op.index()]; ++s)
      again_[s][op.index()] = model_.add_column(cost, {0, 1}, true);
  }
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x) {
    const TensorId tensor(x);
    if (graph_.is_input(tensor) && (!graph_.releasable(tensor) || graph_.is_output(tensor)))
      continue;
    const std::size_t first =
        graph_.is_input(tensor) ? 0 : segment_of(position_[graph_.producer(tensor).index()]);
    for (std::size_t s = first; s < last_use[x] && s < critical_.size(); ++s)
      live_[s][x] = model_.add_column(0, {0, 1}, true);
  }
}

void FrontierProgram::add_need(std::size_t segment, TensorId tensor, std::int32_t run) {
  if (!earlier(segment, tensor)) return;
  const bool stays =
      graph_.is_input(tensor) && (!graph_.releasable(tensor) || graph_.is_output(tensor));
  if (stays || (graph_.is_input(tensor) && segment == 0)) return;
  std::vector<engines::MipTerm> terms;
  if (run != kNone) terms.push_back({run, 1});
  if (const auto before = live_[segment - 1][tensor.index()]; before != kNone)
    terms.push_back({before, -1});
  if (!graph_.is_input(tensor))
    if (const auto again = again_[segment][graph_.producer(tensor).index()]; again != kNone)
      terms.push_back({again, -1});
  model_.add_row(terms, {-engines::MipModel::kInfinity, run == kNone ? -1.0 : 0.0});
}

void FrontierProgram::add_rows(std::size_t segment) {
  for (const OpId op : order_) {
    const std::size_t own = segment_of(position_[op.index()]);
    const std::int32_t run = again_[segment][op.index()];
    if (own != segment && run == kNone) continue;
    for (const TensorId read : graph_.inputs(op)) add_need(segment, read, run);
  }
  if (segment + 1 == segments())
    for (const TensorId output : graph_.outputs()) add_need(segment, output, kNone);
  if (segment == 0) return;
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x)
    if (live_[segment][x] != kNone) add_need(segment, TensorId(x), live_[segment][x]);
}

double FrontierProgram::with_slack(Bytes bytes) const {
  const auto room = static_cast<double>(bytes.count());
  return room + slack(graph_, room);
}

void FrontierProgram::add_memory(std::size_t segment) {
  const OpId op = order_[critical_[segment]];
  std::vector<std::uint8_t> in_use(graph_.tensor_count(), 0);
  Bytes fixed = graph_.resident() + graph_.least_workspace(op);
  const auto use = [&](TensorId tensor) {
    if (std::exchange(in_use[tensor.index()], 1) == 0) fixed += graph_.bytes(tensor);
  };
  for (const TensorId tensor : graph_.inputs(op)) use(tensor);
  for (const TensorId tensor : graph_.outputs(op)) use(tensor);
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x) {
    const TensorId tensor(x);
    if (graph_.is_input(tensor) && (!graph_.releasable(tensor) || graph_.is_output(tensor)))
      use(tensor);
  }
  const double room = with_slack(problem_.budget - fixed);
  const double unit = std::max(1.0, std::fabs(room) / kScale);
  std::vector<engines::MipTerm> terms;
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x) {
    const std::int32_t live = live_[segment][x];
    if (live == kNone) continue;
    if (in_use[x] != 0) {
      // The op uses the tensor in any case, so it is live.
      const engines::MipTerm one[] = {{live, 1}};
      if (earlier(segment, TensorId(x)) && segment > 0) model_.add_row(one, {1, 1});
      continue;
    }
    const double bytes = static_cast<double>(graph_.bytes(TensorId(x)).count());
    if (bytes > 0) terms.push_back({live, bytes / unit});
  }
  model_.add_row(terms, {-engines::MipModel::kInfinity, room / unit});
}

void FrontierProgram::add_through(std::size_t segment) {
  // T: live at both ends of the segment and not recomputed in it, so live throughout.
  const double inf = engines::MipModel::kInfinity;
  std::vector<std::pair<TensorId, std::int32_t>> through;
  Bytes constant = graph_.resident();
  double most = 0;
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x) {
    const TensorId tensor(x);
    if (graph_.is_input(tensor) && (!graph_.releasable(tensor) || graph_.is_output(tensor))) {
      constant += graph_.bytes(tensor);
      continue;
    }
    const auto before = live_[segment - 1][x], after = live_[segment][x];
    if (before == kNone || after == kNone || graph_.bytes(tensor) == Bytes(0)) continue;
    const std::int32_t column = model_.add_column(0, {0, 1}, false);
    std::vector<engines::MipTerm> terms = {{column, 1}, {before, -1}, {after, -1}};
    if (!graph_.is_input(tensor))
      if (const auto again = again_[segment][graph_.producer(tensor).index()]; again != kNone)
        terms.push_back({again, 1});
    model_.add_row(terms, {-1, inf});
    through.emplace_back(tensor, column);
    most += static_cast<double>(graph_.bytes(tensor).count());
  }
  const double room = with_slack(problem_.budget - constant);
  const double unit = std::max(1.0, std::fabs(room) / kScale);
  for (const OpId op : order_) {
    const std::int32_t run = again_[segment][op.index()];
    if (run == kNone) continue;
    Bytes own = graph_.least_workspace(op);
    std::vector<std::uint8_t> mine(graph_.tensor_count(), 0);
    const auto use = [&](TensorId tensor) {
      const bool counted =
          graph_.is_input(tensor) && (!graph_.releasable(tensor) || graph_.is_output(tensor));
      if (!counted && std::exchange(mine[tensor.index()], 1) == 0) own += graph_.bytes(tensor);
    };
    for (const TensorId tensor : graph_.inputs(op)) use(tensor);
    for (const TensorId tensor : graph_.outputs(op)) use(tensor);
    if (most + static_cast<double>(own.count()) <= room) continue;
    std::vector<engines::MipTerm> terms = {{run, static_cast<double>(own.count()) / unit}};
    for (const auto& [tensor, column] : through)
      if (mine[tensor.index()] == 0)
        terms.push_back({column, static_cast<double>(graph_.bytes(tensor).count()) / unit});
    model_.add_row(terms, {-inf, room / unit});
  }
}

void FrontierProgram::start(std::span<const OpId> sequence) {
  std::vector<std::vector<std::uint8_t>> again(segments(),
                                               std::vector<std::uint8_t>(graph_.op_count(), 0));
  std::vector<std::vector<std::uint8_t>> live(segments(),
                                              std::vector<std::uint8_t>(graph_.tensor_count(), 0));
  std::size_t next = 0;
  std::vector<std::size_t> made(graph_.tensor_count(), 0);
  const auto hold = [&](TensorId tensor, std::size_t segment) {
    for (std::size_t s = made[tensor.index()]; s < segment; ++s) live[s][tensor.index()] = 1;
    made[tensor.index()] = std::max(made[tensor.index()], segment);
  };
  for (const OpId op : sequence) {
    if (next >= order_.size()) next = order_.size() - 1;
    const bool first = op == order_[next];
    const std::size_t segment = segment_of(next);
    for (const TensorId read : graph_.inputs(op)) hold(read, segment);
    for (const TensorId read : graph_.inputs(op))
      if (first && next < order_.size() && segment < critical_.size() && critical_[segment] == next)
        live[segment][read.index()] = 1;
    for (const TensorId output : graph_.outputs(op)) made[output.index()] = segment;
    if (position_[op.index()] < next) again[segment][op.index()] = 1;
    if (first) ++next;
  }
  for (const TensorId output : graph_.outputs()) hold(output, segments());
  model_.clear_start();
  for (std::size_t s = 0; s < segments(); ++s) {
    for (std::size_t i = 0; i < graph_.op_count(); ++i)
      if (again_[s][i] != kNone) model_.add_start(again_[s][i], again[s][i]);
    for (std::size_t x = 0; x < graph_.tensor_count(); ++x)
      if (live_[s][x] != kNone) model_.add_start(live_[s][x], live[s][x]);
  }
}

std::vector<OpId> FrontierProgram::sequence(std::span<const double> values) const {
  const auto set = [&](std::int32_t column) {
    return column != kNone && values[static_cast<std::size_t>(column)] > 0.5;
  };
  std::vector<OpId> computed;
  for (std::size_t s = 0; s < segments(); ++s) {
    std::vector<std::uint8_t> left(graph_.op_count(), 0);
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = set(again_[s][i]);
    // Each recomputation comes right before its first reader, after its own inputs; the others come
    // at the end of the segment.
    const auto make = [&](auto& self, OpId op) -> void {
      for (const TensorId read : graph_.inputs(op)) {
        const OpId maker = graph_.producer(read);
        if (!maker.valid() || std::exchange(left[maker.index()], 0) == 0) continue;
        self(self, maker);
        computed.push_back(maker);
      }
    };
    const std::size_t begin = s == 0 ? 0 : critical_[s - 1] + 1;
    const std::size_t end = s < critical_.size() ? critical_[s] + 1 : order_.size();
    for (std::size_t at = begin; at < end; ++at) {
      const bool last = at + 1 == end && s < critical_.size();
      for (std::size_t i = 0; last && i < order_.size(); ++i) {
        if (std::exchange(left[order_[i].index()], 0) == 0) continue;
        make(make, order_[i]);
        computed.push_back(order_[i]);
      }
      make(make, order_[at]);
      computed.push_back(order_[at]);
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (std::exchange(left[order_[i].index()], 0) == 0) continue;
      make(make, order_[i]);
      computed.push_back(order_[i]);
    }
  }
  return computed;
}

Ticks FrontierProgram::bound(double objective) const {
  const double safe = objective - kTolerance * std::max(1.0, std::fabs(objective));
  const double whole = std::ceil(std::max(0.0, safe));
  const Ticks base = graph_.total_time();
  // A claim beyond 63 bits proves nothing.
  if (!(whole < static_cast<double>((Ticks::max() - base).count() / tick_unit_))) return base;
  return base + Ticks(static_cast<std::int64_t>(whole) * tick_unit_);
}

}  // namespace lowtide::solve::exact::checkmate
