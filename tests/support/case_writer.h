// Graphs, plans and our verdicts on them as JSON lines, for the second verifier. A line is either
// {"graph": <graph file>, "own_peak": n} or {"plan": <plan file>, "verdict": {...}}, the latter for
// the graph before it. A writer of its own, so that room io has no part in the comparison.
#pragma once

#include <ostream>
#include <string>

#include "lowtide/plan/problem.h"
#include "lowtide/sim/verify.h"

namespace lowtide {

std::string graph_json(const Graph& graph);  // what planning needs of it
// With the problem's order and budget (none if it is Bytes::max()), without claims.
std::string plan_json(const Problem& problem, const Plan& plan);

class CaseWriter {
 public:
  explicit CaseWriter(std::ostream& out) : out_(out) {}

  // Writes the graph too if it is not the one of the case before.
  void write(const Problem& problem, const Plan& plan, const Verdict& verdict);

 private:
  std::ostream& out_;
  std::string latest_graph_;  // its hash
};

}  // namespace lowtide
