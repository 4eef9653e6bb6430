// Proposes regions along axes, from the largest tensors, the tensors held from forward to
// backward, and the steps with most memory.
#include <algorithm>
#include <map>
#include <set>

#include "lowtide/graph/dominators.h"
#include "lowtide/rewrite/candidate.h"
#include "lowtide/rewrite/convex.h"
#include "lowtide/rewrite/profile.h"

namespace lowtide::rewrite {

namespace {

using Kind = Candidate::Kind;

constexpr std::size_t kHotSpots = 3, kLevels = 4;
// A sum over parts is large from this share of the region's largest split tensor on.
constexpr std::int64_t kLargeSum = 16;

class Proposer {
 public:
  Proposer(const Graph& graph, const std::function<bool()>& stops)
      : graph_(graph), stops_(stops), profile_(profile_of(graph)) {}

  std::vector<Candidate> propose() {
    const auto all = families(graph_, stops_);
    for (const Family& family : all) add(family, in_order(carried(family)), Kind::reach);
    for (const Family& family : all) heads(family);
    for (const Family& family : all) suffixes(family);
    for (const Family& family : all) hot_spots(family);
    return std::move(found_);
  }

 private:
  static Members carried(const Family& family) {
    Members members;
    for (const auto& carry : family.reach.carries) members.push_back(carry.has_value());
    return members;
  }

  std::vector<OpId> in_order(const Members& members) const {
    std::vector<OpId> ops;
    for (const OpId op : graph_.order())
      if (members[op.index()] != 0) ops.push_back(op);
    return ops;
  }

  void add(const Family& family, std::span<const OpId> ops, Kind kind) {
    if (ops.size() < 2 || (stops_ && stops_())) return;
    auto candidate = shape_region(graph_, family, ops);
    if (!candidate) return;
    const bool whole = 2 * candidate->ops.size() > graph_.op_count();
    candidate->kind = kind == Kind::reach && whole ? Kind::whole_graph : kind;
    if (!seen_.insert(candidate->ops).second) return;
    found_.push_back(*candidate);
    if (whole) return;
    const auto rest = without_large_sums(family, candidate->ops);
    if (rest.size() < 2 || rest.size() == candidate->ops.size()) return;
    auto made = shape_region(graph_, family, rest);
    if (!made || !seen_.insert(made->ops).second) return;
    made->kind = kind;
    made->sums = false;
    found_.push_back(std::move(*made));
  }

  // Every part adds to a sum, at a cost proportional to the size of the sum.
  std::vector<OpId> without_large_sums(const Family& family, std::span<const OpId> ops) const {
    Bytes largest(0);
    for (const OpId op : ops)
      for (const TensorId made : graph_.outputs(op))
        if (is_cut(family, made)) largest = std::max(largest, graph_.bytes(made));
    const auto sums = [&](OpId op) {
      return std::ranges::any_of(graph_.outputs(op), [&](TensorId made) {
        return family.reach.tensors[made.index()].state == dimensions::State::partial &&
               graph_.bytes(made).count() > largest.count() / kLargeSum;
      });
    };
    std::vector<OpId> rest;
    std::ranges::remove_copy_if(ops, std::back_inserter(rest), sums);
    return rest;
  }

  // The ops that touch the largest split tensor, or one at least half as large, and the ops between
  // them.
  void heads(const Family& family) {
    Bytes largest(0);
    for (const TensorId id : AllIds<TensorId>(graph_.tensor_count()))
      if (is_cut(family, id)) largest = std::max(largest, graph_.bytes(id));
    Members touching(graph_.op_count(), 0);
    for (const TensorId id : AllIds<TensorId>(graph_.tensor_count())) {
      if (!is_cut(family, id) || graph_.bytes(id).count() < largest.count() / 2) continue;
      touching[graph_.producer(id).index()] = 1;
      for (const OpId op : graph_.consumers(id)) touching[op.index()] = 1;
    }
    add(family, in_order(hull(graph_, touching)), Kind::head);
  }

  bool is_cut(const Family& family, TensorId id) const {
    return !graph_.is_input(id) &&
           family.reach.tensors[id.index()].state == dimensions::State::split;
  }

  // From some op of the order on, up to the last reader of split tensors made before the middle:
  // the end of the forward and the beginning of the backward. The middle is the position with most
  // kept bytes. Other tensors do not count: the loss is read at the very end.
  void suffixes(const Family& family) {
    const auto order = graph_.order();
    const std::size_t middle = profile_.fullest;
    for (const std::size_t eighths : {6u, 4u, 2u, 1u}) {
      const std::size_t first = middle - middle * eighths / 8;
      std::size_t last = middle;
      for (std::size_t at = first; at <= middle && at < order.size(); ++at)
        for (const TensorId made : graph_.outputs(order[at]))
          if (is_cut(family, made))
            for (const OpId reader : graph_.consumers(made))
              last = std::max(last, graph_.position(reader));
      last = std::min(last, order.size() - 1);
      add(family, order.subspan(first, last + 1 - first), Kind::suffix);
    }
  }

  // The ops dominated by a dominator of a hot spot, and the module that contains the spot.
  void hot_spots(const Family& family) {
    for (const std::size_t at : profile_.fullest_by_share(kHotSpots)) {
      const OpId spot = graph_.order()[at];
      OpId ruler = spot;
      for (std::size_t level = 0; level < kLevels && ruler.valid(); ++level) {
        // Twice as far up each time: neighbours in a chain give nearly equal regions.
        for (std::size_t up = 0; up < (std::size_t{1} << level) && ruler.valid(); ++up)
          ruler = tree_.parent(ruler);
        if (!ruler.valid()) break;
        std::vector<OpId> ruled;
        for (const OpId op : graph_.order())
          if (tree_.dominates(ruler, op)) ruled.push_back(op);
        if (2 * ruled.size() < graph_.op_count()) add(family, ruled, Kind::hot_spot);
      }
      const std::string& origin = graph_.op(spot).origin;
      if (origin.empty()) continue;
      std::vector<OpId> module;
      for (const OpId op : graph_.order())
        if (graph_.op(op).origin == origin && graph_.op(op).phase == graph_.op(spot).phase)
          module.push_back(op);
      add(family, module, Kind::module);
    }
  }

  const Graph& graph_;
  const std::function<bool()>& stops_;
  const Profile profile_;
  const DominatorTree tree_ = dominators(graph_);
  std::vector<Candidate> found_;
  std::set<std::vector<OpId>> seen_;
};

}  // namespace

std::string describe(const Graph& graph, const Candidate& candidate) {
  const auto kind = [&]() -> std::string {
    switch (candidate.kind) {
      case Kind::whole_graph: return "whole graph";
      case Kind::reach: return "reach";
      case Kind::head: return "head";
      case Kind::suffix: return "suffix";
      case Kind::ruled: return "ruled";
      case Kind::hot_spot: return "hot spot";
      case Kind::module: return "module " + graph.op(candidate.ops.front()).origin;
    }
    return "?";
  };
  return kind() + (candidate.sums ? "" : " without sums");
}

std::vector<Candidate> propose(const Graph& graph, const std::function<bool()>& stops) {
  return Proposer(graph, stops).propose();
}

}  // namespace lowtide::rewrite
