// Problem: partition a network into blocks most of which are equal, so that a result for one can be
// used for all.
//
// Idea: use the repeats of the forward. Outer blocks have equally many of them each, so most outer
// blocks are equal too.
//
// Source: the "repetitive" partitioner of HiRemate's released code, which looks for one pattern in
// the names of functions; here blocks are equal if their canonical hashes are.
//
// Invariant: blocks are ranges of an order, so they are convex.
//
// Loses: if a network repeats in other directions than along its order, or if blocks repeat in
// their forward only.
#include "lowtide/solve/hierarchy/partition/repeat.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "lowtide/graph/repeats.h"
#include "lowtide/solve/hierarchy/partition/layer_dag.h"
#include "lowtide/solve/hierarchy/partition/ranges.h"

namespace lowtide::solve::partition {

namespace {

// The range of layers that these ops are; nullopt if they are none.
Range range_of(std::span<const OpId> ops, std::span<const std::size_t> layer_of) {
  Range range{SIZE_MAX, 0};
  for (const OpId op : ops) {
    if (layer_of[op.index()] == SIZE_MAX) return {};
    range.first = std::min(range.first, layer_of[op.index()]);
    range.last = std::max(range.last, layer_of[op.index()] + 1);
  }
  return range.size() == ops.size() ? range : Range{};
}

class Repeat final : public Partitioner {
 public:
  std::string_view name() const override { return "repeat"; }
  std::string_view summary() const override { return "equal blocks, and equal runs of them"; }
  std::span<const OptionSpec> options() const override {
    static const std::array table{
        OptionSpec{
            .name = "top_size",
            .usage = "most children of the root; with more, neighbours are grouped into blocks",
            .default_number = 30,
            .low = 2,
            .high = 1e6,
            .whole = true},
        OptionSpec{.name = "run",
                   .usage = "children of each such group",
                   .default_number = 10,
                   .low = 2,
                   .high = 1e6,
                   .whole = true}};
    return table;
  }

  std::optional<Partition> partition(const Graph& graph, const Options& options,
                                     const std::function<bool()>& stop) const override {
    Phases phases = phases_of(graph);
    const Layers layers = layers_of(graph, phases, Links::all);
    std::vector<std::size_t> layer_of(graph.op_count(), SIZE_MAX);
    for (std::size_t i = 0; i < layers.ops.rows(); ++i) layer_of[layers.ops[i].front().index()] = i;
    if (stop && stop()) return std::nullopt;
    std::vector<Range> ranges;
    for (const RepeatedBlock& block : repeated_blocks(graph))
      for (const std::vector<OpId>& place : block.places)
        if (const Range range = range_of(place, layer_of); range.size() > 1)
          ranges.push_back(range);
    std::ranges::sort(ranges, {}, &Range::first);
    if (stop && stop()) return std::nullopt;
    return partition_of(graph, std::move(phases), layers, ranges,
                        static_cast<std::size_t>(options.number("top_size")),
                        static_cast<std::size_t>(options.number("run")));
  }
};

}  // namespace

std::unique_ptr<Partitioner> make_repeat() { return std::make_unique<Repeat>(); }

}  // namespace lowtide::solve::partition
