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
  // The least whole number of ticks that is not below what the scaled value stands for.
  Ticks ticks(std::int64_t value) const;

  int time_shift = 0;     // scaled time = time x 2^time_shift
  int price_shift = 0;    // scaled price of so many bytes = bytes x multiplier / 2^price_shift
  std::int64_t most = 0;  // a price above the scaled time of the whole graph; their sum fits
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
};

class CutSearch {
 public:
  CutSearch(const Problem& problem, CutNetwork network, const CutScale& scale, Limits& limits);

  CutFound maximise(std::span<const std::pair<std::int32_t, Hold>> holds, const CutAim& aim);

  // The fewest bytes in use at the cut point, whatever runs again and however long that takes; none
  // if stopped. Forgets the holds.
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
    std::vector<std::uint8_t> kept;
  };

  void decide(std::span<const std::pair<std::int32_t, Hold>> holds);
  void start_afresh();
  std::int64_t price(std::size_t choice, std::int64_t multiplier) const;
  // From the flow at a multiplier that is not larger.
  bool evaluate(std::int64_t multiplier, Point& point);
  void remember_if_best();
  std::int64_t crossing(const Point& left, const Point& right) const;
  std::int64_t limit_of(const Point& left, const Point& right) const;
  static std::int32_t differing(const CutNetwork& network, const Point& left, const Point& right);

  const Problem& problem_;
  CutNetwork network_;
  const CutScale& scale_;
  Limits& limits_;
  std::vector<Hold> holds_;
  std::int64_t room_ = 0;  // bytes for what is open
  std::int64_t flow_multiplier_ = 0;
  std::int64_t all_again_ = 0;  // scaled
  MaxFlow::State saved_;
  std::optional<Kept> best_;
};

}  // namespace lowtide::solve::bounds
