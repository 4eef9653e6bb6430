// Each call is spelled out as a text that no other call has.
#include "lowtide/device/cost_table.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>
#include <variant>

#include "lowtide/base/error.h"

namespace lowtide {

namespace {

// Every part ends in a mark or begins with its length, so texts are equal only where parts are.
struct Speller {
  std::string text;

  void number(std::int64_t value) { text += std::to_string(value) + ','; }
  void word(std::string_view value) {
    number(static_cast<std::int64_t>(value.size()));
    text += value;
  }
  void numbers(const std::vector<std::int64_t>& list) {
    number(static_cast<std::int64_t>(list.size()));
    for (const std::int64_t value : list) number(value);
  }
  void literal(const Literal& value) {
    number(static_cast<std::int64_t>(value.value.index()));
    std::visit(*this, value.value);
  }

  void operator()(std::monostate) {}
  void operator()(bool value) { number(value ? 1 : 0); }
  void operator()(std::int64_t value) { number(value); }
  void operator()(double value) { number(std::bit_cast<std::int64_t>(value)); }
  void operator()(const std::string& value) { word(value); }
  void operator()(const Literal::List& list) {
    number(static_cast<std::int64_t>(list.size()));
    for (const Literal& item : list) literal(item);
  }
  void operator()(const Literal::Members& members) {
    number(static_cast<std::int64_t>(members.size()));
    for (const auto& [name, item] : members) {
      word(name);
      literal(item);
    }
  }
};

std::string spelled(const Call& call) {
  Speller speller;
  speller.word(call.kind);
  for (const Operand& operand : call.operands) {
    speller.word(operand.argument);
    speller.number(operand.index);
    speller.numbers(operand.shape);
    speller.numbers(operand.strides);
    speller.word(operand.dtype);
  }
  std::vector<const Argument*> arguments;
  for (const Argument& argument : call.arguments) arguments.push_back(&argument);
  std::ranges::sort(arguments, {}, &Argument::name);
  for (const Argument* argument : arguments) {
    speller.text += '=';
    speller.word(argument->name);
    speller.literal(argument->value);
  }
  return std::move(speller.text);
}

}  // namespace

bool CostTable::add(Entry entry) {
  const Call call{entry.kind, entry.operands, {}, entry.arguments};
  if (!index_.emplace(spelled(call), entries_.size()).second) return false;
  entries_.push_back(std::move(entry));
  return true;
}

const CallCost* CostTable::find(const Call& call) const {
  const auto found = index_.find(spelled(call));
  return found == index_.end() ? nullptr : &entries_[found->second].cost;
}

CostTable costs_of(const Graph& graph) {
  const std::int64_t unit = nanoseconds(graph.tick());
  if (unit == 0)
    throw InputError("graph", "its tick is \"" + std::string(to_string(graph.tick())) +
                                  "\", which is no time; costs are in ns");
  CostTable table;
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.op(OpId(i));
    if (op.operands.empty()) continue;
    table.add({op.kind,
               op.operands,
               op.arguments,
               {checked_mul_div(op.time.count(), unit, 1, Rounding::floor), op.workspace}});
  }
  return table;
}

}  // namespace lowtide
