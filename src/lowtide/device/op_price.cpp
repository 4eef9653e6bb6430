// What each op does first, then the formula.
#include "lowtide/device/op_price.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/device/roofline.h"
#include "lowtide/ops/call.h"
#include "lowtide/ops/operations.h"

namespace lowtide {

namespace {

constexpr std::string_view kState = "lowtide.random_state", kMask = "lowtide.dropout_mask",
                           kApply = "lowtide.dropout_apply",
                           kStatistics = "lowtide.batch_norm_stats";
// The literal argument with the size of a process group.
constexpr std::string_view kRanks = "lowtide.ranks";

class Pricer {
 public:
  Pricer(const Graph& graph, const Device& device, const StatedOperations& stated)
      : graph_(graph), device_(device), stated_(stated) {}

  std::int64_t ns(OpId op) const {
    const std::string_view kind = graph_.op(op).kind;
    if (graph_.is_barrier(op) || kind == kState || kind == kStatistics) return 0;
    if (graph_.outputs(op).empty() && graph_.mutates(op).empty()) return 0;
    if (kind.find("c10d") != std::string_view::npos) return collective(op, kind);
    const std::int64_t whole = kernel(op);
    if (kind != kMask) return whole;
    // The two are one kernel the first time.
    for (const TensorId mask : graph_.outputs(op))
      for (const OpId reader : graph_.consumers(mask))
        if (graph_.op(reader).kind == kApply)
          return std::max<std::int64_t>(whole - kernel(reader), 0);
    return whole;
  }

 private:
  std::int64_t kernel(OpId op) const {
    Bytes moved;
    for (const TensorId id : graph_.inputs(op))
      if (!is_state(id)) moved += graph_.bytes(id);
    for (const TensorId id : graph_.outputs(op)) moved += graph_.bytes(id);
    return kernel_ns(device_, operations(op), dtype(op), moved.count());
  }

  std::int64_t operations(OpId op) const {
    if (const auto stated = stated_(graph_.op(op))) return *stated;
    if (graph_.tick() == TickUnit::flop) return graph_.time(op).count();
    return counted_operations(graph_, op);
  }

  // Which generator's state a draw repeats; the kernel does not read it.
  bool is_state(TensorId id) const {
    return !graph_.is_input(id) && graph_.op(graph_.producer(id)).kind == kState;
  }

  std::string_view dtype(OpId op) const {
    std::string_view found = "f32";
    const auto first = [&](std::span<const TensorId> tensors) {
      for (const TensorId id : tensors)
        if (is_floating(graph_.tensor(id).dtype)) {
          found = graph_.tensor(id).dtype;
          return true;
        }
      return false;
    };
    first(graph_.inputs(op)) || first(graph_.outputs(op));
    return computed_in(graph_.op(op).kind, found);
  }

  // Each rank of a ring sends its share of all bytes; a broadcast, or a collective of an unknown
  // number of ranks, sends all.
  std::int64_t collective(OpId op, std::string_view kind) const {
    const auto is = [&](std::string_view word) {
      return kind.find(word) != std::string_view::npos;
    };
    if (is("wait_tensor")) return 0;
    const std::int64_t moved =
        std::max(sum(graph_.inputs(op)), sum(graph_.outputs(op)) - held_meanwhile(op));
    const std::int64_t passes = is("all_reduce") || is("allreduce") ? 2 : 1;
    const std::int64_t ranks = is("broadcast") ? 0 : stated_ranks(graph_.op(op));
    const std::int64_t all = checked_mul_div(moved, passes, 1, Rounding::floor);
    return collective_ns(device_,
                         ranks > 0 ? checked_mul_div(all, ranks - 1, ranks, Rounding::ceil) : all);
  }

  std::int64_t sum(std::span<const TensorId> tensors) const {
    Bytes all;
    for (const TensorId id : tensors) all += graph_.bytes(id);
    return all.count();
  }

  // The bytes of outputs that are none of the op's results: buffers of the process group.
  std::int64_t held_meanwhile(OpId op) const {
    const std::vector<Operand>& results = graph_.op(op).results;
    Bytes held;
    for (const TensorId id : graph_.outputs(op))
      if (!results.empty() && std::ranges::find(results, id, &Operand::tensor) == results.end())
        held += graph_.bytes(id);
    return held.count();
  }

  // 0 if the op does not say it.
  static std::int64_t stated_ranks(const Op& op) {
    for (const Argument& argument : op.arguments)
      if (argument.name == kRanks)
        if (const auto* ranks = std::get_if<std::int64_t>(&argument.value.value))
          return std::max<std::int64_t>(*ranks, 0);
    return 0;
  }

  const Graph& graph_;
  const Device& device_;
  const StatedOperations& stated_;
};

}  // namespace

Graph priced_on(Graph graph, const Device& device, const StatedOperations& stated,
                const CostTable* table) {
  const Pricer pricer(graph, device, stated);
  const TickUnit unit = nanoseconds(graph.tick()) > 0 ? graph.tick() : TickUnit::ns;
  std::vector<Ticks> times;
  std::vector<Bytes> workspaces;
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const Call call = call_of(graph.op(OpId(i)));
    const CallCost* measured = table && !call.operands.empty() ? table->find(call) : nullptr;
    workspaces.push_back(measured ? measured->workspace : graph.workspace(OpId(i)));
    try {
      const std::int64_t ns = measured ? measured->ns : pricer.ns(OpId(i));
      times.emplace_back(checked_mul_div(ns, 1, nanoseconds(unit), Rounding::ceil));
    } catch (const OverflowError&) {
      throw InputError(graph.label(OpId(i)), "its price does not fit into 63 bits");
    }
  }
  if (table) graph = std::move(graph).with_workspaces(workspaces);
  return std::move(graph).timed(unit, times);
}

}  // namespace lowtide
