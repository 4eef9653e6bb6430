// The line that moves while a solver plans for one budget.
#pragma once

#include "lowtide/cli/live_line.h"
#include "lowtide/graph/graph.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::cli {

class SearchLine {
 public:
  // `show` is false on a pipe: then nothing is printed. The graph must outlive it.
  SearchLine(const Graph& graph, bool show);

  // From the solver's thread.
  void update(const solve::Progress& progress);

 private:
  const Graph& graph_;
  bool show_;
  LiveLine line_;
};

}  // namespace lowtide::cli
