// A random graph, a problem on it and a state of the search, for the tests of its parts.
#pragma once

#include <vector>

#include "lowtide/base/random.h"
#include "lowtide/solve/local/common/state/state.h"

namespace lowtide::solve::local {

class Fixture {
 public:
  // The order and the features of the graph are drawn too, and with `transfers` a machine and a
  // start that uses it.
  explicit Fixture(Random& random, bool transfers = false);

  const Graph graph;
  const Problem problem;
  const Network network;
  State state;

  // What State promises, slowly; and that the sequence is a legal plan with the state's duration
  // and peak.
  void check_all() const;
};

// All that an undo must restore.
struct Snapshot {
  explicit Snapshot(const State& state);
  bool operator==(const Snapshot&) const = default;

  std::vector<Event> sequence;
  double duration, over, peak, host;
  std::size_t items, repeats;
};

}  // namespace lowtide::solve::local
