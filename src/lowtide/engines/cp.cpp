// The best solution counts even if CP-SAT crashes after it.
#include "lowtide/engines/cp.h"

#include <algorithm>
#include <utility>

#include "lowtide/engines/worker_session.h"

namespace lowtide::engines {

CpAnswer solve_cp(const CpModel& model, const EngineState& engine, const EngineLimits& limits,
                  const CpWatch& watch) {
  CpAnswer answer;
  std::optional<double> bound;
  EngineRequest request = request_for(EngineKind::cpsat, engine, limits);
  request.model = model.encode();
  request.hint = model.encode_hint();
  WorkerSession session(engine);
  answer.end = session.run(request, limits, [&](const EngineReport& report) -> std::string {
    switch (report.kind) {
      case EngineReport::incumbent:
        if (report.numbers.size() != model.var_count())
          return "gave a solution of " + std::to_string(report.numbers.size()) + " values for " +
                 std::to_string(model.var_count()) + " variables";
        answer.values = report.numbers;
        if (watch.incumbent) watch.incumbent(answer.values);
        break;
      case EngineReport::objective:
        if (watch.objective) watch.objective(report.value);
        break;
      case EngineReport::bound:
        bound = std::max(bound.value_or(report.value), report.value);
        if (watch.bound) watch.bound(report.value);
        break;
      default: break;
    }
    return {};
  });
  conclude(answer.end, EngineKind::cpsat, !answer.values.empty(), bound);
  return answer;
}

}  // namespace lowtide::engines
