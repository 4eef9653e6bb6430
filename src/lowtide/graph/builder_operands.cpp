// Checks the operands, results and in-place pairs of an op against the tensors that it links.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/graph/builder.h"
#include "lowtide/graph/no_such.h"

namespace lowtide {

namespace {

struct Place {
  const Graph& graph;
  OpId op;
  std::string_view key;
  std::size_t item = 0;

  [[noreturn]] void refuse(const std::string& reason) const {
    throw InputError(
        "/ops/" + std::to_string(op.index()) + "/" + std::string(key) + "/" + std::to_string(item),
        graph.label(op) + ": " + reason);
  }
  TensorId tensor(std::int64_t index) const {
    if (!in_range(index, graph.tensor_count()))
      refuse(no_such("tensor", index, graph.tensor_count()));
    return TensorId(static_cast<std::size_t>(index));
  }
  // `what`: "operand" or "result".
  std::string name(const Operand& part, std::string_view what) const {
    return (part.argument.empty() ? "the " + std::string(what) + " in "
                                  : "\"" + part.argument + "\" of ") +
           graph.label(part.tensor);
  }
};

constexpr std::int64_t kBlock = 512;  // allocators of devices round storages up to multiples of it

// Whether the operand has every element of a storage of so many bytes, each once. If the number
// type is unknown: whether its elements begin at 0, are contiguous, and do not overlap.
bool covers(const Operand& part, std::int64_t bytes) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // stride, extent
  for (std::size_t i = 0; i < part.shape.size(); ++i) {
    if (part.shape[i] == 0) return bytes == 0;
    if (part.shape[i] > 1) axes.emplace_back(part.strides[i], part.shape[i]);
  }
  std::ranges::sort(axes);
  std::int64_t count = 1, size = 0;
  for (const auto& [stride, extent] : axes)
    if (stride != count || __builtin_mul_overflow(count, extent, &count)) return false;
  if (part.offset != 0) return false;
  const auto element = element_bytes(part.dtype);
  if (!element) return true;
  if (__builtin_mul_overflow(count, *element, &size)) return false;
  return size == bytes || (bytes % kBlock == 0 && size < bytes && bytes - size < kBlock);
}

bool contains(std::span<const TensorId> list, TensorId id) {
  return std::ranges::find(list, id) != list.end();
}

void check_storage(const Place& place, const Operand& operand, std::string_view what) {
  if (operand.shape.size() != operand.strides.size())
    place.refuse(place.name(operand, what) + " has " + std::to_string(operand.shape.size()) +
                 " extents and " + std::to_string(operand.strides.size()) + " strides");
  const auto reach = reach_of(operand);
  if (!reach)
    place.refuse(place.name(operand, what) +
                 " has a negative extent, stride or offset, or leads beyond 63 bits");
  const auto element = element_bytes(operand.dtype);
  const std::int64_t bytes = place.graph.bytes(operand.tensor).count();
  std::int64_t end = 0;
  if (!element) return;
  if (__builtin_mul_overflow(*reach, *element, &end) || end > bytes)
    place.refuse(place.name(operand, what) + " leaves its storage: it reaches element " +
                 std::to_string(*reach - 1) + " of " + operand.dtype + ", and the storage has " +
                 std::to_string(bytes) + " bytes");
}

// The only view of the tensor in the list; nullopt if the list is empty.
const Operand* only_part(const Place& place, const std::vector<Operand>& list, TensorId id,
                         std::string_view what) {
  if (list.empty()) return nullptr;
  const auto is = [id](const Operand& operand) { return operand.tensor == id; };
  if (std::ranges::count_if(list, is) != 1)
    place.refuse("the op has not exactly one " + std::string(what) + " in " +
                 place.graph.label(id) + ", so it cannot run in place");
  const Operand& part = *std::ranges::find_if(list, is);
  if (!covers(part, place.graph.bytes(id).count()))
    place.refuse(place.name(part, what) + " is not the whole of it, so the op cannot run in place");
  return &part;
}

// Checks a pair against the operand and the result of the op, if it has both.
void check_layout(const Place& place, TensorId input, TensorId output) {
  const Op& op = place.graph.op(place.op);
  const Operand* operand = only_part(place, op.operands, input, "operand");
  const Operand* result = only_part(place, op.results, output, "result");
  if (operand != nullptr && result != nullptr && !operand->laid_out_as(*result))
    place.refuse(place.name(*operand, "operand") + " is not laid out as the result in " +
                 place.graph.label(output) + ": shape, strides, offset and number type must agree");
}

}  // namespace

