// Solvers that were written in Python stand in the same table as the others.
#pragma once

#include "lowtide/solve/interface/solver.h"

#include "guests.h"
#include "objects.h"

namespace lowtide::python {

// All solvers, those registered last: for a solve of `graph`, which those are handed as it is.
// Guests have their places in `hiremate`. With the interpreter lock held.
solve::SolverTable all_solvers(const GraphObject& graph, const Guests& guests = {});

// What a solver written in Python is handed. Its context lives as long as the call.
nb::object make_context(solve::Context& context, const GraphObject& graph);
void end_context(nb::handle context);
// The plan as a solver's offer, over the budget or not. PlanRefused for one that breaks a rule.
bool offer_checked(solve::Context& context, const PlanObject& plan);

}  // namespace lowtide::python
