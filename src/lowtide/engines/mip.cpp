// As cp.cpp, in columns.
#include "lowtide/engines/mip.h"

#include <algorithm>
#include <utility>

#include "lowtide/engines/worker_session.h"

namespace lowtide::engines {

MipSession::MipSession(EngineState engine)
    : session_(std::make_unique<WorkerSession>(std::move(engine))) {}

MipSession::~MipSession() = default;

MipAnswer MipSession::solve(const MipModel& model, const EngineLimits& limits,
                            const MipWatch& watch) {
  return solve(model, limits, watch, true);
}

MipAnswer solve_mip(const MipModel& model, const EngineState& engine, const EngineLimits& limits,
                    const MipWatch& watch) {
  return MipSession(engine).solve(model, limits, watch, false);
}

MipAnswer MipSession::solve(const MipModel& model, const EngineLimits& limits,
                            const MipWatch& watch, bool more) {
  MipAnswer answer;
  std::optional<double> bound;
  EngineRequest request = request_for(EngineKind::highs, session_->engine(), limits);
  request.model = model.encode();
  request.more = more;
  answer.end = session_->run(request, limits, [&](const EngineReport& report) -> std::string {
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