void GraphBuilder::check_operands(Graph& graph) const {
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId id(i);
    Op& op = graph.ops_[i];
    const auto adopt = [&](std::vector<Operand>& list, std::span<const std::int64_t> tensors,
                           std::string_view what, auto allowed, std::string_view not_allowed) {
      check(tensors.empty() || tensors.size() == list.size(), "each operand has its tensor");
      for (std::size_t k = 0; k < list.size(); ++k) {
        const std::string key = std::string(what) + "s";
        const Place place{graph, id, key, k};
        list[k].tensor = place.tensor(
            tensors.empty() ? static_cast<std::int64_t>(list[k].tensor.index()) : tensors[k]);
        if (!allowed(list[k].tensor))
          place.refuse(place.name(list[k], what) + std::string(not_allowed));
        check_storage(place, list[k], what);
      }
    };
    adopt(
        op.operands, operands_[i], "operand",
        [&](TensorId t) { return contains(graph.inputs(id), t); }, " is not among its \"inputs\"");
    adopt(
        op.results, results_[i], "result",
        [&](TensorId t) {
          return contains(graph.outputs(id), t) || contains(graph.mutates(id), t);
        },
        " is neither among its \"outputs\" nor changed by it");
  }
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    const auto refuse = [&](const std::string& key, const std::string& why) {
      throw InputError("/tensors/" + std::to_string(i) + "/" + key,
                       graph.label(id) + ": an op produces it, so " + why);
    };
    if (graph.is_input(id)) continue;
    if (graph.tensors_[i].home == Home::host) refuse("home", "it cannot begin on the host");
    if (graph.tensors_[i].stays) refuse("stays", "its caller does not hold it");
  }
}

void GraphBuilder::link_in_place(Graph& graph) const {
  std::vector<TensorId> paired;
  std::vector<InPlacePair> usable;
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId op(i);
    paired.clear();
    usable.clear();
    for (std::size_t k = 0; k < in_place_[i].size(); ++k) {
      const Place place{graph, op, "in_place", k};
      const InPlacePair pair{place.tensor(in_place_[i][k][0]), place.tensor(in_place_[i][k][1])};
      if (graph.is_barrier(op)) place.refuse("a barrier does not run in place");
      if (!contains(graph.inputs(op), pair.input))
        place.refuse("it does not read " + graph.label(pair.input));
      if (!contains(graph.outputs(op), pair.output))
        place.refuse("it does not make " + graph.label(pair.output));
      if (contains(graph.mutates(op), pair.input))
        place.refuse("it mutates " + graph.label(pair.input) + ", so it cannot write over it too");
      if (graph.bytes(pair.input) != graph.bytes(pair.output))
        place.refuse(graph.label(pair.input) + " has " +
                     std::to_string(graph.bytes(pair.input).count()) + " bytes and " +
                     graph.label(pair.output) + " " +
                     std::to_string(graph.bytes(pair.output).count()) + "; they must be equal");
      if (contains(paired, pair.input))
        place.refuse(graph.label(pair.input) + " stands in two pairs");
      check_layout(place, pair.input, pair.output);
      paired.push_back(pair.input);
      graph.in_place_.push(pair);
      if (graph.overwritable(pair.input)) usable.push_back(pair);
    }
    graph.in_place_.end_row();
    const auto first = [&](TensorId output) {
      return std::ranges::find(usable, output, &InPlacePair::output) - usable.begin();
    };
    std::vector<InPlacePair> grouped = usable;
    std::ranges::stable_sort(grouped, [&](const InPlacePair& a, const InPlacePair& b) {
      return first(a.output) < first(b.output);
    });
    Bytes least = graph.workspace(op);
    TensorId counted;
    for (const InPlacePair& pair : grouped) {
      graph.overwrites_.push(pair);
      if (pair.output != counted) least -= graph.bytes(pair.output);
      counted = pair.output;
    }
    graph.least_workspaces_.push_back(least);
    graph.overwrites_.end_row();
  }
}

}  // namespace lowtide
