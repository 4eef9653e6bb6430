// Problem: make blocks of about equal size at every level, with as few bytes between them as
// possible.
//
// Idea: bisect, and bisect each half again, until there are as many pieces as a block may have
// children. These are its children, and are partitioned in turn.
//
// Source: dagP's recursive bisection (see multilevel.h).
//
// Invariant: links between the halves of a bisection lead one way, so halves are convex, and so are
// their halves.
//
// Loses: if the natural blocks of a network differ much in size. Equal pieces of a network are not
// partitioned equally.
#include "lowtide/solve/hierarchy/partition/multilevel.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "lowtide/solve/hierarchy/partition/bisect.h"
#include "lowtide/solve/hierarchy/partition/layer_dag.h"

namespace lowtide::solve::partition {

namespace {

using Nodes = std::vector<Node>;

class Multilevel final : public Partitioner {
 public:
  std::string_view name() const override { return "multilevel"; }
  std::string_view summary() const override {
    return "top-down; blocks of similar size with few bytes between them (multilevel graph "
           "partitioning)";
  }
  std::span<const OptionSpec> options() const override {
    static const std::array table{
        OptionSpec{.name = "block_size",
                   .usage = "most children of a block",
                   .default_number = 20,
                   .low = 2,
                   .high = 1e6,
                   .whole = true},
        OptionSpec{.name = "imbalance",
                   .usage = "how far the sizes of two halves may differ, as a share",
                   .default_number = 0.1,
                   .low = 0,
                   .high = 0.5}};
    return table;
  }

  std::optional<Partition> partition(const Graph& graph, const Options& options,
                                     const std::function<bool()>& stop) const override {
    const auto size = static_cast<std::size_t>(options.number("block_size"));
    const double imbalance = options.number("imbalance");
    Phases phases = phases_of(graph);
    const Layers layers = layers_of(graph, phases, Links::all);
    BlockTree tree(0);
    std::vector<BlockId> block_of(layers.dag.size(), Partition::root());
    struct Open {
      Nodes nodes;
      BlockId block;
    };
    Nodes all(layers.dag.size());
    std::iota(all.begin(), all.end(), Node{0});
    std::vector<Open> open{{std::move(all), Partition::root()}};
    while (!open.empty()) {
      if (stop && stop()) return std::nullopt;
      const Open now = std::move(open.back());
      open.pop_back();
      if (now.nodes.size() <= size) {
        for (const Node node : now.nodes) block_of[node] = now.block;
        continue;
      }
      for (Nodes& part : parts_of(layers.dag, now.nodes, size, imbalance, stop)) {
        if (part.size() == 1)
          block_of[part.front()] = now.block;
        else
          open.push_back({std::move(part), tree.add(now.block)});
      }
    }
    return spread(graph, std::move(phases), layers, block_of, std::move(tree), size);
  }

 private:
  // Two or more pieces, at most `most`. Pieces at the lowest level have a quarter fewer ops.
  static std::vector<Nodes> parts_of(const LayerDag& dag, const Nodes& nodes, std::size_t most,
                                     double imbalance, const std::function<bool()>& stop) {
    struct Open {
      Nodes nodes;
      std::size_t parts;
    };
    const std::size_t target = std::max<std::size_t>(1, most - most / 4);
    std::vector<Nodes> parts;
    std::vector<Open> open;
    open.push_back({nodes, std::clamp<std::size_t>(nodes.size() / target, 2, most)});
    while (!open.empty()) {
      Open now = std::move(open.back());
      open.pop_back();
      if (now.parts == 1 || now.nodes.size() < 2) {
        parts.push_back(std::move(now.nodes));
        continue;
      }
      const std::size_t first = now.parts / 2;
      const double share = static_cast<double>(first) / static_cast<double>(now.parts);
      const auto sides = bisect(induced(dag, now.nodes), share, imbalance * share, stop);
      Open before{{}, first}, behind{{}, now.parts - first};
      for (std::size_t i = 0; i < now.nodes.size(); ++i)
        (sides[i] == 0 ? before : behind).nodes.push_back(now.nodes[i]);
      open.push_back(std::move(behind));
      open.push_back(std::move(before));
    }
    return parts;
  }
};

}  // namespace

std::unique_ptr<Partitioner> make_multilevel() { return std::make_unique<Multilevel>(); }

}  // namespace lowtide::solve::partition
