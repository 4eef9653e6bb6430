// Numbers are written as the shortest text that reads back as the same bits.
#include "lowtide/io/operand_json.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lowtide::io {

namespace {

double read_special(JsonValue object) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const JsonValue value = *object.find("float");
  const std::string_view word = value.as_string();
  if (word == "inf") return kInfinity;
  if (word == "-inf") return -kInfinity;
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  value.refuse("unknown float " + quoted(word) + "; must be inf, -inf or nan");
}

double read_number(JsonValue value) {
  const std::string_view text = value.number_text();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    value.refuse("does not fit into a double");
  return number;
}

Literal read_literal(JsonValue value) {
  switch (value.kind()) {
    case JsonKind::null: return {};
    case JsonKind::boolean: return {value.as_boolean()};
    case JsonKind::integer: return {value.as_integer()};
    case JsonKind::number: return {read_number(value)};
    case JsonKind::string: return {std::string(value.as_string())};
    case JsonKind::array: {
      Literal::List list;
      list.reserve(value.size());
      for (const JsonValue item : value.items()) list.push_back(read_literal(item));
      return {std::move(list)};
    }
    case JsonKind::object: {
      if (value.size() == 1 && value.find("float")) return {read_special(value)};
      Literal::Members members;
      for (const auto& [key, item] : value.members())
        members.push_back({std::string(key), read_literal(item)});
      return {std::move(members)};
    }
  }
  return {};
}

struct LiteralWriter {
  std::string& out;

  void operator()(std::monostate) const { out += "null"; }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(std::int64_t value) const { out += std::to_string(value); }
  void operator()(double value) const {
    if (!std::isfinite(value)) {
      out += std::isnan(value) ? R"({"float": "nan"})"
             : value > 0       ? R"({"float": "inf"})"
                               : R"({"float": "-inf"})";
      return;
    }
    const std::string text = fmt::format("{}", value);
    out += text;
    if (text.find_first_of(".e") == std::string::npos) out += ".0";
  }
  void operator()(const std::string& value) const { append_json_string(out, value); }
  void operator()(const Literal::List& list) const {
    out += '[';
    for (const Literal& item : list) {
      if (&item != list.data()) out += ", ";
      std::visit(*this, item.value);
    }
    out += ']';
  }
  void operator()(const Literal::Members& members) const {
    out += '{';
    for (const auto& member : members) {
      if (&member != members.data()) out += ", ";
      append_json_string(out, member.name);
      out += ": ";
      std::visit(*this, member.value.value);
    }
    out += '}';
  }
};

std::vector<std::int64_t> read_extents(JsonValue list) {
  std::vector<std::int64_t> extents;
  extents.reserve(list.size());
  for (const JsonValue item : list.items()) extents.push_back(item.as_count());
  return extents;
}

Operand read_operand(JsonValue object, std::vector<std::int64_t>* tensors, UnknownKeys& unknown) {
  Operand operand;
  bool has_tensor = false, has_shape = false, has_strides = false;
  for (const auto& [key, value] : object.members()) {
    if (key == "argument") {
      operand.argument = value.as_string();
    } else if (key == "index") {
      operand.index = value.as_count();
    } else if (key == "tensor" && tensors) {
      tensors->push_back(value.as_integer());
      has_tensor = true;
    } else if (key == "shape") {
      operand.shape = read_extents(value);
      has_shape = true;
    } else if (key == "strides") {
      operand.strides = read_extents(value);
      has_strides = true;
    } else if (key == "offset") {
      operand.offset = value.as_count();
    } else if (key == "dtype") {
      operand.dtype = value.as_string();
    } else {
      unknown.add("operands", key);
    }
  }
  if (!has_tensor && tensors) object.refuse("has no \"tensor\"");
  if (!has_shape) object.refuse("has no \"shape\"");
  if (!has_strides) object.refuse("has no \"strides\"");
  return operand;
}

}  // namespace

std::vector<Operand> read_operands(JsonValue list, std::vector<std::int64_t>* tensors,
                                   UnknownKeys& unknown) {
  std::vector<Operand> operands;
  operands.reserve(list.size());
  for (const JsonValue item : list.items())
    operands.push_back(read_operand(item, tensors, unknown));
  return operands;
}

void append_operands(std::string& out, const std::vector<Operand>& operands, bool with_tensors) {
  out += '[';
  for (const Operand& operand : operands) {
    if (&operand != operands.data()) out += ", ";
    out += '{';
    if (!operand.argument.empty()) out += "\"argument\": " + json_string(operand.argument) + ", ";
    if (operand.index >= 0) out += fmt::format("\"index\": {}, ", operand.index);
    if (with_tensors) out += fmt::format("\"tensor\": {}, ", operand.tensor.index());
    out += fmt::format("\"shape\": {}, \"strides\": {}", operand.shape, operand.strides);
    if (with_tensors && operand.offset != 0) out += fmt::format(", \"offset\": {}", operand.offset);
    if (!operand.dtype.empty()) out += ", \"dtype\": " + json_string(operand.dtype);
    out += '}';
  }
  out += ']';
}

std::vector<Argument> read_arguments(JsonValue object) {
  std::vector<Argument> arguments;
  if (!object.is(JsonKind::object)) object.refuse_kind("an object");
  arguments.reserve(object.size());
  for (const auto& [key, value] : object.members())
    arguments.push_back({std::string(key), read_literal(value)});
  return arguments;
}

void append_arguments(std::string& out, const std::vector<Argument>& arguments) {
  out += '{';
  for (const Argument& argument : arguments) {
    if (&argument != arguments.data()) out += ", ";
    append_json_string(out, argument.name);
    out += ": ";
    std::visit(LiteralWriter{out}, argument.value.value);
  }
  out += '}';
}

}  // namespace lowtide::io
