// Steps are most of a plan file, so they are read without looking anything up. What stands under
// `found_by` is for people: what is not as expected there is passed over.
#include "lowtide/io/plan_json.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/io/json.h"
#include "lowtide/io/reader_support.h"
#include "lowtide/io/text_file.h"
#include "lowtide/io/transform_json.h"

namespace lowtide::io {

namespace {

constexpr std::array kStatuses{Status::optimal, Status::feasible, Status::infeasible,
                               Status::unknown};

constexpr std::array kBoundScopes{BoundScope::graph, BoundScope::techniques};

constexpr std::array kOrders{Order::free, Order::given};

bool is_null(JsonValue value) { return value.is(JsonKind::null); }

// "a, b or c", as messages list what there is.
template <class Words>
std::string list_of(const Words& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i)
    list += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + std::string(to_string(words[i]));
  return list;
}

// The one of these that the value says; `what` names them if it says none.
template <class Words>
auto word_among(JsonValue value, std::string_view what, const Words& words) {
  const std::string_view given = value.as_string();
  for (const auto word : words)
    if (given == to_string(word)) return word;
  value.refuse("unknown " + std::string(what) + " " + quoted(given) + "; must be " +
               list_of(words));
}

void read_step(JsonValue value, Plan& plan) {
  constexpr std::string_view kPair = "a step is a pair such as [\"compute\", 0]";
  if (!value.is(JsonKind::array) || value.size() < 2) value.refuse(std::string(kPair));
  const auto items = value.items();
  auto item = items.begin();
  const StepKind kind = word_among(*item, "step", kStepKinds);
  const std::int32_t index = read_index(*++item);
  if (kind != StepKind::compute_in_place) {
    if (value.size() != 2) value.refuse(std::string(kPair));
    plan.steps.push_back({kind, index});
    return;
  }
  std::vector<TensorId> overwritten;
  for (++item; item != items.end(); ++item)
    overwritten.emplace_back(static_cast<std::size_t>(read_index(*item)));
  if (overwritten.empty())
    value.refuse("names no tensor to overwrite, as in [\"compute_in_place\", 0, 3]");
  plan.add_compute(OpId(static_cast<std::size_t>(index)), overwritten);
}

// [step, tensor, offset]: null for a step is the start, for a tensor the step's workspace.
PlannedOffset read_offset(JsonValue value) {
  if (!value.is(JsonKind::array) || value.size() != 3)
    value.refuse("an offset is [step, tensor, offset], as in [12, 4, 1048576]");
  const auto items = value.items();
  auto item = items.begin();
  PlannedOffset offset;
  if (!is_null(*item)) offset.step = read_index(*item);
  ++item;
  if (!is_null(*item))
    offset.tensor = TensorId(static_cast<std::size_t>(read_index(*item)));
  else if (offset.step == PlannedOffset::kStart)
    value.refuse("names neither a step nor a tensor");
  offset.offset = Bytes((*++item).as_count());
  return offset;
}

Bytes read_alignment(JsonValue value) {
  const Bytes alignment(value.as_count());
  if (alignment == Bytes(0)) value.refuse("must be at least 1");
  return alignment;
}

Techniques read_techniques(JsonValue list) {
  Techniques techniques = Techniques::none();
  for (const JsonValue item : list.items())
    if (!add_technique(techniques, item.as_string()))
      item.refuse("unknown technique " + quoted(item.as_string()) +
                  "; must be recompute, in_place, offload, split, hoist or substitute");
  return techniques;
}

Link read_link(JsonValue object, std::string_view where, UnknownKeys& unknown) {
  std::optional<std::int64_t> latency, bytes, ticks;
  for (const auto& [key, value] : object.members()) {
    if (key == "latency") {
      latency = value.as_count();
    } else if (key == "bytes") {
      bytes = value.as_count();
      if (*bytes == 0) value.refuse("must be at least 1");
    } else if (key == "ticks") {
      ticks = value.as_count();
    } else {
      unknown.add(where, key);
    }
  }
  if (!latency || !bytes || !ticks)
    object.refuse("a link has \"latency\", \"bytes\" and \"ticks\"");
  return {Ticks(*latency), Bytes(*bytes), Ticks(*ticks)};
}

Machine read_machine(JsonValue object, std::string_view where, UnknownKeys& unknown) {
  std::optional<Link> out, in;
  for (const auto& [key, value] : object.members()) {
    if (key == "device_to_host") {
      out = read_link(value, where, unknown);
    } else if (key == "host_to_device") {
      in = read_link(value, where, unknown);
    } else {
      unknown.add(where, key);
    }
  }
  if (!out || !in) object.refuse("a machine has \"device_to_host\" and \"host_to_device\"");
  return {*out, *in};
}

Claims read_claims(JsonValue object, UnknownKeys& unknown) {
  Claims claims;
  for (const auto& [key, value] : object.members()) {
    if (key == "status") {
      if (!is_null(value)) claims.status = word_among(value, "status", kStatuses);
    } else if (key == "duration") {
      if (!is_null(value)) claims.duration = Ticks(value.as_count());
    } else if (key == "peak") {
      if (!is_null(value)) claims.peak = Bytes(value.as_count());
    } else if (key == "bound") {
      if (!is_null(value)) claims.bound = Ticks(value.as_count());
    } else if (key == "bound_scope") {
      if (!is_null(value)) claims.bound_scope = word_among(value, "bound_scope", kBoundScopes);
    } else if (key == "duration_full_link") {
      if (!is_null(value)) claims.duration_full_link = Ticks(value.as_count());
    } else if (key == "arena") {
      if (!is_null(value)) claims.arena = Bytes(value.as_count());
    } else if (key == "reserved") {
      if (!is_null(value)) claims.reserved = Bytes(value.as_count());
    } else {
      unknown.add("claims", key);
    }
  }
  return claims;
}

std::string string_or_empty(JsonValue value) {
  return value.is(JsonKind::string) ? std::string(value.as_string()) : std::string();
}

// Any number, or nothing.
template <class Number>
std::optional<Number> number_of(JsonValue value) {
  if (!value.is(JsonKind::integer) && !value.is(JsonKind::number)) return std::nullopt;
  const std::string text = value.text();
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::int64_t integer_or_zero(std::optional<JsonValue> value) {
  return value ? number_of<std::int64_t>(*value).value_or(0) : 0;
}

std::vector<PortfolioPart> read_parts(JsonValue list) {
  std::vector<PortfolioPart> parts;
  for (const JsonValue entry : list.items()) {
    PortfolioPart part;
    if (const auto name = entry.find("name")) part.name = string_or_empty(*name);
    if (const auto seconds = entry.find("seconds"))
      part.seconds = number_of<double>(*seconds).value_or(0);
    part.work = integer_or_zero(entry.find("work"));
    part.plans = integer_or_zero(entry.find("plans"));
    part.won = Ticks(integer_or_zero(entry.find("won")));
    part.bound = Ticks(integer_or_zero(entry.find("bound")));
    parts.push_back(std::move(part));
  }
  return parts;
}

FoundBy read_found_by(JsonValue object) {
  FoundBy found;
  for (const auto& [key, value] : object.members()) {
    if (key == "solver") found.solver = string_or_empty(value);
    if (key == "seed") found.seed = number_of<std::uint64_t>(value);
    if (key == "time_limit") found.time_limit = number_of<double>(value);
    if (key == "work_limit") found.work_limit = number_of<std::int64_t>(value);
    if (key == "stopped_by") found.stopped_by = string_or_empty(value);
    if (key == "version") found.version = string_or_empty(value);
    if (key == "note") found.note = string_or_empty(value);
    if (key == "parts" && value.is(JsonKind::array)) found.parts = read_parts(value);
    if (key != "history" || !value.is(JsonKind::array)) continue;
    for (const JsonValue entry : value.items()) {
      Incumbent incumbent;
      if (const auto seconds = entry.find("seconds"))
        incumbent.seconds = number_of<double>(*seconds).value_or(0);
      incumbent.work = integer_or_zero(entry.find("work"));
      incumbent.cost.duration = Ticks(integer_or_zero(entry.find("duration")));
      incumbent.cost.peak = Bytes(integer_or_zero(entry.find("peak")));
      found.history.push_back(incumbent);
    }
  }
  return found;
}

void read_steps(JsonValue list, Plan& plan) {
  plan.steps.reserve(list.size());
  for (const JsonValue item : list.items()) read_step(item, plan);
}

void refuse_transfers_without_machine(JsonValue root, const Plan& plan) {
  if (plan.machine) return;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].is_transfer())
      throw InputError(root.pointer() + "/machine",
                       "is missing, but step " + std::to_string(i) + " is a transfer (" +
                           std::string(to_string(plan.steps[i].kind)) + ")");
  }
}

