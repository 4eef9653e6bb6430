// All that is known about time against memory: plans of which none beats another in both, and what
// is proven of each budget.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/plan/outcome.h"

namespace lowtide {

class Frontier {
 public:
  struct Entry {
    Cost cost;
    std::shared_ptr<const Plan> plan;
    std::string found_by;
  };

  // Whether a plan of that cost would be kept: no other needs as little of both.
  bool improves(const Cost& cost) const;
  bool add(Entry entry);
  // Forgets every plan but those that `keep` says yes to.
  template <class Keep>
  void thin(Keep keep) {
    std::erase_if(entries_, [&](const Entry& entry) { return !keep(entry); });
  }

  // By ascending peaks; durations fall.
  const std::vector<Entry>& entries() const { return entries_; }
  // The shortest within the budget; null if there is none.
  const Entry* best(Bytes budget) const;
  // The one with the smallest peak beyond the budget: shorter than any within it.
  const Entry* above(Bytes budget) const;
  // The one with the smallest peak within the time limit.
  const Entry* smallest(Ticks limit = Ticks::max()) const;

  // No plan within the budget is shorter. Holds for every smaller budget too.
  void raise_bound(Bytes budget, Ticks duration);
  void raise_floor(Bytes peak);  // no plan needs less
  Ticks bound(Bytes budget) const;
  Bytes floor() const { return floor_; }
  // Within fewer bytes no plan is within the time limit.
  Bytes floor(Ticks limit) const;
  // Nothing is left to find at that budget: its plan is proven, or that there is none.
  bool decided(Bytes budget) const;

 private:
  struct Claim {
    Bytes budget;
    Ticks duration;
  };
  std::vector<Entry> entries_;
  std::vector<Claim> claims_;  // by ascending budgets; durations fall
  Bytes floor_;
};

}  // namespace lowtide
