// Problem: partition a network into a chain of blocks, each of which reads only outputs of the one
// before.
//
// Idea: count the tensors that cross between consecutive layers of the given order, and cut where a
// single tensor crosses. Neighbouring blocks are joined until there are at most as many as
// requested.
//
// Source: X. Zhao et al., "Rockmate", ICML 2023, section 4, which cuts at the nodes on all paths.
//
// Invariant: blocks are ranges of an order, so they are convex.
//
// Loses: on networks with long skip connections, which are one block with `crossing` 1; and if the
// order interleaves branches.
#include "lowtide/solve/hierarchy/partition/chain.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "lowtide/solve/hierarchy/partition/layer_dag.h"
#include "lowtide/solve/hierarchy/partition/ranges.h"

namespace lowtide::solve::partition {

namespace {

// The positions at which at most `most` tensors cross, with the first and the last position.
std::vector<std::size_t> cuts_of(const LayerDag& dag, std::size_t most) {
  const std::size_t count = dag.size();
  std::vector<std::size_t> change(count + 2, 0);
  for (std::uint32_t i = 0; i < dag.values.size(); ++i) {
    if (dag.readers[i].empty()) continue;
    ++change[dag.values[i].maker + 1];
    --change[dag.readers[i].back() + 1];
  }
  std::vector<std::size_t> cuts{0};
  std::size_t crossing = 0;
  for (std::size_t at = 1; at < count; ++at) {
    crossing += change[at];
    if (crossing <= most) cuts.push_back(at);
  }
  if (count > 0) cuts.push_back(count);
  return cuts;
}

class Chain final : public Partitioner {
 public:
  std::string_view name() const override { return "chain"; }
  std::string_view summary() const override {
    return "a chain of blocks, cut where a single tensor crosses";
  }
  std::span<const OptionSpec> options() const override {
    static const std::array table{
        OptionSpec{.name = "crossing",
                   .usage = "most tensors that may cross from a block to later ones",
                   .default_number = 1,
                   .low = 1,
                   .high = 1000,
                   .whole = true},
        OptionSpec{.name = "blocks",
                   .usage = "most blocks; neighbours are joined until there are no more",
                   .default_number = 100,
                   .low = 2,
                   .high = 1e6,
                   .whole = true}};
    return table;
  }

  std::optional<Partition> partition(const Graph& graph, const Options& options,
                                     const std::function<bool()>& stop) const override {
    const auto most = static_cast<std::size_t>(options.number("crossing"));
    const auto blocks = static_cast<std::size_t>(options.number("blocks"));
    Phases phases = phases_of(graph);
    const Layers layers = layers_of(graph, phases, Links::all);
    if (stop && stop()) return std::nullopt;
    const std::vector<std::size_t> cuts = cuts_of(layers.dag, most);
    std::vector<Range> ranges;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const Range next{cuts[i], cuts[i + 1]};
      // A block begins if the middle of the next range is beyond its equal share.
      const std::size_t share = layers.ops.rows() * ranges.size() / blocks;
      if (cuts.size() - 1 <= blocks || ranges.empty() || next.first + next.size() / 2 >= share)
        ranges.push_back(next);
      else
        ranges.back().last = next.last;
    }
    return partition_of(graph, std::move(phases), layers, ranges, layers.ops.rows(), 2);
  }
};

}  // namespace

std::unique_ptr<Partitioner> make_chain() { return std::make_unique<Chain>(); }

}  // namespace lowtide::solve::partition
