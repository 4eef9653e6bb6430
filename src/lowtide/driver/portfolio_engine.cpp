// An engine's turn to prove the plan.
#include "lowtide/driver/portfolio.h"

namespace lowtide::driver {

namespace {

constexpr double kEngineShare = 0.6;  // of the time left
constexpr double kLookShare = 0.2;    // of the time left, to find it

}  // namespace

// An engine that is slow to be found must not cost the others their time.
bool Portfolio::engine_found_in_time(const solve::Solver& part) const {
  const double most = context_.limits().seconds() + seconds_left() * kLookShare;
  const auto stop = [&] { return too_late() || context_.limits().seconds() > most; };
  return part.missing(stop).empty();
}

void Portfolio::prove_by_engine() {
  const solve::Solver* part = first(solve::Trait::proving, true);
  if (part == nullptr || !context_.has_plan() || !engine_found_in_time(*part)) return;
  run_alone({.part = part,
             .work = kMostWork,
             .seed = context_.seed(),
             .endless = true,
             .share = kEngineShare,
             .threads = threads_,
             .options = {{"mode", "frontier"}}});
}

}  // namespace lowtide::driver
