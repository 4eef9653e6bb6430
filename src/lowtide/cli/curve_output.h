// What `curve` writes: figures, a page, a folder of plans.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/cli/plan_output.h"
#include "lowtide/driver/curve.h"

namespace lowtide::cli {

struct CurvePaths {
  std::string csv, html, folder;  // empty: not asked for
};

class CurveOutput {
 public:
  // Makes the folder. InputError if something cannot be written there: said before the search, not
  // after it.
  CurveOutput(const Graph& graph, const driver::CurveRequest& request, CurvePaths paths);

  // Whether there is anything that may be written more than once.
  bool has_files() const;
  // The files as they stand now, while the search goes on; of the plans, those that are better.
  void write_so_far(Tradeoff curve);
  // Everything. Returns the paths written to, in the order of `CurvePaths`.
  std::vector<std::string> write(const Tradeoff& curve);

 private:
  void write_plans(const Tradeoff& curve, bool all);

  const Graph& graph_;
  CurvePaths paths_;
  driver::Request found_by_;
  std::map<Bytes, Cost> plans_;  // in the folder
};

}  // namespace lowtide::cli
