// Maximizes the Lagrangian bound of one cut point over the multiplier of its memory. Private to the
// solver; see cut_search.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lowtide/solve/bounds/cut/cut_network.h"

namespace lowtide::solve::bounds {

// Fixed-point scale of capacities, the same for all cut points of a problem. `prices`: the number
// of prices that a tensor may have in one network.
struct CutScale {
  explicit CutScale(const Graph& graph, std::int64_t prices = 1);

  std::int64_t scaled(Ticks time) const {
    return time_shift >= 0 ? time.count() << time_shift : time.count() >> -time_shift;
  }
  std::int64_t scaled_up(Ticks time) const { return scaled(time) + (time_shift < 0 ? 1 : 0); }
  // The time of a transfer, which may exceed that of all ops; at most `most`.
  std::int64_t transfer(Ticks time) const { return time.count() >= longest ? most : scaled(time); }
  // The scaled value in ticks, rounded up.
  Ticks ticks(std::int64_t value) const;

  std::int64_t total = 0;    // scaled time of the whole graph
  int time_shift = 0;        // scaled time = time x 2^time_shift
  int price_shift = 0;       // scaled price of so many bytes = bytes x multiplier / 2^price_shift
  std::int64_t most = 0;     // a price above the scaled time of the whole graph; their sum fits
  std::int64_t longest = 0;  // ticks beyond which a transfer is as good as `most`
};

// Multipliers of the links' capacity: the dual value of a unit of time of the link to the host
// before the cut point (`out`), and of the link back after it (`in`), in units of the plan's
// duration, from 0 to 1. See docs/why/bounds.md.
struct LinkShares {
  static constexpr int kBits = 30;
  static constexpr std::int64_t kAll = std::int64_t{1} << kBits;
  std::int64_t out = 0, in = 0;  // in 2^-kBits
};

// The decision on a choice.
enum class Hold : std::uint8_t { open, kept, dropped };

struct CutAim {
  std::int64_t multiplier = 0;  // the first one to try; 0: unknown
  Ticks worth;                  // give up when the bound cannot exceed this
  Ticks enough = Ticks::max();  // stop when the bound reaches this
};

struct CutFound {
  bool stopped = false;
  bool infeasible = false;      // no plan that obeys the holds keeps the budget
  Ticks extra;                  // lower bound of such plans, beyond the base duration
  std::int64_t multiplier = 0;  // the one that proves it
  std::int32_t branch = -1;     // a choice in which the two cuts at the best multiplier differ
  // With a machine, scaled, for the choice of shares; these are no proven bounds. `value`: the best
  // Lagrangian value at these shares. At any other shares it is at most `limit` plus the slopes
  // times the distance. `moved`: the time of all transfers, weighted by the shares.
  double value = 0, limit = 0, out_slope = 0, in_slope = 0, moved = 0;
};

class CutSearch {
 public:
  CutSearch(const Problem& problem, CutNetwork network, const CutScale& scale, Limits& limits);

  // Initially both are 0. Without a machine, tensors cannot be on the host.
  void set_shares(const LinkShares& shares);
  const LinkShares& shares() const { return shares_; }

  CutFound maximise(std::span<const std::pair<std::int32_t, Hold>> holds, const CutAim& aim);

  // Without a machine: the fewest bytes in use at the cut point in any plan, regardless of time.
  // nullopt if stopped. Resets the holds.
  std::optional<Bytes> least_bytes();

  // The fastest of all cuts seen that keep the budget.
  struct Kept {
    Ticks extra;
    std::vector<OpId> again;
    std::vector<TensorId> dropped;  // the tensors not kept, all of which `again` can recompute
  };
  const std::optional<Kept>& best() const { return best_; }

  CutNetwork& network() { return network_; }

 private:
  struct Point {
    std::int64_t multiplier = 0;
    std::int64_t value = 0;                         // of the Lagrangian, scaled
    std::int64_t bytes = 0;                         // kept by the cut among the open choices
    double out_slope = 0, in_slope = 0, moved = 0;  // see CutFound
    std::vector<std::uint8_t> kept;
  };

  void decide(std::span<const std::pair<std::int32_t, Hold>> holds);
  void start_afresh();
  void save();
  void restore();
  std::int64_t price(std::size_t choice, std::int64_t multiplier) const;
  // Whether a choice that pays in the last cut is kept on the device, at this multiplier.
  bool is_kept(std::size_t choice, std::int64_t multiplier) const;
  // The multiplier must be at least that of the call before, whose flow is continued. Returns false
  // if stopped.
  bool evaluate(std::int64_t multiplier, Point& point);
  std::int64_t paid_outright(std::int64_t multiplier) const;
  void find_slopes(Point& point) const;
  static void tell(const Point& point, CutFound& found);
  void mix(const Point& left, const Point& right, CutFound& found) const;
  void remember_if_best(std::int64_t multiplier);
  std::int64_t crossing(const Point& left, const Point& right) const;
  std::int64_t limit_of(const Point& left, const Point& right) const;
  static std::int32_t differing(const CutNetwork& network, const Point& left, const Point& right);

  const Problem& problem_;
  CutNetwork network_;
  const CutScale& scale_;
  Limits& limits_;
  std::vector<Hold> holds_;
  std::int64_t room_ = 0;  // bytes left for the open choices
  // Scaled prices at the shares. again_: of running an op after the cut point. host_: of a choice
  // on the host. all_again_: of both together. link_time_: the constant term for the links'
  // capacity.
  LinkShares shares_;
  std::vector<std::int64_t> again_, host_;
  std::vector<std::int64_t> grown_, saved_grown_;  // prices in the flow, and in the saved flow
  std::int64_t all_again_ = 0, link_time_ = 0;
  bool outright_ = false;
  MaxFlow::State saved_;
  std::optional<Kept> best_;
};

}  // namespace lowtide::solve::bounds
