// One computation as a graph: its instructions become ops, its arrays tensors. Private to the room.
//
// Tuples, their elements and bitcasts are other names of the arrays in them. A parameter is an
// input that stays, or, if donated, one that may be freed. A constant is part of the program and
// takes no bytes, as in XLA's own totals; nor do arrays in host memory (S(5)). What a while carries
// unchanged remains the same tensor; what it changes is a new one that can be written over the old.
// The temporaries of called computations are workspace. An asynchronous pair is an op that makes
// the result, and one without outputs that reads operands and result, so that both are live in
// between; what reads the result comes after it.
#pragma once

#include <cstdint>
#include <vector>

#include "lowtide/device/device.h"
#include "lowtide/io/hlo/draft.h"
#include "lowtide/io/hlo/inside.h"
#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// What a computation that control runs (the body of a while, a branch) costs its caller, once.
struct Run {
  Bytes temporaries;  // the most bytes beside its parameters and results
  std::int64_t ns = 0, operations = 0;
  // For each leaf of the result: the leaf of the parameters, counted over all, that it is,
  // unchanged; or -1.
  std::vector<std::int64_t> passes;
};

// What is known of the computations of a module, by index.
struct Known {
  const Module& module;
  const Device& device;
  std::vector<Inside> inside;
  std::vector<Run> runs;             // of those that were lowered before
  std::int64_t uncounted_loops = 0;  // without a known number of trips
};

struct Lowered {
  Draft draft;
  Run run;  // without temporaries
};

// `is_main`: the entry, whose parameters may be donated. InputError (place: the instruction) for
// an alias of arrays that the shapes do not have, and for figures of 2^63 or more.
Lowered lower(Known& known, std::uint32_t computation, bool is_main);

}  // namespace lowtide::io::hlo
