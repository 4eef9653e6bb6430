// The one table of solvers: adding one is a line here.
#include "lowtide/solve/bounds/bounds.h"
#include "lowtide/solve/exact/checkmate/checkmate.h"
#include "lowtide/solve/evict/evict.h"
#include "lowtide/solve/given/given.h"
#include "lowtide/solve/greedy/greedy.h"
#include "lowtide/solve/exact/moccasin/moccasin.h"
#include "lowtide/solve/order/order.h"
#include "lowtide/solve/kumar/pwremat/pwremat.h"
#include "lowtide/solve/search/search.h"
#include "lowtide/solve/interface/solver.h"
#include "lowtide/solve/sqrt/sqrt.h"
#include "lowtide/solve/kumar/twremat/twremat.h"

namespace lowtide {

SolverTable make_solvers() {
  SolverTable table;
  table.add(make_given());
  table.add(make_order());
  table.add(make_greedy());
  table.add(make_evict());
  table.add(make_sqrt());
  table.add(make_twremat());
  table.add(make_pwremat());
  table.add(make_search());
  table.add(make_bounds());
  table.add(make_moccasin());
  table.add(make_checkmate());
  return table;
}

const Solver* SolverTable::find(std::string_view name) const {
  for (const auto& solver : solvers_)
    if (solver->name() == name) return solver.get();
  return nullptr;
}

}  // namespace lowtide
