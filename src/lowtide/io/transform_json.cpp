// One function for each kind of transform. Prices are rows of numbers, several to a line.
#include "lowtide/io/transform_json.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "lowtide/base/error.h"

namespace lowtide::io {

namespace {

// Records which members of a transform were read; the others are unknown keys.
class Fields {
 public:
  Fields(JsonValue object, std::string_view kind) : object_(object), kind_(kind) {}

  std::optional<JsonValue> find(std::string_view key) {
    asked_.push_back(key);
    return object_.find(key);
  }
  JsonValue demand(std::string_view key) {
    const auto value = find(key);
    if (!value) object_.refuse("a " + kind_ + " has \"" + std::string(key) + "\"");
    return *value;
  }
  void warn(UnknownKeys& unknown) const {
    for (const auto& [key, value] : object_.members())
      if (key != "kind" && std::ranges::find(asked_, key) == asked_.end())
        unknown.add("transforms", key);
  }

 private:
  JsonValue object_;
  std::string kind_;
  std::vector<std::string_view> asked_;
};

template <class AnyId>
AnyId read_id(JsonValue value) {
  return AnyId(static_cast<std::size_t>(read_index(value)));
}

std::vector<OpId> read_ops(JsonValue list) {
  std::vector<OpId> ops;
  ops.reserve(list.size());
  for (const JsonValue item : list.items()) ops.push_back(read_id<OpId>(item));
  return ops;
}

template <class AnyId>
std::vector<Price<AnyId>> read_prices(JsonValue list) {
  const std::string_view what = std::is_same_v<AnyId, OpId> ? "op" : "tensor";
  std::vector<Price<AnyId>> prices;
  prices.reserve(list.size());
  for (const JsonValue row : list.items()) {
    if (!row.is(JsonKind::array) || row.size() != 3)
      row.refuse("a price is [" + std::string(what) + ", time, workspace]");
    auto item = row.items().begin();
    const AnyId of = read_id<AnyId>(*item);
    const Ticks time((*++item).as_count());
    prices.push_back({of, time, Bytes((*++item).as_count())});
  }
  return prices;
}

// Prices are by part if the first entry is a list of rows, not a row.
std::vector<std::vector<OpPrice>> read_part_prices(JsonValue list) {
  const auto items = list.items();
  const bool apart = list.size() > 0 && (*items.begin()).is(JsonKind::array) &&
                     (*items.begin()).size() > 0 &&
                     (*(*items.begin()).items().begin()).is(JsonKind::array);
  if (!apart) return {read_prices<OpId>(list)};
  std::vector<std::vector<OpPrice>> parts;
  for (const JsonValue part : items) parts.push_back(read_prices<OpId>(part));
  return parts;
}

std::vector<SplitAxis> read_axes(JsonValue list) {
  std::vector<SplitAxis> axes;
  for (const JsonValue item : list.items()) {
    const auto tensor = item.find("tensor"), dim = item.find("dim");
    if (!tensor || !dim) item.refuse("an axis is {\"tensor\": index, \"dim\": index}");
    axes.push_back({read_id<TensorId>(*tensor), dim->as_count()});
  }
  return axes;
}

bool read_exact(Fields& fields) {
  const auto exact = fields.find("exact");
  return exact && exact->as_boolean();
}

Split read_split(Fields& fields) {
  Split split;
  split.ops = read_ops(fields.demand("ops"));
  split.parts = fields.demand("parts").as_count();
  split.axes = read_axes(fields.demand("axes"));
  split.exact = read_exact(fields);
  split.prices = read_part_prices(fields.demand("prices"));
  if (const auto before = fields.find("before")) split.before = read_prices<OpId>(*before);
  if (const auto joins = fields.find("joins")) split.joins = read_prices<TensorId>(*joins);
  return split;
}

Hoist read_hoist(Fields& fields) {
  Hoist hoist;
  hoist.tangent = read_id<TensorId>(fields.demand("tangent"));
  hoist.exact = read_exact(fields);
  if (const auto joins = fields.find("joins")) hoist.joins = read_prices<TensorId>(*joins);
  return hoist;
}

Substitute read_substitute(Fields& fields) {
  Substitute substitute;
  substitute.rule = fields.demand("rule").as_string();
  substitute.ops = read_ops(fields.demand("ops"));
  substitute.exact = read_exact(fields);
  substitute.prices = read_prices<OpId>(fields.demand("prices"));
  return substitute;
}

Transform read_transform(JsonValue object, UnknownKeys& unknown) {
  const auto kind = object.find("kind");
  if (!kind) object.refuse("a transform is an object with a \"kind\"");
  const std::string word(kind->as_string());
  Fields fields(object, word);
  Transform transform;
  if (word == "split") {
    transform = read_split(fields);
  } else if (word == "hoist") {
    transform = read_hoist(fields);
  } else if (word == "substitute") {
    transform = read_substitute(fields);
  } else {
    kind->refuse("unknown transform " + quoted(word) + "; must be split, hoist or substitute");
  }
  fields.warn(unknown);
  try {
    check_complete(transform);
  } catch (const InputError& error) {
    throw InputError(object.pointer() + error.place(), error.reason());
  }
  return transform;
}

template <class Items, class Text>
std::string list_json(const Items& items, std::size_t on_a_line, std::string_view indent,
                      Text text) {
  std::string out = "[";
  std::size_t i = 0;
  for (const auto& item : items) {
    if (i > 0) out += ",";
    if (items.size() > on_a_line && i % on_a_line == 0) {
      fmt::format_to(std::back_inserter(out), "\n{}", indent);
    } else if (i > 0) {
      out += " ";
    }
    out += text(item);
    ++i;
  }
  return out + "]";
}

std::string ops_json(const std::vector<OpId>& ops) {
  return list_json(ops, 20, "       ", [](OpId op) { return std::to_string(op.index()); });
}

template <class AnyId>
std::string prices_json(const std::vector<Price<AnyId>>& prices) {
  return list_json(prices, 6, "       ", [](const Price<AnyId>& price) {
    return fmt::format("[{}, {}, {}]", price.of.index(), price.time.count(),
                       price.workspace.count());
  });
}

std::string fields_json(const Split& split) {
  std::string out = fmt::format(
      "\"ops\": {},\n      \"parts\": {}, \"axes\": ", ops_json(split.ops), split.parts);
  out += list_json(split.axes, 6, "       ", [](const SplitAxis& axis) {
    return fmt::format("{{\"tensor\": {}, \"dim\": {}}}", axis.tensor.index(), axis.dim);
  });
  out += fmt::format(", \"exact\": {},\n      \"prices\": ", split.exact);
  out += split.prices.size() == 1 ? prices_json(split.prices.front())
                                  : list_json(split.prices, 1, "       ",
                                              [](const auto& part) { return prices_json(part); });
  if (!split.before.empty()) out += ",\n      \"before\": " + prices_json(split.before);
  if (!split.joins.empty()) out += ",\n      \"joins\": " + prices_json(split.joins);
  return out;
}

std::string fields_json(const Hoist& hoist) {
  std::string out =
      fmt::format("\"tangent\": {}, \"exact\": {}", hoist.tangent.index(), hoist.exact);
  if (!hoist.joins.empty()) out += ",\n      \"joins\": " + prices_json(hoist.joins);
  return out;
}

std::string fields_json(const Substitute& substitute) {
  return fmt::format("\"rule\": {}, \"ops\": {}, \"exact\": {},\n      \"prices\": {}",
                     json_string(substitute.rule), ops_json(substitute.ops), substitute.exact,
                     prices_json(substitute.prices));
}

}  // namespace

std::int32_t read_index(JsonValue value) {
  const std::int64_t at = value.as_count();
  if (!std::in_range<std::int32_t>(at)) value.refuse("no graph has that many ops or tensors");
  return static_cast<std::int32_t>(at);
}

std::vector<Transform> read_transforms(JsonValue list, UnknownKeys& unknown) {
  std::vector<Transform> transforms;
  for (const JsonValue item : list.items()) transforms.push_back(read_transform(item, unknown));
  return transforms;
}

std::string transforms_json(const std::vector<Transform>& transforms) {
  std::string out = "[";
  for (const Transform& transform : transforms) {
    out += out.size() > 1 ? ",\n    " : "\n    ";
    out += fmt::format("{{\"kind\": \"{}\", {}}}", kind_of(transform),
                       std::visit([](const auto& any) { return fields_json(any); }, transform));
  }
  return transforms.empty() ? "[]" : out + "\n  ]";
}

}  // namespace lowtide::io
