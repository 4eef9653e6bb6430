// As cp.cpp, in columns.
#include "lowtide/engines/mip.h"

#include <algorithm>
#include <utility>

#include "lowtide/engines/worker_session.h"

namespace lowtide::engines {

MipAnswer solve_mip(const MipModel& model, const EngineState& engine, const EngineLimits& limits,
                    const MipWatch& watch) {
  MipAnswer answer;
  std::optional<double> bound;
  EngineRequest request = request_for(EngineKind::highs, engine, limits);
  request.model = model.encode();
  answer.end = run_session(engine, request, limits, [&](const EngineReport& report) -> std::string {
    switch (report.kind) {
      case EngineReport::incumbent:
        if (report.reals.size() != model.column_count())
          return "gave a solution of " + std::to_string(report.reals.size()) + " values for " +
                 std::to_string(model.column_count()) + " columns";
        answer.values = report.reals;
        if (watch.incumbent) watch.incumbent(answer.values);
        break;
      case EngineReport::bound:
        bound = std::max(bound.value_or(report.value), report.value);
        if (watch.bound) watch.bound(report.value);
        break;
      default: break;
    }
    return {};
  });
  conclude(answer.end, EngineKind::highs, !answer.values.empty(), bound);
  return answer;
}

}  // namespace lowtide::engines
