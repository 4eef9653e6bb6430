// Problem: make blocks that users know, from the names of modules.
//
// Idea: consecutive layers in the given order whose origins have a common prefix are one call of
// that module. Inside it the next component of the name divides further.
//
// Source: no publication.
//
// Invariant: blocks are ranges of an order, so they are convex.
//
// Loses: if the order interleaves modules, each of them falls into many short ranges.
#include "lowtide/solve/hierarchy/partition/origin.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/solve/hierarchy/partition/layer_dag.h"
#include "lowtide/solve/hierarchy/partition/ranges.h"

namespace lowtide::solve::partition {

namespace {

constexpr std::size_t kRun = 20;  // ops in a block of ops without layer

// The end of the component of the name that begins at `from`.
std::size_t part_end(std::string_view origin, std::size_t from) {
  return std::min(origin.find_first_of("./", from), origin.size());
}

// Layers that share the first `length` characters of their origins, all in one block.
struct Call {
  Range range;
  std::size_t length;
  BlockId block;
  std::size_t depth;
};

class Origin final : public Partitioner {
 public:
  std::string_view name() const override { return "origin"; }
  std::string_view summary() const override {
    return "the network's modules, from the origin that ops name";
  }
  std::span<const OptionSpec> options() const override {
    static const std::array table{
        OptionSpec{.name = "levels",
                   .usage = "levels of modules, counted from the outermost",
                   .default_number = 100,
                   .low = 1,
                   .high = 1000,
                   .whole = true}};
    return table;
  }

  std::optional<Partition> partition(const Graph& graph, const Options& options,
                                     const std::function<bool()>& stop) const override {
    const auto levels = static_cast<std::size_t>(options.number("levels"));
    Phases phases = phases_of(graph);
    const Layers layers = layers_of(graph, phases, Links::all);
    const std::size_t count = layers.ops.rows();
    const auto origin = [&](std::size_t layer) {
      return std::string_view(graph.op(layers.ops[layer].front()).origin);
    };
    BlockTree tree(0);
    std::vector<BlockId> block_of(count, Partition::root());
    std::vector<Call> open{{{0, count}, 0, Partition::root(), 0}};
    while (!open.empty()) {
      if (stop && stop()) return std::nullopt;
      const Call call = open.back();
      open.pop_back();
      for (std::size_t first = call.range.first; first < call.range.last;) {
        // The separator before the next component belongs to the prefix.
        const std::string_view name = origin(first);
        const std::size_t end = part_end(name, call.length + (call.length > 0 ? 1 : 0));
        const std::string_view shared = name.substr(0, end);
        std::size_t last = first + 1;
        while (last < call.range.last && origin(last).starts_with(shared) &&
               part_end(origin(last), call.length + (call.length > 0 ? 1 : 0)) == end)
          ++last;
        const Range run{std::exchange(first, last), last};
        if (end <= call.length || run.size() < 2) continue;  // the module's own ops
        if (run == call.range) {
          open.push_back({run, end, call.block, call.depth});
        } else if (call.depth < levels) {
          const BlockId block = tree.add(call.block, std::string(shared));
          for (std::size_t i = run.first; i < run.last; ++i) block_of[i] = block;
          open.push_back({run, end, block, call.depth + 1});
        }
      }
    }
    return spread(graph, std::move(phases), layers, block_of, std::move(tree), kRun);
  }
};

}  // namespace

std::unique_ptr<Partitioner> make_origin() { return std::make_unique<Origin>(); }

}  // namespace lowtide::solve::partition
