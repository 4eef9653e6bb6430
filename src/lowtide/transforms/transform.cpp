// Descriptions of transforms, and the checks that need no graph.
#include "lowtide/transforms/transform.h"

#include <unordered_set>

#include "lowtide/base/error.h"

namespace lowtide {

namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;  // clang 16 finds none for aggregates

std::string counted(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

[[noreturn]] void refuse(std::string place, std::string reason) {
  throw InputError(std::move(place), std::move(reason));
}

std::string at(std::string_view list, std::size_t index) {
  return "/" + std::string(list) + "/" + std::to_string(index);
}

template <class AnyId>
std::string named(AnyId id) {
  return (std::is_same_v<AnyId, OpId> ? "op " : "tensor ") + std::to_string(id.index());
}

// The ops or tensors of the list of prices; refuses duplicates and negative prices.
template <class AnyId>
std::unordered_set<AnyId> priced(const std::vector<Price<AnyId>>& prices, const std::string& list) {
  std::unordered_set<AnyId> seen;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const Price<AnyId>& price = prices[i];
    if (price.time < Ticks(0) || price.workspace < Bytes(0))
      refuse(at(list, i), "the price of " + named(price.of) + " is negative");
    if (!seen.insert(price.of).second)
      refuse(at(list, i), named(price.of) + " has two prices in one list");
  }
  return seen;
}

std::unordered_set<OpId> each_once(const std::vector<OpId>& ops) {
  std::unordered_set<OpId> seen;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (!seen.insert(ops[i]).second) refuse(at("ops", i), named(ops[i]) + " is listed twice");
  if (ops.empty()) refuse("/ops", "names no op");
  return seen;
}

// `before`: ops with a price for the work before the parts. They may have no work in the parts, and
// no price here.
void check_prices(const std::vector<OpPrice>& prices, const std::string& list,
                  const std::vector<OpId>& ops, const std::unordered_set<OpId>& among,
                  const std::unordered_set<OpId>& before) {
  const std::unordered_set<OpId> seen = priced(prices, list);
  for (std::size_t i = 0; i < prices.size(); ++i)
    if (!among.contains(prices[i].of))
      refuse(at(list, i), named(prices[i].of) + " is not among \"ops\"");
  for (const OpId op : ops)
    if (!seen.contains(op) && !before.contains(op))
      refuse("/" + list, "the price of " + named(op) + " is missing");
}

void check_one(const Split& split) {
  const std::unordered_set<OpId> among = each_once(split.ops);
  if (split.parts < 2) refuse("/parts", "must be at least 2");
  if (split.axes.empty()) refuse("/axes", "names no axis");
  const std::size_t lists = split.prices.size();
  if (lists != 1 && lists != static_cast<std::size_t>(split.parts))
    refuse("/prices", "has " + counted(lists, "list") + " of prices; must be one for all parts, " +
                          "or one for each of the " + std::to_string(split.parts));
  const std::unordered_set<OpId> before = priced(split.before, "before");
  for (std::size_t k = 0; k < lists; ++k)
    check_prices(split.prices[k], lists == 1 ? "prices" : "prices/" + std::to_string(k), split.ops,
                 among, before);
  for (std::size_t i = 0; i < split.before.size(); ++i)
    if (!among.contains(split.before[i].of))
      refuse(at("before", i), named(split.before[i].of) + " is not among \"ops\"");
  priced(split.joins, "joins");
}

void check_one(const Hoist& hoist) { priced(hoist.joins, "joins"); }

void check_one(const Substitute& substitute) {
  each_once(substitute.ops);
  priced(substitute.prices, "prices");
}

}  // namespace

std::string_view kind_of(const Transform& transform) {
  return std::visit(Overloaded{[](const Split&) { return std::string_view("split"); },
                               [](const Hoist&) { return std::string_view("hoist"); },
                               [](const Substitute&) { return std::string_view("substitute"); }},
                    transform);
}

bool is_exact(const Transform& transform) {
  return std::visit([](const auto& any) { return any.exact; }, transform);
}

void check_complete(const Transform& transform) {
  std::visit([](const auto& any) { check_one(any); }, transform);
}

std::string describe(const Transform& transform) {
  return std::visit(
      Overloaded{[](const Split& split) {
                   return "split of " + counted(split.ops.size(), "op") + " into " +
                          std::to_string(split.parts) + " parts";
                 },
                 [](const Hoist&) { return std::string("hoist of the backward into the forward"); },
                 [](const Substitute& substitute) {
                   return "substitute of " + counted(substitute.ops.size(), "op") + " by rule \"" +
                          substitute.rule + "\"";
                 }},
      transform);
}

}  // namespace lowtide
