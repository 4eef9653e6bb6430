// Problem: find the optimal plan of a small graph, or prove that there is none.
//
// Idea: the possible continuations depend on the set of computed ops and the set of live tensors.
// So a schedule is a path through pairs of sets. First computations are required in any case and
// cost nothing; a recomputation costs its time. Dijkstra's algorithm finds the cheapest path. Of
// equal paths the one with most computed ops comes first, so that without recomputation the search
// goes straight to the end.
//
// A tensor that is freed before its next use or recomputation may be freed right after the op that
// made or read it last. So after each op one subset of its inputs and outputs is freed, and nothing
// is freed elsewhere; tensors that no op may read any more are always freed. The op overwrites all
// freed inputs that it can.
//
// Source: the configurations of a pebble game, searched as in R. Sethi, "Complete register
// allocation problems", SIAM J. Comput. 1975; with bytes, times and ops in place.
//
// Invariant: the extra time of a pair that is taken from the queue is the least of all paths to it
// within the budget.
//
// Loses: exponential; beyond about ten ops it runs out of states.
#include "lowtide/solve/exhaustive/exhaustive.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "lowtide/solve/exhaustive/rules.h"

namespace lowtide::solve::exhaustive {

namespace {

constexpr std::size_t kMostStates = 400'000;

struct State {
  Mask computed = 0, live = 0;
  bool operator==(const State&) const = default;
};

struct StateHash {
  std::size_t operator()(const State& state) const {
    std::uint64_t hash = (state.live ^ 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    hash = (hash ^ (hash >> 32) ^ state.computed) * 0xc4ceb9fe1a85ec53u;
    return hash ^ (hash >> 29);
  }
};

constexpr std::uint32_t kStart = UINT32_MAX;

struct Node {
  State state;
  Ticks extra;  // time of recomputations so far
  std::uint32_t parent = kStart;
  std::uint32_t op = 0;  // computed between parent and this node
  bool taken = false;
};

class Run {
 public:
  Run(const Problem& problem, Context& context)
      : problem_(problem), graph_(problem.graph), context_(context), rules_(problem) {}

  void run() {
    if (!rules_.fits(rules_.start)) return;  // the floor proves that already
    reach({0, rules_.without_dead(rules_.start, 0)}, Ticks(0), kStart, 0);
    while (!queue_.empty()) {
      const auto [extra, owed, at] = queue_.top();
      queue_.pop();
      if (nodes_[at].taken || nodes_[at].extra != extra) continue;
      nodes_[at].taken = true;
      // The cheapest remaining entry is a lower bound on every path to the end.
      context_.raise_bound(graph_.total_time() + extra);
      if (context_.done()) return;
      if (owed == 0 && rules_.ends(nodes_[at].state.live)) {
        context_.offer_sequence(sequence_to(at));
        return;
      }
      if (!expand(at) || nodes_.size() > kMostStates) return;
    }
    context_.raise_floor(problem_.budget + Bytes(1));
  }

 private:
  // Returns false if a limit ends it.
  bool expand(std::uint32_t at) {
    const State from = nodes_[at].state;
    const Ticks extra = nodes_[at].extra;
    for (std::size_t i = 0; i < rules_.ops.size(); ++i) {
      if (!rules_.may_compute(i, from.computed, from.live)) continue;
      const OpRules& op = rules_.ops[i];
      const bool again = (from.computed & bit(i)) != 0;
      const Mask computed = from.computed | bit(i);
      const Mask live = rules_.without_dead(from.live | op.makes, computed);
      const Mask touched = live & (op.needs | op.makes);
      const Mask choice = touched & ~rules_.irreplaceable(touched, computed);
      const Bytes most = rules_.live_bytes(from.live) + op.bytes;
      const Ticks then = again ? extra + op.time : extra;
      // Every subset of the choice, the empty one last.
      for (Mask gone = choice;; gone = (gone - 1) & choice) {
        if (context_.limits().spend()) return false;
        const Mask left = live & ~gone;
        const Bytes during = most - op.overwritten(from.live & ~left);
        const bool for_nothing = again && (left & op.makes) == 0;
        if (during <= problem_.budget && !for_nothing)
          reach({computed, left}, then, at, static_cast<std::uint32_t>(i));
        if (gone == 0) break;
      }
    }
    return true;
  }

  void reach(const State& state, Ticks extra, std::uint32_t parent, std::uint32_t op) {
    const auto [known, fresh] =
        index_.try_emplace(state, static_cast<std::uint32_t>(nodes_.size()));
    const std::uint32_t at = known->second;
    if (fresh) {
      nodes_.push_back({state, extra, parent, op});
    } else {
      if (nodes_[at].taken || nodes_[at].extra <= extra) return;
      nodes_[at] = {state, extra, parent, op};
    }
    const auto owed = static_cast<int>(rules_.ops.size()) - std::popcount(state.computed);
    queue_.emplace(extra, owed, at);
  }

  std::vector<OpId> sequence_to(std::uint32_t at) const {
    std::vector<OpId> sequence;
    for (; nodes_[at].parent != kStart; at = nodes_[at].parent)
      sequence.emplace_back(nodes_[at].op);
    return {sequence.rbegin(), sequence.rend()};
  }

  const Problem& problem_;
  const Graph& graph_;
  Context& context_;
  Rules rules_;
  std::vector<Node> nodes_;
  std::unordered_map<State, std::uint32_t, StateHash> index_;
  using Entry = std::tuple<Ticks, int, std::uint32_t>;  // extra time, ops not computed yet, node
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

class Exhaustive final : public Solver {
 public:
  std::string_view name() const override { return "exhaustive"; }
  std::string_view summary() const override {
    return "exact, for graphs of about a dozen ops: a shortest path over all sets of live tensors";
  }
  Traits traits() const override { return {Trait::constructive}; }
  Support supports(const Problem& problem) const override {
    if (problem.machine) return Support::no("it recomputes only and cannot use a link to the host");
    if (!Rules::hold(problem.graph))
      return Support::no("it looks at every set of ops and of tensors, and more than " +
                         std::to_string(kMostOps) + " ops or " + std::to_string(kMostTensors) +
                         " tensors are too many");
    return least_time_only(problem);
  }

  Outcome solve(const Problem& problem, Context& context) const override {
    for (const Plan& start : context.starts()) context.offer(start);
    context.offer_sequence(problem.graph.order());
    context.limits().spend(static_cast<std::int64_t>(problem.graph.op_count()));
    if (!context.done()) Run(problem, context).run();
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<Solver> make_exhaustive() { return std::make_unique<Exhaustive>(); }

}  // namespace lowtide::solve::exhaustive
