#include "lowtide/cli/search_line.h"

#include <string>

#include <fmt/format.h>

#include "lowtide/report/units_text.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::cli {

namespace {

constexpr const char* kNoPlanYet = "no plan within the budget yet";

std::string progress_text(Ticks base, const solve::Progress& progress) {
  const Ticks bound = progress.bound.duration;
  const std::string bound_text = fmt::format("bound {:.2f} %", overhead_percent(bound, base));
  if (progress.plan == nullptr) return fmt::format("{}   {}", kNoPlanYet, bound_text);
  const Cost& cost = progress.cost;
  return fmt::format("overhead {:.2f} %   {}   gap {:.2f} %   peak {}",
                     overhead_percent(cost.duration, base), bound_text,
                     gap_percent(cost.duration, bound), report::bytes_text(cost.peak));
}

}  // namespace

SearchLine::SearchLine(const Graph& graph, bool show)
    : base_(own_duration(graph)), show_(show), line_(kNoPlanYet, show) {}

void SearchLine::update(const solve::Progress& progress) {
  if (show_) line_.update(progress_text(base_, progress));
}

}  // namespace lowtide::cli
