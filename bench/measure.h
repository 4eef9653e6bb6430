// One run, and all that can be told of it afterwards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lowtide/driver/driver.h"

namespace lowtide::bench {

// How far a run was. Overheads are in per cent, of the plan only if there is one.
struct Point {
  double seconds = 0;
  std::optional<double> overhead;
  double bound = 0;
};

struct Measurement {
  std::string status;  // of the outcome, or "unsupported", or "failed"
  std::string failure;
  std::string found_by;
  double seconds = 0;
  std::vector<Point> points;  // whenever plan or bound changed, and at the end
  std::optional<double> gap;  // in per cent of the bound
  std::optional<Bytes> peak;
  // The largest memory of this process during the run, the graph included; Linux tells.
  std::optional<Bytes> resident;
  bool finished = false;  // by itself, so that more time changes nothing

  std::optional<double> overhead() const { return points.back().overhead; }
  double bound() const { return points.back().bound; }
  // At so many seconds; nothing if there was no plan, if the run was not that long, or if no clock
  // limited it.
  std::optional<double> overhead_at(double seconds, std::optional<double> limit) const;
  std::optional<double> first_plan() const;
  // How much of the bound's overhead the plan's is more, in per cent; where the bound's is 0, 0 up
  // to 0.05 points and infinite beyond.
  std::optional<double> within() const;
};

// Does not throw for what a solver does wrong: that is a row of the table, too.
Measurement measure(const solve::SolverTable& solvers, const Question& question,
                    driver::Request request);

}  // namespace lowtide::bench
