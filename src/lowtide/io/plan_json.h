// Plan files in and out; docs/reference/formats.md has the format, sim/check_plan.h judges one.
#pragma once

#include <string>
#include <string_view>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/plan_record.h"
#include "lowtide/plan/problem.h"

namespace lowtide {

// InputError with the file's name and the place (a line, or a JSON pointer) for broken JSON, wrong
// types, unknown words and versions, transforms, and transfers without a machine. Whether indices
// and steps fit a graph is not looked at.
PlanFile read_plan(const std::string& path);  // "-": standard input; gzip or plain
PlanFile read_plan_text(std::string_view text, const std::string& file_name);

// The file of an answer: the plan found for the problem, or that none was. `asked` says how it was
// sought (solver, seed, limits); how it went is taken from the outcome. Claims are of least time,
// whatever was asked for: that a plan needs the least memory is not among them.
PlanFile plan_file(const Problem& problem, const Outcome& outcome, FoundBy asked);

// Deterministic; several steps on a line, what is absent left out.
std::string write_plan(const PlanFile& file);

}  // namespace lowtide
