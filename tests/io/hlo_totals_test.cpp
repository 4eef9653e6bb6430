// Modules that JAX compiled for a CPU beside XLA's own totals; bench/hlo.py wrote both.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/io/graph_json.h"
#include "lowtide/io/json.h"
#include "lowtide/io/text_file.h"
#include "lowtide/layout/xla_total.h"
#include "lowtide/plan/plan.h"
#include "lowtide/sim/simulate.h"

namespace lowtide {
namespace {

const std::string kFolder = std::string(LOWTIDE_SOURCE_DIR) + "/tests/io/hlo/";

TEST_CASE("hlo: given orders take what XLA says") {
  const io::JsonDocument totals(io::read_text_file(kFolder + "totals.json"));
  std::size_t count = 0, close = 0;
  for (const auto& [name, value] : totals.root().members()) {
    const std::string module(name);
    CAPTURE(module);
    const io::GraphFile file = io::read_graph(kFolder + module + ".hlo.txt.gz");
    // how often the loop runs is an argument there
    CHECK(file.warnings.size() == (module == "loop" ? 1 : 0));
    const Plan plan = plan_from_sequence(file.graph, file.graph.order());
    const Timeline timeline = simulate(file.graph, plan);
    REQUIRE_FALSE(timeline.violation);
    const double total = static_cast<double>(value.as_count());
    const double peak = static_cast<double>(timeline.cost.peak.count());
    const double predicted = static_cast<double>(layout::xla_total(file.graph, plan).count());
    // What is live is the least that any assignment of buffers takes.
    CHECK(peak < 1.001 * total);
    CHECK(predicted >= peak);
    CHECK(std::abs(predicted / total - 1) < 0.15);
    ++count;
    if (std::abs(predicted / total - 1) <= 0.05) ++close;
  }
  CHECK(count > 20);
  // XLA's heap leaves gaps in one of them.
  CHECK(close + 1 >= count);
}

// Dumps of others; the folder is that of LOWTIDE_DATA.
TEST_CASE("hlo: public dumps are read") {
  const char* data = std::getenv("LOWTIDE_DATA");
  const std::filesystem::path folder = std::filesystem::path(data == nullptr ? "" : data) / "hlo";
  if (data == nullptr || !std::filesystem::is_directory(folder)) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    CAPTURE(entry.path().string());
    const io::GraphFile file = io::read_graph(entry.path().string());
    CHECK(file.graph.op_count() > 20);
    CHECK_FALSE(simulate(file.graph, own_plan(file.graph)).violation);
  }
}

}  // namespace
}  // namespace lowtide
