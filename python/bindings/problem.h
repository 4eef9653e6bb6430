// Problems out of what Python hands over.
#pragma once

#include <string>

#include "convert.h"
#include "objects.h"

namespace lowtide::python {

ProblemObject make_problem(const GraphObject& graph, nb::handle budget,
                           const std::string& objective, nb::handle time_limit,
                           const GivenTerms& terms, const std::optional<nb::dict>& live_limits);
nb::object budget_or_none(const ProblemObject& problem);

}  // namespace lowtide::python
