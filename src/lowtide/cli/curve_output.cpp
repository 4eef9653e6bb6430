#include "lowtide/cli/curve_output.h"

#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/io/curve_data.h"
#include "lowtide/io/text_file.h"
#include "lowtide/report/curve_html.h"

namespace lowtide::cli {

namespace {

std::string plan_path(const std::string& folder, Bytes budget) {
  return (std::filesystem::path(folder) / fmt::format("{}.plan.json", budget.count())).string();
}

}  // namespace

CurveOutput::CurveOutput(const Graph& graph, const driver::CurveRequest& request, CurvePaths paths)
    : graph_(graph), footprint_(request.footprint), paths_(std::move(paths)) {
  found_by_.solver = request.settings.solver;
  found_by_.options = request.settings.options;
  found_by_.limits = request.settings.limits;
  found_by_.seed = request.settings.seed;
  require_writable(paths_.csv);
  require_writable(paths_.html);
  if (paths_.folder.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(paths_.folder, failed);
  if (failed || !std::filesystem::is_directory(paths_.folder))
    throw InputError("-o " + paths_.folder, "must be a folder, or one that can be made");
  require_writable(plan_path(paths_.folder, Bytes(0)));
}

bool CurveOutput::has_files() const {
  return io::may_be_replaced(paths_.csv) || io::may_be_replaced(paths_.html) ||
         !paths_.folder.empty();
}

void CurveOutput::write_so_far(Tradeoff curve) {
  if (io::may_be_replaced(paths_.csv))
    io::write_text_file(paths_.csv, io::curve_csv(graph_, curve));
  if (io::may_be_replaced(paths_.html))
    io::write_text_file(paths_.html, report::html_curve(graph_, curve));
  if (paths_.folder.empty()) return;
  for (TradeoffPoint& point : curve.points) point.outcome.note = kWrittenMeanwhile;
  if (curve.smallest) curve.smallest->outcome.note = kWrittenMeanwhile;
  write_plans(curve, false);
}

std::vector<std::string> CurveOutput::write(const Tradeoff& curve) {
  if (!paths_.csv.empty()) io::write_text_file(paths_.csv, io::curve_csv(graph_, curve));
  if (!paths_.html.empty()) io::write_text_file(paths_.html, report::html_curve(graph_, curve));
  if (!paths_.folder.empty()) write_plans(curve, true);
  std::vector<std::string> written;
  for (const std::string* path : {&paths_.csv, &paths_.html, &paths_.folder})
    if (!path->empty()) written.push_back(*path);
  return written;
}

void CurveOutput::write_plans(const Tradeoff& curve, bool all) {
  std::set<Bytes> there;
  const auto write = [&](const TradeoffPoint& point) {
    if (!point.outcome.plan || !there.insert(point.budget).second) return;
    const auto known = plans_.find(point.budget);
    if (!all && known != plans_.end() && known->second == point.outcome.cost) return;
    write_outcome(plan_path(paths_.folder, point.budget),
                  question_on(graph_, point.budget, curve.terms), curve.terms.full_link,
                  point.outcome, found_by_, footprint_, point.taken);
    plans_[point.budget] = point.outcome.cost;
  };
  for (const TradeoffPoint& point : curve.points) write(point);
  if (curve.smallest) write(*curve.smallest);
  // Removes plans of budgets that left the curve, such as earlier smallest budgets.
  std::erase_if(plans_, [&](const auto& plan) {
    if (there.contains(plan.first)) return false;
    std::error_code failed;
    std::filesystem::remove(plan_path(paths_.folder, plan.first), failed);
    return true;
  });
}

}  // namespace lowtide::cli
