// The output of `plan`: files and text.
#pragma once

#include <optional>
#include <string>

#include "lowtide/driver/footprint.h"
#include "lowtide/plan/terms.h"
#include "lowtide/report/plot.h"

namespace lowtide::cli {

// InputError if no file can be written there, so that the error comes before a search. "-" and an
// empty path pass.
void require_writable(const std::string& path);

// The note in a plan file that is written during the search.
inline constexpr const char* kWrittenMeanwhile = "written while the search was running";

// Writes the plan file of an outcome; limits and seed are the request's. `full_link`: as of Terms.
void write_outcome(const std::string& path, const Question& question,
                   const std::optional<Machine>& full_link, const Outcome& outcome,
                   const driver::Request& request, const driver::FootprintTerms& footprint = {},
                   const std::optional<Taken>& taken = {});

struct PlanSummary {
  const Graph& graph;
  Bytes budget;
  const Terms& terms;
  const driver::Answer& answer;
  driver::FootprintTerms footprint = {};
  std::optional<Taken> taken = {};  // by the plan, of what the budget limits
  bool looked_for_transforms;
  std::string solver;
  std::uint64_t seed;
  double seconds;
  std::string plan_file;
};

std::string summary_text(const PlanSummary& summary, const report::TerminalStyle& style);
std::string summary_json(const PlanSummary& summary);

}  // namespace lowtide::cli
