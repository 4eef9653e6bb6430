// The lanes of a plan that copies to the host or uses the network: computing, copies out, copies
// in, network. Shows where computing waits, which tensors are copied, and how much of the copying
// and of the network's time is hidden.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/plan.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::report {

struct Copy {
  std::size_t step;
  TensorId tensor;
  bool out;          // to the host; otherwise back to the device
  Ticks begin, end;  // on its lane
  Ticks hidden;      // while the device computes
};

// A computation on the network lane.
struct Sent {
  std::size_t step;
  OpId op;
  Ticks begin, end;  // on its lane
  Ticks hidden;      // while the device computes
};

// A time in which the compute lane waits for copies or for the network: before a computation, at a
// free or, if the step is the number of steps, at the end.
struct Stall {
  std::size_t step;
  Ticks begin, end;
};

// All copies of one tensor, or of several.
struct Moved {
  TensorId tensor;
  std::string name = {}, origin = {};  // of the op that makes it; as LiveTensor has them
  std::size_t out = 0, in = 0;         // copies each way
  Bytes bytes = {};                    // bytes of these copies
  Ticks time = {}, hidden = {};        // of the copies, and the share of it during computation
};

struct Lanes {
  std::vector<Copy> copies;    // in the order of the steps
  std::vector<Sent> sent;      // in the order of the steps
  std::vector<Stall> stalls;   // ascending
  std::vector<Moved> moved;    // the most bytes first
  Bytes out, in;               // bytes of all copies each way
  Ticks copying, hidden;       // of all copies, as of Moved
  Ticks sending, sent_hidden;  // of all computations on the network lane, as of Sent
  Ticks stalled;
  bool empty() const { return copies.empty() && sent.empty(); }
};

// Empty for a plan without copies and network ops. `timeline` is the plan's.
Lanes lanes_of(const Graph& graph, const Plan& plan, const Timeline& timeline);

Moved moved_by(const Graph& graph, const Copy& copy);
// Adds the copies of another tensor.
void add_up(Moved& sum, const Moved& other);

// The hidden share of the copying, 0 to 1; 1 if there is no copying.
double hidden_share(Ticks hidden, Ticks copying);

// "1.50 GiB out, 1.50 GiB in, 93.1 % of the time hidden; computing waits for 2.30 ms".
std::string copied_text(const Lanes& lanes, TickUnit tick);
// "35.0 ms on the network, 93.1 % of the time hidden; computing waits for 2.30 ms".
std::string network_text(const Lanes& lanes, TickUnit tick);

// The functions below divide a duration into `count` equal stretches.
std::size_t stretch_of(Ticks time, Ticks duration, std::size_t count);
// The peak of each stretch, up to the end of the run. A step lasts from the end of the step before
// on the compute lane to its own end; a copy counts when its step comes.
std::vector<Bytes> live_by_time(const Timeline& timeline, Ticks duration, std::size_t count);
// The share of each stretch, 0 to 1, up to the end of the run: without a stall; with a copy in the
// given direction; with a computation on the network lane.
std::vector<double> computing_by_time(const Lanes& lanes, const Timeline& timeline, Ticks duration,
                                      std::size_t count);
std::vector<double> copying_by_time(const Lanes& lanes, bool out, Ticks duration,
                                    std::size_t count);
std::vector<double> sending_by_time(const Lanes& lanes, Ticks duration, std::size_t count);

}  // namespace lowtide::report
