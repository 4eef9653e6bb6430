// Squeaky wheel optimisation: what ends too high in a dive moves forward in the order of the next
// one. Source: D. Joslin and D. Clements, "Squeaky wheel" optimization, JAIR 1999. Private to the
// room.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/base/random.h"
#include "lowtide/layout/skyline.h"

namespace lowtide::layout {

// The lowest placement of some items that is known.
struct Lowest {
  std::int64_t height = INT64_MAX;
  std::vector<std::int64_t> offsets;
};

class SqueakyWheel {
 public:
  // All of these must outlive it; `loads` has the load over each item.
  SqueakyWheel(std::span<const Item> items, std::span<const std::int64_t> loads, Skyline& skyline,
               std::uint64_t seed);

  // Dives until `lowest` is at most `goal` or a limit comes.
  void run(std::int64_t goal, Lowest& lowest, Limits& limits);

 private:
  void blame(std::int64_t above);  // what ends above
  void shuffle();
  void restart();
  void start_anew();  // from the next rule

  std::span<const Item> items_;
  std::span<const std::int64_t> loads_;
  Skyline& skyline_;
  Random random_;
  std::size_t starts_ = 0;
  std::vector<double> keys_, best_keys_;
  std::vector<std::int32_t> ranks_;
  std::int64_t best_ = INT64_MAX;  // height since the last start
  int since_ = 0;                  // dives since it fell
};

}  // namespace lowtide::layout
