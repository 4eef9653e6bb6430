// The progress line of a search for one budget.
#pragma once

#include "lowtide/cli/live_line.h"
#include "lowtide/graph/graph.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::cli {

class SearchLine {
 public:
  // If `show` is false, as on a pipe, nothing is printed.
  SearchLine(const Graph& graph, bool show);

  // The solver's thread calls it.
  void update(const solve::Progress& progress);

 private:
  Ticks base_;  // the base duration
  bool show_;
  LiveLine line_;
};

}  // namespace lowtide::cli