PlanFile read_document(const JsonDocument& document) {
  const JsonValue root = document.root();
  check_format(root, "lowtide-plan");
  PlanFile file;
  UnknownKeys unknown;
  bool has_hash = false, has_steps = false;
  for (const auto& [key, value] : root.members()) {
    if (key == "graph_hash") {
      file.graph_hash = value.as_string();
      has_hash = true;
    } else if (key == "graph_name") {
      file.graph_name = value.as_string();
    } else if (key == "budget") {
      if (!is_null(value)) file.budget = Bytes(value.as_count());
    } else if (key == "order") {
      file.order = word_among(value, "order", kOrders);
    } else if (key == "techniques") {
      file.techniques = read_techniques(value);
    } else if (key == "host_budget") {
      if (!is_null(value)) file.host_budget = Bytes(value.as_count());
    } else if (key == "machine") {
      file.plan.machine = read_machine(value, key, unknown);
    } else if (key == "full_link") {
      file.full_link = read_machine(value, key, unknown);
    } else if (key == "footprint") {
      file.footprint = word_among(value, "footprint", kFootprints);
    } else if (key == "allocator") {
      file.allocator = value.as_string();
    } else if (key == "alignment") {
      file.alignment = read_alignment(value);
    } else if (key == "offsets") {
      file.offsets.reserve(value.size());
      for (const JsonValue item : value.items()) file.offsets.push_back(read_offset(item));
    } else if (key == "transforms") {
      file.plan.transforms = read_transforms(value, unknown);
    } else if (key == "transform_hash") {
      file.transform_hash = value.as_string();
    } else if (key == "steps") {
      read_steps(value, file.plan);
      has_steps = true;
    } else if (key == "claims") {
      file.claims = read_claims(value, unknown);
    } else if (key == "found_by") {
      if (!value.is(JsonKind::object)) value.refuse_kind("an object");
      file.found_by = read_found_by(value);
    } else if (key != "format" && key != "version") {
      unknown.add("", key);
    }
  }
  if (!has_hash) root.refuse("has no \"graph_hash\"");
  if (!has_steps) root.refuse("has no \"steps\"");
  if (file.transform_hash.empty() && !file.plan.transforms.empty())
    root.refuse("has no \"transform_hash\", but transforms");
  refuse_transfers_without_machine(root, file.plan);
  if (file.claims.duration_full_link && !file.full_link)
    throw InputError(root.pointer() + "/full_link",
                     "is missing, but \"duration_full_link\" is claimed");
  unknown.warn(file.warnings);
  return file;
}

}  // namespace

