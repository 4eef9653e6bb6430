// Operands as graph files have them, but for the tensors.
#include "lowtide/io/costs_json.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/io/json.h"
#include "lowtide/io/operand_json.h"
#include "lowtide/io/reader_support.h"
#include "lowtide/io/text_file.h"

namespace lowtide::io {

namespace {

CostTable::Entry read_entry(JsonValue object, UnknownKeys& unknown) {
  CostTable::Entry entry;
  std::optional<std::int64_t> time;
  bool has_operands = false;
  if (!object.is(JsonKind::object)) object.refuse_kind("an object");
  for (const auto& [key, value] : object.members()) {
    if (key == "kind") {
      entry.kind = value.as_string();
    } else if (key == "operands") {
      entry.operands = read_operands(value, nullptr, unknown);
      has_operands = true;
    } else if (key == "arguments") {
      entry.arguments = read_arguments(value);
    } else if (key == "time_ns") {
      time = value.as_count();
    } else if (key == "workspace") {
      entry.cost.workspace = Bytes(value.as_count());
    } else {
      unknown.add("costs", key);
    }
  }
  if (entry.kind.empty()) object.refuse("has no \"kind\"");
  if (!has_operands) object.refuse("has no \"operands\"");
  if (!time) object.refuse("has no \"time_ns\"");
  entry.cost.ns = *time;
  return entry;
}

CostFile read_document(const JsonDocument& document) {
  const JsonValue root = document.root();
  check_format(root, "lowtide-costs");
  CostFile costs;
  UnknownKeys unknown;
  bool has_costs = false;
  for (const auto& [key, value] : root.members()) {
    if (key == "device") {
      costs.device = value.as_string();
    } else if (key == "costs") {
      has_costs = true;
      for (const JsonValue item : value.items())
        if (!costs.table.add(read_entry(item, unknown)))
          item.refuse("is a call that is listed before; each call has one cost");
    } else if (key != "format" && key != "version") {
      unknown.add("", key);
    }
  }
  if (!has_costs) root.refuse("has no \"costs\"");
  unknown.warn(costs.warnings);
  return costs;
}

}  // namespace

CostFile read_costs(const std::string& path) {
  return read_costs_text(read_text_file(path), name_of_file(path));
}

CostFile read_costs_text(std::string_view text, const std::string& file_name) {
  try {
    return read_document(JsonDocument(text));
  } catch (const InputError& error) {
    throw error.in_file(file_name);
  }
}

std::string write_costs(const CostFile& costs) {
  std::string out = "{\n  \"format\": \"lowtide-costs\",\n  \"version\": 1,\n  \"device\": " +
                    json_string(costs.device) + ",\n  \"costs\": [";
  const char* before = "\n";
  for (const CostTable::Entry& entry : costs.table.entries()) {
    out += before;
    out += "    {\"kind\": " + json_string(entry.kind) + ", \"operands\": ";
    append_operands(out, entry.operands, false);
    if (!entry.arguments.empty()) {
      out += ", \"arguments\": ";
      append_arguments(out, entry.arguments);
    }
    out += fmt::format(", \"time_ns\": {}, \"workspace\": {}}}", entry.cost.ns,
                       entry.cost.workspace.count());
    before = ",\n";
  }
  return out + "\n  ]\n}\n";
}

}  // namespace lowtide::io
