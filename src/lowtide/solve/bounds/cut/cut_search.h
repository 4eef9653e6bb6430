// The best price for the memory of one cut point, and the bound that it proves. Private to the
// solver; see cut_search.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lowtide/solve/bounds/cut/cut_network.h"

namespace lowtide::solve::bounds {

// Fixed point for capacities, the same for all cut points of a problem. Each tensor may have so
// many prices in one network.
struct CutScale {
  explicit CutScale(const Graph& graph, std::int64_t prices = 1);

  std::int64_t scaled(Ticks time) const {
    return time_shift >= 0 ? time.count() << time_shift : time.count() >> -time_shift;
  }
  std::int64_t scaled_up(Ticks time) const { return scaled(time) + (time_shift < 0 ? 1 : 0); }
  // Of a transfer, which may take longer than all ops; no more than `most`.
  std::int64_t transfer(Ticks time) const { return time.count() >= longest ? most : scaled(time); }
  // The least whole number of ticks that is not below what the scaled value stands for.
  Ticks ticks(std::int64_t value) const;

  std::int64_t total = 0;    // scaled time of the whole graph
  int time_shift = 0;        // scaled time = time x 2^time_shift
  int price_shift = 0;       // scaled price of so many bytes = bytes x multiplier / 2^price_shift
  std::int64_t most = 0;     // a price above the scaled time of the whole graph; their sum fits
  std::int64_t longest = 0;  // ticks beyond which a transfer is as good as `most`
};

// What an hour of the links is worth, between 0 and one hour of the plan: of that to the host
// before the cut point and of that back after it. See docs/why/bounds.md.
struct LinkShares {
  static constexpr int kBits = 30;
  static constexpr std::int64_t kAll = std::int64_t{1} << kBits;
  std::int64_t out = 0, in = 0;  // in 2^-kBits
};

// What is decided of a choice.
enum class Hold : std::uint8_t { open, kept, dropped };

struct CutAim {
  std::int64_t multiplier = 0;  // to begin with; 0: no idea
  Ticks worth;                  // give up when the bound cannot become more than this
  Ticks enough = Ticks::max();  // stop when the bound is as much
};

struct CutFound {
  bool stopped = false;
  bool infeasible = false;      // nothing that obeys the holds keeps within the budget
  Ticks extra;                  // beside the base duration: no plan that obeys them needs less
  std::int64_t multiplier = 0;  // that proved it
  std::int32_t branch = -1;     // a choice on which the cuts beside the best multiplier differ
  // With a machine, scaled, to choose shares by; no claims. What the holds allow is at most `value`
  // at some multiplier here, and at most `limit` and these slopes times the distance at any other
  // shares. `moved`: the time of all transfers, at the shares.
  double value = 0, limit = 0, out_slope = 0, in_slope = 0, moved = 0;
};

class CutSearch {
 public:
  CutSearch(const Problem& problem, CutNetwork network, const CutScale& scale, Limits& limits);

  // At the start 0 each, so that nothing is worth sending to the host without a machine.
  void set_shares(const LinkShares& shares);
  const LinkShares& shares() const { return shares_; }

  CutFound maximise(std::span<const std::pair<std::int32_t, Hold>> holds, const CutAim& aim);

  // Without a machine: the fewest bytes in use at the cut point, whatever runs again and however
  // long that takes; none if stopped. Forgets the holds.
  std::optional<Bytes> least_bytes();

  // Of all cuts seen that keep within the budget, the one whose ops take the least time.
  struct Kept {
    Ticks extra;
    std::vector<OpId> again;
    std::vector<TensorId> dropped;  // by the cut; no more than `again` can make
  };
  const std::optional<Kept>& best() const { return best_; }

  CutNetwork& network() { return network_; }

 private:
  struct Point {
    std::int64_t multiplier = 0;
    std::int64_t value = 0;  // of the Lagrangian, scaled
    std::int64_t bytes = 0;  // beside the fixed ones, of what is open and kept by the cut
    double out_slope = 0, in_slope = 0, moved = 0;  // see CutFound
    std::vector<std::uint8_t> kept;
  };

  void decide(std::span<const std::pair<std::int32_t, Hold>> holds);
  void start_afresh();
  void save();
  void restore();
  std::int64_t price(std::size_t choice, std::int64_t multiplier) const;
  // At this multiplier, of what the last cut lets pay.
  bool is_kept(std::size_t choice, std::int64_t multiplier) const;
  // From the flow at a multiplier that is not larger.
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
  std::int64_t room_ = 0;  // bytes for what is open
  // Scaled, at the shares: of running an op after the cut point, of a choice on the host; of
  // running all ops and all choices on the host; what is taken off for the time of the links.
  LinkShares shares_;
  std::vector<std::int64_t> again_, host_;
  std::vector<std::int64_t> grown_, saved_grown_;  // the prices in the flow now, and as saved
  std::int64_t all_again_ = 0, link_time_ = 0;
  bool outright_ = false;
  MaxFlow::State saved_;
  std::optional<Kept> best_;
};

}  // namespace lowtide::solve::bounds
