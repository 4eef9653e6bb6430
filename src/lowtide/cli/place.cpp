// `lowtide place`: offsets for the tensors of a plan, or for buffers from a file.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lowtide/base/error.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/interrupt.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/cli/search_flags.h"
#include "lowtide/io/buffers_csv.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/io/text_file.h"
#include "lowtide/layout/baselines.h"
#include "lowtide/layout/check_placement.h"
#include "lowtide/layout/lifetimes.h"
#include "lowtide/layout/place_plan.h"
#include "lowtide/plan/budget.h"
#include "lowtide/report/units_text.h"
#include "lowtide/sim/check_plan.h"

namespace lowtide::cli {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t kPlanAlignment = 512;  // what CUDA's allocators give
constexpr double kSeconds = 2;

struct PlaceArguments {
  GraphArgument input;
  std::string plan, output, capacity;
  std::optional<std::int64_t> alignment, work;
  std::optional<double> time;
  std::uint64_t seed = 0;
  bool csv = false, baselines = false, json = false;

  layout::PlaceSettings settings(std::int64_t usual_alignment) const {
    layout::PlaceSettings settings;
    settings.alignment = Bytes(alignment.value_or(usual_alignment));
    if (!capacity.empty()) settings.capacity = parse_size(capacity, "capacity");
    settings.seed = seed;
    return settings;
  }
  LimitSettings limits(const CancelToken& cancel) const {
    LimitSettings limits{.seconds = time, .work = work, .cancel = &cancel};
    if (!time && !work) limits.seconds = kSeconds;
    return limits;
  }
};

// What was found, in the bytes of the whole arena.
struct Placed {
  std::vector<layout::Buffer> buffers;
  Bytes resident;
  Bytes arena, load, bound;
  Status status = Status::unknown;
  StopReason stopped_by = StopReason::finished;
  double seconds = 0;
  std::int64_t work = 0;
};

std::vector<std::pair<std::string, Bytes>> baselines_of(const Placed& placed, Bytes alignment) {
  std::vector<std::pair<std::string, Bytes>> heights;
  heights.reserve(std::size(layout::kBaselines));
  for (const layout::Baseline baseline : layout::kBaselines)
    heights.emplace_back(
        layout::to_string(baseline),
        layout::baseline_height(baseline, placed.buffers, alignment) + placed.resident);
  return heights;
}

std::string above_load(Bytes height, Bytes load) {
  if (height <= load) return "the load";
  return fmt::format(
      "{:.3f} % above the load",
      100 * (static_cast<double>(height.count()) / static_cast<double>(load.count()) - 1));
}

void print(const PlaceArguments& given, const layout::PlaceSettings& settings,
           const Placed& placed) {
  const auto heights = given.baselines ? baselines_of(placed, settings.alignment)
                                       : std::vector<std::pair<std::string, Bytes>>();
  if (given.json) {
    Json json = {{"status", to_string(placed.status)},
                 {"arena", placed.arena.count()},
                 {"load", placed.load.count()},
                 {"bound", placed.bound.count()},
                 {"buffers", placed.buffers.size()},
                 {"alignment", settings.alignment.count()},
                 {"capacity", settings.capacity ? Json(settings.capacity->count()) : Json()},
                 {"seconds", placed.seconds},
                 {"work", placed.work},
                 {"stopped_by", to_string(placed.stopped_by)}};
    for (const auto& [name, height] : heights) json["baselines"][name] = height.count();
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("buffers    {}\n", placed.buffers.size());
  fmt::print("load       {}\n", report::exact_bytes_text(placed.load));
  if (placed.bound > placed.load)
    fmt::print("bound      {}\n", report::exact_bytes_text(placed.bound));
  fmt::print("arena      {}: {}\n", report::exact_bytes_text(placed.arena),
             above_load(placed.arena, placed.load));
  if (settings.capacity)
    fmt::print("capacity   {}\n", report::exact_bytes_text(*settings.capacity));
  fmt::print("status     {}\n", to_string(placed.status));
  for (const auto& [name, height] : heights)
    fmt::print("{:<14} {}: {}\n", name, report::exact_bytes_text(height),
               above_load(height, placed.load));
  if (!given.output.empty()) fmt::print("written    {}\n", given.output);
}

bool is_csv(const std::string& path) { return path.ends_with(".csv") || path.ends_with(".csv.gz"); }
bool has_failed(const Placed& placed) {
  return placed.status == Status::infeasible || placed.status == Status::unknown;
}

int finish(const PlaceArguments& given, const layout::PlaceSettings& settings, const Placed& placed,
           const std::string& text) {
  if (!given.output.empty()) io::write_text_file(given.output, text);
  if (given.output != "-") print(given, settings, placed);
  if (!has_failed(placed)) return kPlanFound;
  fmt::print(stderr, "lowtide: {}\n",
             placed.status == Status::infeasible
                 ? fmt::format("the buffers do not fit into {} bytes: they need {} at least",
                               settings.capacity->count(), placed.bound.count())
                 : fmt::format("no placement within {} bytes was found; the lowest takes {}",
                               settings.capacity->count(), placed.arena.count()));
  return kNoPlan;
}

int place_buffers(const PlaceArguments& given, const Interrupt& interrupt) {
  const io::BuffersFile file = io::read_buffers(given.input.path);
  const layout::PlaceSettings settings = given.settings(1);
  Limits limits(given.limits(interrupt.token()));
  const auto placement = [&] {
    try {
      return layout::place(file.buffers, settings, limits);
    } catch (const InputError& error) {
      throw error.in_file(given.input.path);
    }
  };
  const layout::Placement found = placement();
  const Placed placed{.buffers = file.buffers,
                      .resident = Bytes(0),
                      .arena = found.height,
                      .load = found.load,
                      .bound = found.bound,
                      .status = found.status,
                      .stopped_by = found.stopped_by,
                      .seconds = limits.seconds(),
                      .work = limits.work()};
  const auto wrong =
      layout::check_placement(file.buffers, found.offsets, settings.alignment, found.height);
  check(!wrong, wrong.value_or(""));
  return finish(given, settings, placed, io::write_buffers(file, found.offsets));
}

// The ids of a plan's buffers say what they are: "start/t4", "step12/t7", "step12/workspace".
std::string id_of(const PlannedOffset& one) {
  return (one.step == PlannedOffset::kStart ? "start" : fmt::format("step{}", one.step)) +
         (one.tensor.valid() ? fmt::format("/t{}", one.tensor.index()) : "/workspace");
}

int place_tensors(const PlaceArguments& given, const Interrupt& interrupt) {
  const Graph graph = load_graph(given.input);
  PlanFile file = load_plan(given.plan);
  // Their place is what is asked for: what is wrong with other offsets does not matter.
  file.offsets.clear();
  file.claims.arena.reset();
  const bool was_arena = file.footprint == Footprint::arena;
  if (was_arena) file.footprint = Footprint::live;
  const PlanVerdict verdict = check_plan(graph, file);
  if (verdict.kind != PlanVerdict::Kind::holds) {
    fmt::print(stderr, "lowtide: {}: {}\n", given.plan, verdict.reason);
    return kNotVerified;
  }
  if (!verdict.cost) {
    fmt::print(stderr, "lowtide: {}: the file has no plan\n", given.plan);
    return kNoPlan;
  }
  layout::PlaceSettings settings = given.settings(kPlanAlignment);
  if (was_arena && !settings.capacity) settings.capacity = file.budget;
  Limits limits(given.limits(interrupt.token()));
  const layout::PlanPlacement found = layout::place_plan(graph, file.plan, settings, limits);
  const Placed placed{.buffers = layout::placeable(graph, file.plan).buffers,
                      .resident = graph.resident(),
                      .arena = found.arena,
                      .load = found.load,
                      .bound = found.bound,
                      .status = found.status,
                      .stopped_by = found.stopped_by,
                      .seconds = limits.seconds(),
                      .work = limits.work()};
  layout::write_offsets(file, found, settings.alignment);
  const PlanVerdict placed_verdict = check_plan(graph, file);
  check(placed_verdict.kind == PlanVerdict::Kind::holds, placed_verdict.reason);
  if (was_arena) file.footprint = Footprint::arena;
  io::BuffersFile buffers;
  std::vector<Bytes> offsets;
  for (const PlannedOffset& one : found.offsets) {
    buffers.ids.push_back(id_of(one));
    offsets.push_back(one.offset);
  }
  buffers.buffers = placed.buffers;
  return finish(given, settings, placed,
                given.csv ? io::write_buffers(buffers, offsets) : io::write_plan(file));
}

int run(PlaceArguments given) {
  if (given.csv && given.output.empty()) given.output = "-";
  if (given.json && given.output == "-")
    throw InputError("-o -", "with --json, standard output is taken; name a file");
  require_writable(given.output);
  const Interrupt interrupt;
  if (!given.plan.empty()) return place_tensors(given, interrupt);
  if (!is_csv(given.input.path))
    throw InputError("", "a graph needs a plan beside it; buffers are in a file that ends in .csv",
                     given.input.path);
  return place_buffers(given, interrupt);
}

}  // namespace

void add_place(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "place", "Give the tensors of a plan, or buffers from a file, offsets in one arena");
  const auto given = std::make_shared<PlaceArguments>();
  add_graph_argument(*command, given->input, "Graph file, or buffers: minimalloc's .csv");
  command->add_option("plan", given->plan, "Plan file");
  command->add_option("-o,--output", given->output,
                      "Write the plan with its offsets here (.json or .json.gz), or the buffers");
  command->add_flag(
      "--csv", given->csv,
      "Write the plan's buffers in minimalloc's format (default: to standard output)");
  command->add_option("--capacity", given->capacity,
                      "Size of the arena (8GiB, 512MB): the first placement within it is enough");
  command
      ->add_option("--alignment", given->alignment,
                   "Bytes that offsets are multiples of (512; of .csv files 1)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  add_time_flag(*command, given->time, "Time limit in seconds (2; none with --work)");
  add_work_flag(*command, given->work);
  add_seed_flag(*command, given->seed);
  command->add_flag("--baselines", given->baselines, "Compare with what other planners do");
  command->add_flag("--json", given->json, "Print one JSON object and nothing else");
  command->footer(
      "Exit status: 0 placed, 1 not within the capacity, or the file has no plan, 2 bad input, "
      "3 the plan is not verified.");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
