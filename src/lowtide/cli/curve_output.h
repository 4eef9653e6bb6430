// The output files of `curve`: figures, a page, a folder of plans.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/cli/plan_output.h"
#include "lowtide/driver/curve.h"

namespace lowtide::cli {

struct CurvePaths {
  std::string csv, html, folder;  // empty: not requested
};

class CurveOutput {
 public:
  // Makes the folder. InputError if a path cannot be written, so that the error comes before the
  // search.
  CurveOutput(const Graph& graph, const driver::CurveRequest& request, CurvePaths paths);

  // Whether any path may be written more than once.
  bool has_files() const;
  // Writes the files during the search; of the plans only those that became better.
  void write_so_far(Tradeoff curve);
  // Writes everything. Returns the paths in the order of `CurvePaths`.
  std::vector<std::string> write(const Tradeoff& curve);

 private:
  void write_plans(const Tradeoff& curve, bool all);

  const Graph& graph_;
  driver::FootprintTerms footprint_;
  CurvePaths paths_;
  driver::Request found_by_;
  std::map<Bytes, Cost> plans_;  // in the folder
};

}  // namespace lowtide::cli
