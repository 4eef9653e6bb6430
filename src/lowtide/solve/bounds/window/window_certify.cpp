// Computes the bound that given multipliers prove: rounds them to integers that satisfy the rows of
// the dual, then adds up cuts.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lowtide/solve/bounds/common/index.h"
#include "lowtide/solve/bounds/window/window_bound.h"

namespace lowtide::solve::bounds {

namespace {

__extension__ using Wide = __int128;

}  // namespace

std::int64_t WindowBound::scaled(double dual) const {
  const double value = std::ldexp(std::max(0.0, dual) * tick_unit_, scale_.time_shift);
  return value < static_cast<double>(scale_.most) ? static_cast<std::int64_t>(value) : scale_.most;
}

// If several windows begin at a cut point, the price of holding a tensor there is divided among
// them. A tensor of only one of these windows pays there. A tensor decided to be live pays its
// price in any case, and no window pays for it; one decided not to be live has no price at which a
// window could hold it.
std::int64_t WindowBound::share_holding(std::span<const double> duals) {
  const Graph& graph = problem_.graph;
  Wide value = 0;
  std::vector<std::int64_t> left(graph.tensor_count());
  std::vector<double> wanted(graph.tensor_count());
  for (std::size_t moment = 0; moment < moments_.size(); ++moment) {
    for (std::size_t i = 0; i < left.size(); ++i)
      left[i] = static_cast<std::int64_t>(std::min(
          Wide{multiplier_[moment]} * graph.bytes(TensorId(i)).count() >> scale_.price_shift,
          Wide{scale_.most}));
    std::fill(wanted.begin(), wanted.end(), 0.0);
    const auto each = [&](bool ends, auto visit) {
      for (std::size_t w = 0; w < windows_.size(); ++w)
        if ((ends ? windows_[w].to : windows_[w].from) == moment)
          for (std::size_t i = 0; i < windows_[w].items.size(); ++i)
            visit(w, i, windows_[w].items[i].tensor.index());
    };
    each(true, [&](std::size_t w, std::size_t i, std::size_t tensor) {
      left[tensor] = std::min(left[tensor] + carry_[w][i], scale_.most);
    });
    const auto dual = [&](std::size_t w, std::size_t i) {
      return std::max(0.0, duals[index(places_[w].keep_row[i])]);
    };
    each(false,
         [&](std::size_t w, std::size_t i, std::size_t tensor) { wanted[tensor] += dual(w, i); });
    for (std::size_t i = 0; i < left.size(); ++i)
      if (fixed_[moment][i] == Hold::kept) value += left[i];
    each(false, [&](std::size_t w, std::size_t i, std::size_t tensor) {
      if (const Hold hold = fixed_[moment][tensor]; hold != Hold::open) {
        hold_[w][i] = hold == Hold::kept ? 0 : scale_.most;
        return;
      }
      // The last one takes the rest.
      const bool last = dual(w, i) >= wanted[tensor];
      const double part = last ? 1.0 : dual(w, i) / wanted[tensor];
      const auto paid = static_cast<std::int64_t>(static_cast<double>(left[tensor]) * part);
      hold_[w][i] = last ? left[tensor] : std::clamp<std::int64_t>(paid, 0, left[tensor]);
      left[tensor] -= hold_[w][i];
      wanted[tensor] -= dual(w, i);
    });
  }
  return static_cast<std::int64_t>(std::min(value, Wide{1} << 61));
}

// Windows over several intervals propose their shares of an op's time, which are reduced so that in
// each interval they sum to at most the whole; the window of the interval itself takes the rest.
void WindowBound::share_time(std::span<const double> duals) {
  const Graph& graph = problem_.graph;
  const std::size_t moments = moments_.size();
  const auto each_share = [&](auto visit) {
    for (std::size_t w = 0; w < windows_.size(); ++w)
      for (std::size_t i = 0; !windows_[w].unit() && i < windows_[w].ops.size(); ++i) {
        const OpId op = windows_[w].ops[i];
        // An op that may run for the first time in the first interval runs for free.
        if (!has_run(op, windows_[w].from)) continue;
        const double dual = duals[splits_begin() + index(places_[w].split_row[i])];
        visit(w, i, op.index(), std::max(0.0, dual));
      }
  };
  const auto each_interval = [&](std::size_t w, auto visit) {
    for (std::size_t at = windows_[w].from; at < std::min(moments, windows_[w].to); ++at) visit(at);
  };
  std::vector<double> wanted(graph.op_count() * moments, 0);
  each_share([&](std::size_t w, std::size_t, std::size_t op, double dual) {
    each_interval(w, [&](std::size_t at) { wanted[op * moments + at] += dual; });
  });
  std::vector<double> shrink(graph.op_count(), 1);
  std::vector<std::int64_t> left(graph.op_count() * moments, 0);
  for (std::size_t op = 0; op < graph.op_count(); ++op) {
    const Ticks whole = graph.time(OpId(op));
    const double time = static_cast<double>(whole.count()) / tick_unit_;
    for (std::size_t at = 0; at < moments; ++at) {
      if (!has_run(OpId(op), at)) continue;
      left[op * moments + at] = scale_.scaled(whole);
      shrink[op] = std::min(shrink[op], time / std::max(wanted[op * moments + at], 1e-30));
    }
  }
  each_share([&](std::size_t w, std::size_t i, std::size_t op, double dual) {
    std::int64_t share = scaled(dual * shrink[op]);
    each_interval(w, [&](std::size_t at) { share = std::min(share, left[op * moments + at]); });
    each_interval(w, [&](std::size_t at) { left[op * moments + at] -= share; });
    time_[w][i] = share;
  });
  for (std::size_t w = 0; w < windows_.size(); ++w)
    for (std::size_t i = 0; windows_[w].unit() && i < windows_[w].ops.size(); ++i)
      time_[w][i] = left[windows_[w].ops[i].index() * moments + windows_[w].from];
}

std::int64_t WindowBound::certify(std::span<const double> duals, Limits& limits) {
  for (auto* prices : {&hold_, &carry_, &time_}) prices->resize(windows_.size());
  multiplier_.resize(moments_.size());
  Wide value = 0;
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    const double price = std::max(0.0, duals[memory_begin() + i]) * tick_unit_ / byte_unit_;
    multiplier_[i] = static_cast<std::int64_t>(
        std::min(std::ldexp(price, scale_.time_shift + scale_.price_shift), 0x1p60));
    const Wide room = Wide{multiplier_[i]} * room_[i];
    value -= (room + (Wide{1} << scale_.price_shift) - 1) >> scale_.price_shift;
  }
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    const std::size_t items = windows_[w].items.size();
    hold_[w].assign(items, 0);
    carry_[w].assign(items, 0);
    time_[w].assign(windows_[w].ops.size(), 0);
    for (std::size_t i = 0; i < items; ++i)
      if (const std::int32_t row = places_[w].carry_row[i]; row >= 0)
        carry_[w][i] = scaled(duals[index(row)]);
  }
  value += share_holding(duals);
  share_time(duals);
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    Window& window = windows_[w];
    window.flow.clear();
    for (const std::int32_t arc : window.unbounded)
      window.flow.grow_capacity(arc, MaxFlow::kUnbounded);
    for (std::size_t i = 0; i < window.ops.size(); ++i)
      window.flow.grow_drain(small(i), time_[w][i]);
    for (std::size_t i = 0; i < window.items.size(); ++i) {
      const Window::Item& item = window.items[i];
      const std::int64_t hold = hold_[w][i];
      window.flow.grow_supply(window.node(i), item.needed ? hold : std::min(carry_[w][i], hold));
      if (item.arc >= 0)
        window.flow.grow_capacity(item.arc, hold);
      else
        window.flow.grow_drain(window.node(i), hold);
      value -= carry_[w][i];
    }
    if (!window.flow.run(limits)) return 0;
    value += window.flow.value();
  }
  return static_cast<std::int64_t>(std::clamp(value, Wide{0}, Wide{1} << 61));
}

}  // namespace lowtide::solve::bounds
