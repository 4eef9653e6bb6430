// A lower bound on the time of the copies of tensors at home on the host: fetching them, and
// copying changed ones back.
#pragma once

#include "lowtide/plan/problem.h"

namespace lowtide::solve::bounds {

struct HomeBound {
  Ticks duration;  // a lower bound for every plan
  Ticks copies;    // the share of it that is copies
};

// Independent of the budget; 0 for a graph without such tensors. The problem has a machine if there
// are any. In the given order linear except for sorting. With a free order some passes over the
// graph for each such tensor, and 0 if that would take too long.
HomeBound home_bound(const Problem& problem);

}  // namespace lowtide::solve::bounds