PlanFile read_plan(const std::string& path) {
  return read_plan_text(read_text_file(path), name_of_file(path));
}

PlanFile read_plan_text(std::string_view text, const std::string& file_name) {
  try {
    return read_document(JsonDocument(text));
  } catch (const InputError& error) {
    throw error.in_file(file_name);
  }
}

TransformsFile read_transforms(const std::string& path, std::vector<std::string>& warnings) {
  const std::string name = name_of_file(path);
  try {
    return read_transforms(JsonDocument(read_text_file(path)), name, warnings);
  } catch (const InputError& error) {
    throw error.file().empty() ? error.in_file(name) : error;
  }
}

TransformsFile read_transforms(const JsonDocument& document, const std::string& file_name,
                               std::vector<std::string>& warnings) {
  try {
    const JsonValue root = document.root();
    const auto list = root.is(JsonKind::object) ? root.find("transforms") : root;
    if (!list)
      root.refuse("must be a list of transforms, or an object with one under \"transforms\"");
    UnknownKeys unknown;
    TransformsFile file;
    file.transforms = read_transforms(*list, unknown);
    unknown.warn(warnings);
    const auto text = [&](std::string_view key) {
      const auto value = root.is(JsonKind::object) ? root.find(key) : std::nullopt;
      return value && !is_null(*value) ? std::string(value->as_string()) : std::string();
    };
    file.graph_hash = text("graph_hash");
    file.transform_hash = text("transform_hash");
    return file;
  } catch (const InputError& error) {
    throw error.in_file(file_name);
  }
}

}  // namespace lowtide::io
