// Figures as text: everything that a table or a picture needs, nothing rounded that is compared.
#include "bench/csv.h"

#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "lowtide/base/error.h"

namespace lowtide::bench {

namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string result = "\"";
  for (char c : text) {
    if (c == '"') result += c;
    result += c == '\n' ? ' ' : c;
  }
  return result + "\"";
}

std::string number(const std::optional<double>& value) {
  if (!value) return "";
  return std::isinf(*value) ? "inf" : fmt::format("{:.6g}", *value);
}

std::string bytes(const std::optional<Bytes>& value) {
  return value ? std::to_string(value->count()) : "";
}

std::ofstream opened(const std::string& path) {
  std::ofstream file(path);
  if (!file) throw InputError("", "cannot be written", path);
  return file;
}

}  // namespace

CsvFiles::CsvFiles(const std::string& folder) {
  std::error_code ignored;  // opening says it better
  std::filesystem::create_directories(folder, ignored);
  rows_ = opened(folder + "/rows.csv");
  history_ = opened(folder + "/history.csv");
  rows_ << "set,graph,ops,links,own_peak,budget,budget_bytes,order,solver,variant,seed,threads,"
           "limit_s,work,link,status,overhead_0.1s,overhead_1s,overhead_10s,overhead,bound,gap,"
           "within,"
           "first_plan_s,time_s,peak,resident,found_by,failure\n";
  history_ << "set,graph,budget,order,solver,variant,seed,seconds,overhead,bound\n";
}

void CsvFiles::add(const Run& run, const Measurement& measured) {
  const Graph& graph = run.problem->graph;
  const std::string order(to_string(run.problem->order));
  const auto at = [&](double seconds) {
    return number(measured.overhead_at(seconds, run.seconds));
  };
  rows_ << fmt::format(
               "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:.4f},"
               "{},{},{},{}\n",
               run.set, quoted(run.graph), graph.op_count(), graph.link_count(),
               run.own_peak.count(), run.budget, run.problem->budget.count(), order, run.solver,
               quoted(run.variant), run.seed, run.threads, number(run.seconds),
               run.work ? std::to_string(*run.work) : "", run.link, measured.status, at(0.1), at(1),
               at(10), number(measured.overhead()), number(measured.bound()), number(measured.gap),
               number(measured.within()), number(measured.first_plan()), measured.seconds,
               bytes(measured.peak), bytes(measured.resident), measured.found_by,
               quoted(measured.failure))
        << std::flush;
  for (std::size_t i = 0; i < measured.points.size(); ++i) {
    const Point& point = measured.points[i];
    // A picture cannot show two points within 2 % of the time.
    if (i + 1 < measured.points.size() && measured.points[i + 1].seconds < 1.02 * point.seconds)
      continue;
    history_ << fmt::format("{},{},{},{},{},{},{},{:.6f},{},{}\n", run.set, quoted(run.graph),
                            run.budget, order, run.solver, quoted(run.variant), run.seed,
                            point.seconds, number(point.overhead), number(point.bound));
  }
  history_ << std::flush;
}

}  // namespace lowtide::bench
