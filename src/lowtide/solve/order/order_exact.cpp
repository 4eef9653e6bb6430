// Problem: find the order of a piece with the smallest peak.
//
// Idea: the live tensors depend only on the set of computed ops, not on their order. So search the
// sets from the empty one on, always continuing from the set that can be reached with the smallest
// peak (Dijkstra with the maximum in place of the sum). When the full set is taken from the queue,
// its peak is the smallest. This is the dynamic program over downsets (Ahn et al., Serenity, MLSys
// 2020) in best-first order, so sets that only bad orders reach are never visited.
//
// One rule removes most sets: an op that can run without exceeding the peak so far and leaves at
// most as many bytes live as before runs immediately. Running it earlier is never worse: every
// other op then has at most as many bytes live beside it.
//
// Invariant: the `peak` of a set in the queue is that of some order of the set; for a set that was
// taken, of the best order.
//
// Loses: wide pieces. k independent chains of length l have (l+1)^k sets, and the rule does not
// help if every op makes more bytes than it frees; then the search gives up at max_states.
#include "lowtide/solve/order/order_exact.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "lowtide/solve/sequence/in_place.h"

namespace lowtide::solve::order {

namespace {

using Set = std::vector<std::uint64_t>;
struct SetHash {
  std::size_t operator()(const Set& set) const {
    std::uint64_t hash = 0x9e3779b97f4a7c15u;
    for (std::uint64_t word : set) {
      hash = (hash ^ word) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

class Piece {
 public:
  Piece(const Graph& graph, std::span<const OpId> ops)
      : graph_(graph), ops_(ops), first_(graph.op_count()), local_(ops.size()) {
    for (OpId op : ops) first_ = std::min(first_, graph.position(op));
    for (std::size_t i = 0; i < ops.size(); ++i) local_[graph.position(ops[i]) - first_] = i;
  }

  std::size_t size() const { return ops_.size(); }
  OpId op(std::size_t i) const { return ops_[i]; }
  std::size_t local(OpId op) const { return local_[graph_.position(op) - first_]; }

  static bool has(const Set& set, std::size_t i) { return (set[i / 64] >> (i % 64) & 1) != 0; }
  static void add(Set& set, std::size_t i) { set[i / 64] |= std::uint64_t{1} << (i % 64); }

  bool ready(const Set& set, std::size_t i) const {
    const auto before = graph_.predecessors(ops_[i]);
    return std::all_of(before.begin(), before.end(), [&](OpId id) { return done(set, id); });
  }
  Bytes made(std::size_t i) const {
    Bytes sum;
    for (TensorId id : graph_.outputs(ops_[i])) sum += graph_.bytes(id);
    return sum;
  }
  // The bytes of op i while it runs after `set`, beyond those live before it.
  Bytes taken(const Set& set, std::size_t i) const {
    const Bytes all = made(i) + graph_.workspace(ops_[i]);
    return all - overwritten_bytes(graph_, ops_[i], [&](TensorId id) { return ends(set, i, id); });
  }
  // The bytes that are no longer live after op i has run after `set`.
  Bytes freed(const Set& set, std::size_t i) const {
    Bytes sum;
    for (TensorId id : graph_.inputs(ops_[i]))
      if (ends(set, i, id)) sum += graph_.bytes(id);
    for (TensorId id : graph_.outputs(ops_[i]))
      if (ends(set, i, id)) sum += graph_.bytes(id);
    return sum;
  }

  // Of one order of all its ops. `node.peak` may be larger, since peaks below `enough` are not
  // distinguished.
  Bytes peak(std::span<const OpId> order, Bytes start) const {
    Bytes live = start, peak = start;
    Set set((size() + 63) / 64, 0);
    for (OpId op : order) {
      const std::size_t i = local(op);
      peak = std::max(peak, live + taken(set, i));
      live = live + made(i) - freed(set, i);
      add(set, i);
    }
    return peak;
  }

 private:
  // Whether no op needs the tensor after op i has run after `set`.
  bool ends(const Set& set, std::size_t i, TensorId id) const {
    if (!graph_.overwritable(id)) return false;
    const auto readers = graph_.consumers(id);
    return std::all_of(readers.begin(), readers.end(),
                       [&](OpId reader) { return reader == ops_[i] || done(set, reader); });
  }
  // Ops before the piece are computed, ops after it are not.
  bool done(const Set& set, OpId id) const {
    const std::size_t at = graph_.position(id);
    return at < first_ || (at - first_ < size() && has(set, local(id)));
  }

  const Graph& graph_;
  std::span<const OpId> ops_;
  std::size_t first_;  // the position of the piece in the given order, where it is contiguous too
  std::vector<std::size_t> local_;  // from there on: the index in ops_
};

struct Node {
  Bytes peak, live;
  std::size_t count = 0;
  const Set* set = nullptr;
  // Smallest peak first; of equal ones the largest set, which is nearest to the end.
  bool operator>(const Node& other) const {
    return std::tuple(peak, other.count, live) > std::tuple(other.peak, count, other.live);
  }
};

struct Reached {
  Bytes peak;
  const Set* from = nullptr;
  std::vector<std::uint32_t> steps;  // ops run between `from` and here
  bool taken = false;
};

}  // namespace

std::optional<ExactOrder> exact_order(const Graph& graph, std::span<const OpId> piece_ops,
                                      Bytes start, Bytes enough, std::size_t max_states,
                                      Limits& limits) {
  const Piece piece(graph, piece_ops);
  std::unordered_map<Set, Reached, SetHash> reached;
  std::priority_queue<Node, std::vector<Node>, std::greater<>> queue;
  const auto cost = static_cast<std::int64_t>(1 + piece.size() / 4);

  // Runs the ops that may run immediately, then inserts the set.
  const auto enter = [&](Set set, std::size_t count, Bytes peak, Bytes live, const Set* from,
                         std::vector<std::uint32_t> steps) {
    for (bool again = true; again;) {
      again = false;
      limits.spend(cost);
      for (std::size_t i = 0; i < piece.size(); ++i) {
        if (Piece::has(set, i) || !piece.ready(set, i)) continue;
        const Bytes made = piece.made(i), freed = piece.freed(set, i);
        if (made > freed || live + piece.taken(set, i) > peak) continue;
        live = live + made - freed;
        Piece::add(set, i);
        steps.push_back(static_cast<std::uint32_t>(i));
        ++count;
        again = true;
      }
    }
    const auto [at, fresh] = reached.try_emplace(std::move(set));
    if (!fresh && (at->second.taken || at->second.peak <= peak)) return;
    at->second = {peak, from, std::move(steps), false};
    queue.push({peak, live, count, &at->first});
  };
  enter(Set((piece.size() + 63) / 64, 0), 0, start, start, nullptr, {});
  while (!queue.empty()) {
    const Node node = queue.top();
    queue.pop();
    Reached& here = reached.at(*node.set);
    if (here.taken || here.peak != node.peak) continue;
    here.taken = true;
    if (node.count == piece.size()) {
      ExactOrder result;
      for (const Set* at = node.set; at != nullptr; at = reached.at(*at).from) {
        const auto& steps = reached.at(*at).steps;
        for (auto step = steps.rbegin(); step != steps.rend(); ++step)
          result.order.push_back(piece.op(*step));
      }
      std::reverse(result.order.begin(), result.order.end());
      result.peak = piece.peak(result.order, start);
      return result;
    }
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (Piece::has(*node.set, i) || !piece.ready(*node.set, i)) continue;
      if (limits.spend(cost) || reached.size() > max_states) return std::nullopt;
      Set set = *node.set;
      const Bytes during = node.live + piece.taken(*node.set, i);
      const Bytes after = node.live + piece.made(i) - piece.freed(set, i);
      Piece::add(set, i);
      enter(std::move(set), node.count + 1, std::max({node.peak, during, enough}), after, node.set,
            {static_cast<std::uint32_t>(i)});
    }
  }
  return std::nullopt;
}

}  // namespace lowtide::solve::order
