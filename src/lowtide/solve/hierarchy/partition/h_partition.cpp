// H-Partition as a partitioner: on the forward tensors, and if its blocks are invalid, on all
// dependencies.
#include "lowtide/solve/hierarchy/partition/h_partition.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/solve/hierarchy/partition/h_rounds.h"
#include "lowtide/solve/hierarchy/partition/layer_dag.h"

namespace lowtide::solve::partition {

namespace {

constexpr double kMostNodes = 1e6;

class HPartition final : public Partitioner {
 public:
  std::string_view name() const override { return "h_partition"; }
  std::string_view summary() const override {
    return "HiRemate's: bottom-up; small blocks with few bytes across their borders";
  }
  std::span<const OptionSpec> options() const override {
    static const std::array table{
        OptionSpec{.name = "top_size",
                   .usage = "most nodes of the root block, an inner block counted as two",
                   .default_number = 30,
                   .low = 2,
                   .high = kMostNodes,
                   .whole = true},
        OptionSpec{.name = "block_size",
                   .usage = "most nodes of any other block, an inner block counted as two",
                   .default_number = 20,
                   .low = 4,
                   .high = kMostNodes,
                   .whole = true},
        OptionSpec{.name = "alpha",
                   .usage = "weight of a block's size against the bytes that cross its border",
                   .default_number = 0.5,
                   .low = 0,
                   .high = 4}};
    return table;
  }

  std::optional<Partition> partition(const Graph& graph, const Options& options,
                                     const std::function<bool()>& stop) const override {
    const HSettings settings{.top_size = static_cast<std::size_t>(options.number("top_size")),
                             .block_size = static_cast<std::size_t>(options.number("block_size")),
                             .alpha = options.number("alpha")};
    const Phases phases = phases_of(graph);
    for (const Links links : {Links::flow, Links::all}) {
      if (stop && stop()) break;
      if (auto found = with(links, graph, phases, settings, stop)) return found;
    }
    return std::nullopt;
  }

 private:
  // nullopt if it was stopped, or if blocks depend on one another by dependencies that are no
  // links.
  static std::optional<Partition> with(Links links, const Graph& graph, const Phases& phases,
                                       const HSettings& settings,
                                       const std::function<bool()>& stop) {
    const Layers layers = layers_of(graph, phases, links);
    if (stop && stop()) return std::nullopt;
    const auto grown = grow_blocks(layers, settings, stop);
    if (!grown) return std::nullopt;
    const std::size_t count = layers.dag.size();
    BlockTree tree(0);
    std::vector<BlockId> block_of(count, Partition::root());
    std::vector<BlockId> ids(grown->blocks.size(), Partition::root());
    // Inner blocks come before their outer block.
    for (const Node node : grown->top)
      if (node >= count) ids[node - count] = tree.add(Partition::root());
    for (std::size_t i = grown->blocks.size(); i-- > 0;)
      for (const Node node : grown->blocks[i]) {
        if (node < count)
          block_of[node] = ids[i];
        else
          ids[node - count] = tree.add(ids[i]);
      }
    try {
      return spread(graph, phases, layers, block_of, std::move(tree), settings.block_size);
    } catch (const InputError&) {
      if (links == Links::all) throw;
      return std::nullopt;
    }
  }
};

}  // namespace

std::unique_ptr<Partitioner> make_h_partition() { return std::make_unique<HPartition>(); }

}  // namespace lowtide::solve::partition
