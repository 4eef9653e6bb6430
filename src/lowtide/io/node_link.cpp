// Ids may be any JSON value, so they are compared as JSON text: 1 and "1" differ, as in networkx.
// Files of Moccasin's authors (ids under "name", link ends under "0" and "1", the order under
// "graph") and of Checkmate's (costs under "cost_ram" and "cost_cpu") differ from the common form
// only in their keys.
#include "lowtide/io/node_link.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <unordered_map>

#include "lowtide/base/error.h"
#include "lowtide/graph/builder.h"
#include "lowtide/io/reader_support.h"

namespace lowtide::io {

namespace {

constexpr std::array<std::string_view, 4> kBytesKeys{"bytes", "out_cost", "cost_ram", "memory"};
constexpr std::array<std::string_view, 3> kTimeKeys{"time", "duration", "cost_cpu"};

// The value of the first of `keys` that the object has.
std::optional<JsonValue> find_any(JsonValue object, std::span<const std::string_view> keys) {
  for (std::string_view key : keys)
    if (auto value = object.find(key)) return value;
  return std::nullopt;
}

bool is_one_of(std::string_view key, std::span<const std::string_view> keys) {
  for (std::string_view known : keys)
    if (key == known) return true;
  return false;
}

// Python's tools often write whole numbers as 3.0.
std::int64_t read_whole(JsonValue value) {
  const std::string_view text = value.number_text();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr double kExact = 9007199254740992;  // 2^53: up to here every whole double is exact
  const bool whole = !text.empty() && error == std::errc() && end == text.data() + text.size() &&
                     number == std::floor(number) && std::abs(number) <= kExact;
  const std::int64_t count = whole ? static_cast<std::int64_t>(number) : value.as_integer();
  if (count < 0) value.refuse("must not be negative: " + std::to_string(count));
  return count;
}

// An id as in messages: 1, "a".
std::string shown(const std::string& id) {
  constexpr std::size_t kShown = 80;
  return id.size() <= kShown ? id : id.substr(0, kShown) + "...";
}

class NodeLinkReader {
 public:
  NodeLinkReader(JsonValue root, std::vector<std::string>& warnings)
      : root_(root), warnings_(warnings) {}
  Graph read();

 private:
  void read_nodes(JsonValue nodes);
  void read_node(JsonValue node, std::size_t index);
  void read_links(JsonValue links);
  std::int64_t link_end(JsonValue link, std::string_view key, std::string_view other) const;
  void read_order(GraphBuilder& builder) const;
  std::optional<std::vector<std::int64_t>> sorted() const;

  JsonValue root_;
  std::vector<std::string>& warnings_;
  UnknownKeys unknown_;
  std::unordered_map<std::string, std::size_t> index_of_;  // node ids as JSON text
  bool ids_are_text_ = true;  // if all are, link ends that are integers are indices
  std::vector<Op> ops_;
  std::vector<Bytes> bytes_;
  std::vector<std::vector<std::int64_t>> inputs_;
  std::size_t without_time_ = 0;
};

void NodeLinkReader::read_node(JsonValue node, std::size_t index) {
  constexpr std::array<std::string_view, 2> kIdKeys{"id", "name"};
  constexpr std::array<std::string_view, 3> kNameKeys{"name", "label", "id"};
  const auto id = find_any(node, kIdKeys);
  const std::string id_text = id ? id->text() : std::to_string(index);
  ids_are_text_ = ids_are_text_ && id && id->is(JsonKind::string);
  if (!index_of_.emplace(id_text, index).second)
    (id ? *id : node).refuse("two nodes have the id " + shown(id_text));

  Op op;
  if (const auto name = find_any(node, kNameKeys))
    op.name = name->is(JsonKind::string) ? std::string(name->as_string()) : name->text();
  const auto bytes = find_any(node, kBytesKeys);
  if (!bytes)
    node.refuse(
        "has no size: give its output's bytes as \"bytes\", \"out_cost\", \"cost_ram\" or "
        "\"memory\"");
  bytes_.push_back(Bytes(read_whole(*bytes)));
  if (const auto time = find_any(node, kTimeKeys)) {
    op.time = Ticks(read_whole(*time));
  } else {
    ++without_time_;
  }
  for (const auto& [key, value] : node.members()) {
    if (key == "backward" && value.is(JsonKind::boolean)) {
      op.phase = value.as_boolean() ? "backward" : "forward";
    } else if (key == "phase" && value.is(JsonKind::string)) {
      op.phase = value.as_string();
    } else if (key == "param_cost" && value.is(JsonKind::integer) && value.as_integer() == 0) {
      // Says nothing.
    } else if (!is_one_of(key, kNameKeys) && !is_one_of(key, kBytesKeys) &&
               !is_one_of(key, kTimeKeys)) {
      unknown_.add("nodes", key);
    }
  }
  ops_.push_back(std::move(op));
}

void NodeLinkReader::read_nodes(JsonValue nodes) {
  std::size_t index = 0;
  for (const JsonValue node : nodes.items()) {
    if (!node.is(JsonKind::object)) node.refuse_kind("an object");
    try {
      read_node(node, index);
    } catch (const InputError& error) {
      const auto id = find_any(node, std::array<std::string_view, 2>{"id", "name"});
      throw InputError(error.place(), "node " + (id ? shown(id->text()) : std::to_string(index)) +
                                          ": " + error.reason());
    }
    ++index;
  }
  inputs_.resize(ops_.size());
  if (without_time_ == 0) return;
  const bool all = without_time_ == ops_.size();
  if (all)
    for (Op& op : ops_) op.time = Ticks(1);
  warnings_.push_back(all ? "no node has a \"duration\": each counts as 1 tick"
                          : std::to_string(without_time_) +
                                " of the nodes have no \"duration\": it counts as 0");
}

std::int64_t NodeLinkReader::link_end(JsonValue link, std::string_view key,
                                      std::string_view other) const {
  auto end = link.find(key);
  if (!end) end = link.find(other);
  if (!end) link.refuse("has no " + quoted(key));
  const auto found = index_of_.find(end->text());
  if (found != index_of_.end()) return static_cast<std::int64_t>(found->second);
  // The form in which networkx wrote links before version 2.
  if (ids_are_text_ && end->is(JsonKind::integer) && end->as_integer() >= 0 &&
      static_cast<std::size_t>(end->as_integer()) < ops_.size())
    return end->as_integer();
  end->refuse("there is no node with the id " + shown(end->text()));
}

void NodeLinkReader::read_links(JsonValue links) {
  constexpr std::array<std::string_view, 5> kKnown{"source", "target", "0", "1", "key"};
  for (const JsonValue link : links.items()) {
    if (!link.is(JsonKind::object)) link.refuse_kind("an object");
    const std::int64_t source = link_end(link, "source", "0");
    const std::int64_t target = link_end(link, "target", "1");
    if (source == target)
      link.refuse("node " + quoted(ops_[static_cast<std::size_t>(source)].name) +
                  " is linked to itself");
    inputs_[static_cast<std::size_t>(target)].push_back(source);
    for (const auto& [key, value] : link.members())
      if (!is_one_of(key, kKnown)) unknown_.add("links", key);
  }
}

// The first topological order, by index; empty if there is a cycle.
std::optional<std::vector<std::int64_t>> NodeLinkReader::sorted() const {
  const std::size_t count = ops_.size();
  std::vector<std::vector<std::size_t>> readers(count);
  std::vector<std::size_t> waiting(count);
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::int64_t source : inputs_[i]) readers[static_cast<std::size_t>(source)].push_back(i);
    waiting[i] = inputs_[i].size();
    if (waiting[i] == 0) ready.push(i);
  }
  std::vector<std::int64_t> order;
  while (!ready.empty()) {
    const std::size_t at = ready.top();
    ready.pop();
    order.push_back(static_cast<std::int64_t>(at));
    for (std::size_t reader : readers[at])
      if (--waiting[reader] == 0) ready.push(reader);
  }
  if (order.size() != count) return std::nullopt;
  return order;
}

