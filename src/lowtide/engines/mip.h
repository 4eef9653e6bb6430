// Solving a MipModel by HiGHS, in a worker process.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lowtide/engines/engine.h"
#include "lowtide/engines/mip_model.h"

namespace lowtide::engines {

struct MipWatch {
  std::function<void(std::span<const double> values)> incumbent;  // better values each time
  std::function<void(double bound)> bound;
};

struct MipAnswer {
  EngineEnd end;
  std::vector<double> values;  // of the best solution; empty if there is none
};

// Solves many models one after the other in one worker process. A crash affects only the model that
// caused it. Not shared between threads.
class MipSession {
 public:
  explicit MipSession(EngineState engine);
  ~MipSession();

  MipAnswer solve(const MipModel& model, const EngineLimits& limits, const MipWatch& watch = {});

 private:
  friend MipAnswer solve_mip(const MipModel&, const EngineState&, const EngineLimits&,
                             const MipWatch&);
  MipAnswer solve(const MipModel& model, const EngineLimits& limits, const MipWatch& watch,
                  bool more);
  std::unique_ptr<class WorkerSession> session_;
};

// As solve_cp. A model without integers is a linear program: then `bound` is its optimum.
MipAnswer solve_mip(const MipModel& model, const EngineState& engine, const EngineLimits& limits,
                    const MipWatch& watch = {});

}  // namespace lowtide::engines
