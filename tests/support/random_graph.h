// Small random graphs with every feature that a graph may have, valid by construction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lowtide/base/random.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

// Counts and numbers are drawn uniformly up to the limits; the rest are probabilities.
struct RandomGraphSettings {
  std::size_t ops = 10;        // exactly
  std::size_t inputs = 3;      // tensors that no op produces: from 0 to so many
  std::size_t reads = 3;       // inputs of an op: from 0 (rarely) to so many
  std::size_t window = 6;      // an op reads mostly what the last so many tensors were
  std::int64_t bytes = 10;     // of a tensor
  std::int64_t time = 10;      // of an op
  std::int64_t workspace = 6;  // of an op that has one
  std::int64_t resident = 4;
  double zero_bytes = 0.1;
  double zero_time = 0.1;
  double several_outputs = 0.2;  // an op makes two or three tensors
  double no_output = 0.08;       // an op makes none: it only has an effect
  double with_workspace = 0.25;
  double once = 0.12;         // an op that may not be recomputed
  double barrier = 0.04;      // an op that is a barrier
  double mutates = 0.1;       // an op changes an input in place, where that is legal
  double after = 0.08;        // an op comes after another without reading it
  double releasable = 0.4;    // an input that a plan may free
  double unread_input = 0.1;  // one more input that nothing reads
  double kept = 0.25;         // a tensor is a graph output; inputs too, at a third of it
  double shuffled = 0.5;      // listing and given order differ from the order of the drawing
  double in_place = 0.4;      // an op can write in place of an input, or of several
  double stays = 0.1;         // an input that the caller holds
  double on_host = 0;         // an input whose home is the host
  double network = 0;         // an op that is no barrier runs on the network lane
  double described = 0.3;     // names, shapes, phases and the like are filled in

  // Every op makes one tensor and may be recomputed; no workspaces, no effects, nothing resident,
  // no zeros; only sinks are kept.
  static RandomGraphSettings plain(std::size_t ops);
};

Graph random_graph(Random& random, const RandomGraphSettings& settings = {});

}  // namespace lowtide
