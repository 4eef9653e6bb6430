// Writing plans: one key a line, steps several to a line.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "lowtide/graph/hash.h"
#include "lowtide/io/json.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/io/transform_json.h"

namespace lowtide::io {

namespace {

// The members of one object, joined by `separator` as they come.
class Members {
 public:
  explicit Members(std::string separator) : separator_(std::move(separator)) {}

  void add(std::string_view key, std::string_view json) {
    text_ += fmt::format("{}\"{}\": {}", text_.empty() ? "" : separator_, key, json);
  }
  void add_text(std::string_view key, std::string_view text) {
    if (!text.empty()) add(key, json_string(text));
  }
  const std::string& text() const { return text_; }

 private:
  std::string separator_, text_;
};

std::string link_json(const Link& link) {
  return fmt::format("{{\"latency\": {}, \"bytes\": {}, \"ticks\": {}}}", link.latency.count(),
                     link.bytes.count(), link.ticks.count());
}

std::string machine_json(const Machine& machine) {
  return "{\n    \"device_to_host\": " + link_json(machine.device_to_host) +
         ",\n    \"host_to_device\": " + link_json(machine.host_to_device) + "\n  }";
}

std::string steps_json(const Plan& plan) {
  constexpr std::size_t kLineSteps = 6;
  if (plan.steps.empty()) return "[]";
  std::string out = "[";
  std::size_t i = 0;
  for (const Step& step : plan.steps) {
    fmt::format_to(std::back_inserter(out), "{}{}[\"{}\", {}", i == 0 ? "" : ",",
                   i % kLineSteps == 0 ? "\n    " : " ", to_string(step.kind), step.index);
    for (const TensorId gone : plan.overwritten(step))
      fmt::format_to(std::back_inserter(out), ", {}", gone.index());
    out += ']';
    ++i;
  }
  return out + "\n  ]";
}

std::string offsets_json(const std::vector<PlannedOffset>& offsets) {
  constexpr std::size_t kLineOffsets = 6;
  std::string out = "[";
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const PlannedOffset& one = offsets[i];
    const bool at_start = one.step == PlannedOffset::kStart;
    fmt::format_to(
        std::back_inserter(out), "{}{}[{}, {}, {}]", i == 0 ? "" : ",",
        i % kLineOffsets == 0 ? "\n    " : " ", at_start ? "null" : std::to_string(one.step),
        one.tensor.valid() ? std::to_string(one.tensor.index()) : "null", one.offset.count());
  }
  return out + "\n  ]";
}

// People's seconds: JSON has no infinity and nobody needs a negative time.
double tame(double seconds) { return std::isfinite(seconds) ? std::max(0.0, seconds) : 0.0; }

std::string claims_json(const Claims& claims) {
  Members members(", ");
  if (claims.status) members.add_text("status", to_string(*claims.status));
  if (claims.duration) members.add("duration", std::to_string(claims.duration->count()));
  if (claims.peak) members.add("peak", std::to_string(claims.peak->count()));
  if (claims.bound) members.add("bound", std::to_string(claims.bound->count()));
  if (claims.bound_scope) members.add_text("bound_scope", to_string(*claims.bound_scope));
  if (claims.duration_full_link)
    members.add("duration_full_link", std::to_string(claims.duration_full_link->count()));
  if (claims.arena) members.add("arena", std::to_string(claims.arena->count()));
  if (claims.reserved) members.add("reserved", std::to_string(claims.reserved->count()));
  return "{" + members.text() + "}";
}

std::string found_by_json(const FoundBy& found) {
  Members members(",\n    ");
  members.add_text("solver", found.solver);
  if (found.seed) members.add("seed", std::to_string(*found.seed));
  if (found.time_limit) members.add("time_limit", fmt::format("{}", tame(*found.time_limit)));
  if (found.work_limit) members.add("work_limit", std::to_string(*found.work_limit));
  members.add_text("stopped_by", found.stopped_by);
  members.add_text("version", found.version);
  members.add_text("note", found.note);
  if (found.model) {
    Members model(", ");
    model.add_text("name", found.model->name);
    model.add_text("status", to_string(status_of(*found.model)));
    if (!found.model->infeasible) model.add("bound", std::to_string(found.model->bound.count()));
    members.add("model", "{" + model.text() + "}");
  }
  // What repeats exactly gives the same file.
  const bool timed = found.time_limit || !found.work_limit;
  std::string history;
  for (const Incumbent& entry : found.history)
    history += fmt::format("{}\n      {{{}\"work\": {}, \"duration\": {}, \"peak\": {}}}",
                           history.empty() ? "" : ",",
                           timed ? fmt::format("\"seconds\": {:.3f}, ", tame(entry.seconds)) : "",
                           entry.work, entry.cost.duration.count(), entry.cost.peak.count());
  std::string parts;
  for (const PortfolioPart& part : found.parts) {
    Members entry(", ");
    entry.add("name", json_string(part.name));
    if (timed) entry.add("seconds", fmt::format("{:.3f}", tame(part.seconds)));
    entry.add("work", std::to_string(part.work));
    entry.add("plans", std::to_string(part.plans));
    entry.add("won", std::to_string(part.won.count()));
    entry.add("bound", std::to_string(part.bound.count()));
    parts += fmt::format("{}\n      {{{}}}", parts.empty() ? "" : ",", entry.text());
  }
  if (!parts.empty()) members.add("parts", "[" + parts + "\n    ]");
  if (!history.empty()) members.add("history", "[" + history + "\n    ]");
  return members.text().empty() ? "{}" : "{\n    " + members.text() + "\n  }";
}

}  // namespace

std::string write_plan(const PlanFile& file) {
  Members members(",\n  ");
  members.add_text("format", "lowtide-plan");
  members.add("version", "1");
  members.add("graph_hash", json_string(file.graph_hash));
  members.add_text("transform_hash", file.transform_hash);
  members.add_text("graph_name", file.graph_name);
  if (file.budget) members.add("budget", std::to_string(file.budget->count()));
  members.add_text("order", to_string(file.order));
  if (file.plan.machine) members.add("machine", machine_json(*file.plan.machine));
  if (file.full_link) members.add("full_link", machine_json(*file.full_link));
  if (file.techniques) {
    std::string names;
    for (const std::string_view name : names_of(*file.techniques))
      names += (names.empty() ? "" : ", ") + json_string(name);
    members.add("techniques", "[" + names + "]");
  }
  if (file.host_budget) members.add("host_budget", std::to_string(file.host_budget->count()));
  if (file.footprint != Footprint::live) members.add_text("footprint", to_string(file.footprint));
  members.add_text("allocator", file.allocator);
  if (file.alignment) members.add("alignment", std::to_string(file.alignment->count()));
  members.add("transforms", transforms_json(file.plan.transforms));
  members.add("steps", steps_json(file.plan));
  if (!file.offsets.empty()) members.add("offsets", offsets_json(file.offsets));
  members.add("claims", claims_json(file.claims));
  if (file.found_by) members.add("found_by", found_by_json(*file.found_by));
  return "{\n  " + members.text() + "\n}\n";
}

std::string write_transforms(const std::vector<Transform>& transforms) {
  return transforms_json(transforms) + "\n";
}

std::string write_transforms(const std::vector<Transform>& transforms, const Graph& graph) {
  Members members(",\n  ");
  members.add("graph_hash", json_string(graph_hash(graph)));
  members.add("transform_hash", json_string(transform_hash(graph)));
  members.add("transforms", transforms_json(transforms));
  return "{\n  " + members.text() + "\n}\n";
}

}  // namespace lowtide::io
