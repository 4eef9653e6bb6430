// The known trade-off of time and memory: plans on the Pareto front of both, and the bounds proven
// for each budget. A plan needs the bytes of its footprint if that was measured, otherwise its
// peak. All plans of one frontier are measured, or none.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/plan/footprint.h"
#include "lowtide/plan/outcome.h"

namespace lowtide {

class Frontier {
 public:
  struct Entry {
    Cost cost;
    std::shared_ptr<const Plan> plan;
    std::string found_by;
    std::optional<Taken> taken = std::nullopt;

    Bytes needs() const { return taken ? taken->bytes : cost.peak; }
  };

  // Whether a plan that needs so much and takes so long would be kept: no known plan is as good in
  // both figures.
  bool improves(Bytes needs, Ticks duration) const;
  bool improves(const Cost& cost) const { return improves(cost.peak, cost.duration); }
  bool add(Entry entry);
  // Drops every plan that `keep` rejects.
  template <class Keep>
  void thin(Keep keep) {
    std::erase_if(entries_, [&](const Entry& entry) { return !keep(entry); });
  }

  // By ascending needs; durations fall.
  const std::vector<Entry>& entries() const { return entries_; }
  // The shortest plan within the budget; null if there is none.
  const Entry* best(Bytes budget) const;
  // The plan that needs least of those above the budget; it is shorter than any within it.
  const Entry* above(Bytes budget) const;
  // The plan that needs least within the time limit.
  const Entry* smallest(Ticks limit = Ticks::max()) const;

  // Proven: no plan within the budget is shorter. It holds for every smaller budget too.
  void raise_bound(Bytes budget, Ticks duration);
  void raise_floor(Bytes peak);  // proven: no plan has a smaller peak
  Ticks bound(Bytes budget) const;
  Bytes floor() const { return floor_; }
  // Proven: no plan within fewer bytes keeps the time limit.
  Bytes floor(Ticks limit) const;
  // Whether the budget is solved: its plan is proven optimal, or the budget infeasible.
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
