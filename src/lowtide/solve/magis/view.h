// The transformed graph of a fission, without making it: sizes and times of parts on the base's own
// ops. Private to `magis`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lowtide/device/part_price.h"
#include "lowtide/plan/machine.h"
#include "lowtide/rewrite/fission_tree.h"
#include "lowtide/rewrite/priced_region.h"
#include "lowtide/solve/magis/tasks.h"

namespace lowtide::solve::magis {

// A tensor of the base; indices from the tensor count on are tensors that a region joins.
using Slot = std::uint32_t;

struct RegionOfView {
  std::size_t node = 0;  // of the tree
  std::int64_t parts = 0;
  std::size_t first = 0, last = 0;            // places in the order, inclusive
  std::vector<Slot> held;                     // read by the parts, needed until the last has run
  std::vector<std::pair<Slot, Slot>> joined;  // a part's, and what is put together
  std::int64_t together = 0;                  // bytes of what is being put together
  std::int64_t joining = 0;                   // ticks
};

struct View {
  static constexpr std::int32_t kOutside = -1;

  rewrite::Fission fission;
  std::vector<OpId> order;                      // regions stand together
  std::vector<std::size_t> place;               // by op, in the order
  std::vector<std::size_t> deadline;            // by op: no computation again behind this place
  std::vector<std::int32_t> region;             // by op, index into `regions`
  std::vector<RegionOfView> regions;            // by their places
  std::vector<std::int64_t> time;               // by op, of all parts
  std::vector<std::int64_t> workspace;          // by op, of a part
  std::vector<std::uint64_t> label;             // by op: what it is, whatever its index
  std::vector<std::vector<Slot>> reads, makes;  // by op
  std::vector<TensorId> tensor;                 // by slot
  std::vector<std::int32_t> home;               // by slot: the region in which it lives
  std::vector<std::int64_t> bytes;              // by slot, of a part
  std::vector<std::int64_t> out, in;            // by slot: ticks on the links, of all parts
};

// A stretch of the view as tasks, and the op of each task.
std::pair<Tasks, std::vector<OpId>> tasks_of(const Graph& graph, const View& view,
                                             std::size_t first, std::size_t last);
// Reorders the ops of a stretch; no op leaves its region.
void reorder(const Graph& graph, View& view, std::size_t first, std::span<const OpId> run);

class Views {
 public:
  // The arguments, the tree and the machine must outlive it. The machine may be null.
  Views(const Graph& graph, const rewrite::FissionTree& tree, const PartPricer* pricer,
        const Machine* machine);

  // Null if the fission is not legal, or if it has a node with an enabled ancestor, which no view
  // can represent. The price of a node in a number of parts is computed once.
  std::unique_ptr<View> view(const rewrite::Fission& fission, const std::vector<OpId>& order);

 private:
  const rewrite::RegionInParts* region(std::size_t node, std::int64_t parts);
  bool put_together(View& view) const;
  void fill(View& view, RegionOfView& at, const rewrite::RegionInParts& region,
            std::int32_t index) const;
  void finish(View& view) const;

  const Graph& graph_;
  const rewrite::FissionTree& tree_;
  const PartPricer* pricer_;
  const Machine* machine_;
  std::vector<std::uint64_t> labels_;
  std::map<std::pair<std::size_t, std::int64_t>, std::unique_ptr<const rewrite::RegionInParts>>
      priced_;  // null: refused
};

}  // namespace lowtide::solve::magis
