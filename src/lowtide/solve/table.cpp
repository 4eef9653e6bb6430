// The one table of solvers: adding one is a line here.
#include <algorithm>

#include "lowtide/base/error.h"
#include "lowtide/solve/bounds/bounds.h"
#include "lowtide/solve/evict/evict.h"
#include "lowtide/solve/exact/checkmate/checkmate.h"
#include "lowtide/solve/exact/moccasin/moccasin.h"
#include "lowtide/solve/exhaustive/exhaustive.h"
#include "lowtide/solve/given/given.h"
#include "lowtide/solve/greedy/greedy.h"
#include "lowtide/solve/hierarchy/hiremate/hiremate.h"
#include "lowtide/solve/interface/solver.h"
#include "lowtide/solve/kumar/pwremat/pwremat.h"
#include "lowtide/solve/kumar/twremat/twremat.h"
#include "lowtide/solve/local/drop/drop.h"
#include "lowtide/solve/local/mirror/mirror.h"
#include "lowtide/solve/local/search/search.h"
#include "lowtide/solve/magis/magis.h"
#include "lowtide/solve/offload/offload.h"
#include "lowtide/solve/order/order.h"
#include "lowtide/solve/sqrt/sqrt.h"

namespace lowtide::solve {

SolverTable make_solvers() {
  SolverTable table;
  table.add(given::make_given());
  table.add(order::make_order());
  table.add(exhaustive::make_exhaustive());
  table.add(local::drop::make_drop());
  table.add(local::mirror::make_mirror());
  table.add(evict::make_evict());
  table.add(sqrt::make_sqrt());
  table.add(greedy::make_greedy());
  table.add(offload::make_offload());
  table.add(kumar::twremat::make_twremat());
  table.add(kumar::pwremat::make_pwremat());
  table.add(local::search::make_search());
  table.add(hierarchy::make_hiremate());
  table.add(magis::make_magis());
  table.add(bounds::make_bounds());
  table.add(exact::moccasin::make_moccasin());
  table.add(exact::checkmate::make_checkmate());
  return table;
}

void SolverTable::replace(std::unique_ptr<Solver> solver) {
  const auto old =
      std::ranges::find(solvers_, solver->name(), [](const auto& s) { return s->name(); });
  check(old != solvers_.end(), "a solver takes the place of one that there is");
  *old = std::move(solver);
}

const Solver* SolverTable::find(std::string_view name) const {
  for (const auto& solver : solvers_)
    if (solver->name() == name) return solver.get();
  return nullptr;
}

std::vector<const Solver*> SolverTable::with(Trait trait) const {
  std::vector<const Solver*> found;
  for (const auto& solver : solvers_)
    if (solver->traits().has(trait)) found.push_back(solver.get());
  return found;
}

const Solver* SolverTable::own(Trait trait) const {
  for (const Solver* solver : with(trait))
    if (!solver->traits().has(Trait::external) && !solver->traits().has(Trait::guest))
      return solver;
  return nullptr;
}

}  // namespace lowtide::solve