void NodeLinkReader::read_order(GraphBuilder& builder) const {
  const auto attributes = root_.find("graph");
  const auto given = attributes ? attributes->find("order") : std::nullopt;
  if (!given || !given->is(JsonKind::array)) {
    // Index order if that is topological. If there is a cycle, the builder reports it.
    auto order = sorted();
    if (order && !std::is_sorted(order->begin(), order->end()))
      warnings_.push_back("the nodes are not in topological order: sorted, by index where free");
    if (order) builder.set_order(std::move(*order));
    return;
  }
  std::vector<std::int64_t> order;
  for (const JsonValue item : given->items()) {
    const auto found = index_of_.find(item.text());
    if (found == index_of_.end()) item.refuse("there is no node with the id " + shown(item.text()));
    order.push_back(static_cast<std::int64_t>(found->second));
  }
  builder.set_order(std::move(order));
}

Graph NodeLinkReader::read() {
  const auto directed = root_.find("directed");
  if (directed && !directed->as_boolean())
    directed->refuse("the graph is undirected; an op graph has directed links (networkx.DiGraph)");
  auto links = root_.find("links");
  if (!links) links = root_.find("edges");
  if (!links) root_.refuse("has \"nodes\" but neither \"links\" nor \"edges\"");
  read_nodes(*root_.find("nodes"));
  read_links(*links);
  for (const auto& [key, value] : root_.members())
    if (!is_one_of(key, std::array<std::string_view, 6>{"directed", "multigraph", "graph", "nodes",
                                                        "links", "edges"}))
      unknown_.add("", key);

  GraphBuilder builder;
  builder.reserve(ops_.size(), ops_.size());
  const auto attributes = root_.find("graph");
  const auto name = attributes ? attributes->find("name") : std::nullopt;
  if (name && name->is(JsonKind::string)) builder.set_name(std::string(name->as_string()));
  read_order(builder);
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    Tensor tensor;
    tensor.name = ops_[i].name;
    tensor.bytes = bytes_[i];
    builder.add_tensor(std::move(tensor));
    OpLinks op_links;
    op_links.inputs = std::move(inputs_[i]);
    op_links.outputs = {static_cast<std::int64_t>(i)};
    builder.add_op(std::move(ops_[i]), op_links);
  }
  unknown_.warn(warnings_);
  try {
    return builder.build();
  } catch (const InputError& error) {
    // The builder's places refer to our own format, which has ops and tensors apart and one key for
    // each number.
    std::string place = error.place();
    if (place.starts_with("/order")) place.insert(0, "/graph");
    for (const std::string_view list : {"/ops/", "/tensors/"})
      if (place.starts_with(list))
        place = "/nodes/" + place.substr(list.size(), place.find('/', list.size()) - list.size());
    throw InputError(std::move(place), error.reason());
  }
}

}  // namespace

Graph read_node_link(JsonValue root, std::vector<std::string>& warnings) {
  return NodeLinkReader(root, warnings).read();
}

}  // namespace lowtide::io
