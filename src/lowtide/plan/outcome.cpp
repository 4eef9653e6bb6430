// Words and percentages.
#include "lowtide/plan/outcome.h"

#include <algorithm>
#include <limits>

#include "lowtide/plan/problem.h"

namespace lowtide {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::optimal: return "optimal";
    case Status::feasible: return "feasible";
    case Status::infeasible: return "infeasible";
    case Status::unknown: return "unknown";
  }
  return "unknown";
}

Status status_of(const ModelClaim& model) {
  if (model.infeasible) return Status::infeasible;
  return model.optimal ? Status::optimal : Status::feasible;
}

void add_parts(std::vector<PortfolioPart>& parts, const std::vector<PortfolioPart>& more) {
  for (const PortfolioPart& part : more) {
    const auto found = std::ranges::find(parts, part.name, &PortfolioPart::name);
    if (found == parts.end()) {
      parts.push_back(part);
      continue;
    }
    found->seconds += part.seconds;
    found->work += part.work;
    found->plans += part.plans;
    found->won += part.won;
    found->bound += part.bound;
    if (found->failure.empty()) found->failure = part.failure;
  }
}

std::string failures_text(const std::vector<PortfolioPart>& parts) {
  std::string text;
  for (const PortfolioPart& part : parts)
    if (!part.failure.empty())
      text += (text.empty() ? "" : "; ") + part.name +
              " failed; its later results are missing: " + part.failure;
  return text;
}

void add_note(Outcome& outcome, const std::string& sentence) {
  if (outcome.note.find(sentence) != std::string::npos) return;
  outcome.note += (outcome.note.empty() ? "" : "; ") + sentence;
}

std::string_view to_string(Order order) { return order == Order::given ? "given" : "free"; }

std::string_view to_string(Objective objective) {
  return objective == Objective::least_time ? "least time" : "least memory";
}

double overhead_percent(Ticks duration, Ticks base) {
  if (base.count() == 0) return 0;
  return 100.0 * static_cast<double>((duration - base).count()) / static_cast<double>(base.count());
}

bool is_bounded(const Outcome& outcome, Ticks base) {
  return outcome.status != Status::infeasible &&
         (outcome.bound.duration > Ticks(0) || base == Ticks(0));
}

double gap_percent(Ticks duration, Ticks bound) {
  if (duration == bound) return 0;
  if (bound.count() == 0) return std::numeric_limits<double>::infinity();
  return overhead_percent(duration, bound);
}

}  // namespace lowtide
