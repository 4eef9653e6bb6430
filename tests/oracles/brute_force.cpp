// Problem: the least duration within a budget, and the smallest peak, over all schedules.
// Idea: what may still happen depends on the set of live tensors and the set of computed ops alone
// (which tensors have been mutated follows from the latter, and in the given order it is a prefix).
// So a schedule is a path through pairs of sets: Dijkstra's, with the pair (duration, peak) as the
// length, compared in that order. Extending two paths by the same step keeps their order, since the
// sum is compared before the maximum; with all times 0 the same search finds the narrowest path.
// Sparing frees: if a tensor is freed at all, then it may as well be freed right after its last
// reader (or its maker, if nothing reads it): in between nobody needs it, and fewer live bytes and
// fewer live tensors forbid nothing. Likewise one that is live at the end without need. So only
// what an op reads or makes is a candidate for a free, right after it; and a tensor that no op may
// read any more and that the graph does not keep goes at once. Invariant: a settled node's label is
// the smallest of all paths to it within the budget. Loses: exponential in tensors and ops; refuses
// more than kMostOps and kMostTensors.
#include "oracles/brute_force.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <unordered_map>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide::oracle {

namespace {

using Mask = std::uint64_t;
constexpr std::size_t kMostBits = 57;  // with kMostOps they fill the key of a node

constexpr Mask bit(std::size_t i) { return Mask{1} << i; }

struct OpRules {
  Mask needs = 0, makes = 0;  // tensors that come and go
  Mask after = 0;             // ops that must have been computed
  Mask barred_by = 0;         // ops after which it is illegal
  Bytes made_bytes, workspace;
  Ticks time;
  bool again = true;
  // Of each output that can take the place of a tensor that comes and goes: those tensors.
  struct Place {
    Mask inputs;
    Bytes bytes;
  };
  std::vector<Place> in_place;
};

// Tensors that come and go have a bit; inputs that are not releasable are always there.
struct Rules {
  std::vector<OpRules> ops;
  std::vector<TensorId> tensors;  // by bit
  std::vector<Bytes> bytes;
  std::vector<Mask> readers;
  Mask kept = 0;
  Mask start = 0;
  Bytes always;
  std::vector<std::size_t> turn;  // the op at each place of the given order; empty: any order

  Rules(const Graph& graph, Order order);
  // What the op need not take if these die with it.
  static Bytes saved(const OpRules& op, Mask gone) {
    Bytes sum;
    for (const OpRules::Place& place : op.in_place)
      if ((place.inputs & gone) != 0) sum += place.bytes;
    return sum;
  }
  // Of these the ones that it then overwrites: one for each place.
  static Mask overwritten(const OpRules& op, Mask gone) {
    Mask over = 0;
    for (const OpRules::Place& place : op.in_place) {
      const Mask candidates = place.inputs & gone;
      over |= candidates & -candidates;
    }
    return over;
  }
  Bytes live_bytes(Mask live) const {
    Bytes sum = always;
    for (; live != 0; live &= live - 1)
      sum += bytes[static_cast<std::size_t>(std::countr_zero(live))];
    return sum;
  }
};

Rules::Rules(const Graph& graph, Order order) {
  std::vector<Mask> bit_of(graph.tensor_count(), 0);
  std::size_t made = 0;
  always = graph.resident();
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    const bool is_input = !graph.producer(id).valid();
    if (is_input && (!graph.tensor(id).releasable || graph.tensor(id).stays)) {
      always += graph.tensor(id).bytes;
      continue;
    }
    made += is_input ? 0 : 1;
    if (tensors.size() == kMostBits) break;
    bit_of[i] = bit(tensors.size());
    if (is_input) start |= bit_of[i];
    tensors.push_back(id);
    bytes.push_back(graph.tensor(id).bytes);
  }
  if (graph.op_count() > kMostOps || made > kMostTensors || tensors.size() == kMostBits)
    throw InputError("", "the graph is too large for brute force");
  for (TensorId id : graph.outputs()) kept |= bit_of[id.index()];

  std::vector<Mask> mutators(graph.tensor_count(), 0);
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    for (TensorId id : graph.mutates(OpId(i))) mutators[id.index()] |= bit(i);
  readers.assign(tensors.size(), 0);
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId id(i);
    OpRules op;
    for (TensorId input : graph.inputs(id)) {
      op.needs |= bit_of[input.index()];
      op.barred_by |= mutators[input.index()];
    }
    for (TensorId output : graph.outputs(id)) {
      op.makes |= bit_of[output.index()];
      op.made_bytes += graph.tensor(output).bytes;
      if ((kept & bit_of[output.index()]) != 0) op.barred_by |= mutators[output.index()];
    }
    for (OpId before : graph.after(id)) op.after |= bit(before.index());
    for (std::size_t k = 0; k < tensors.size(); ++k)
      if ((op.needs & bit(k)) != 0) readers[k] |= bit(i);
    for (const TensorId output : graph.outputs(id)) {
      Mask over = 0;
      for (const InPlacePair& pair : graph.in_place(id))
        if (pair.output == output) over |= bit_of[pair.input.index()] & ~kept;
      if (over != 0) op.in_place.push_back({over, graph.tensor(output).bytes});
    }
    op.workspace = graph.op(id).workspace;
    op.time = graph.op(id).time;
    op.again = graph.op(id).recomputable && graph.op(id).kind != kBarrierKind &&
               !graph.outputs(id).empty();
    ops.push_back(op);
  }
  if (order == Order::given)
    for (OpId id : graph.order()) turn.push_back(id.index());
}

struct Label {
  Ticks duration;
  Bytes peak;
  auto operator<=>(const Label&) const = default;
};

struct Node {
  Mask live = 0, computed = 0;
  Label label;
  std::size_t parent = SIZE_MAX;
  std::size_t op = SIZE_MAX;  // computed on the way here, before the frees; SIZE_MAX: frees alone
  bool settled = false;
};

class Search {
 public:
  Search(const Rules& rules, Bytes budget, Frees frees, bool timeless)
      : rules_(rules), budget_(budget), frees_(frees), timeless_(timeless) {}

  // The end of the best path; null if there is none.
  const Node* run() {
    const Bytes start_peak = rules_.live_bytes(rules_.start);
    if (start_peak > budget_) return nullptr;
    reach({without_dead(rules_.start, 0), 0, {Ticks(0), start_peak}, SIZE_MAX, SIZE_MAX, false});
    while (!queue_.empty()) {
      const std::size_t at = queue_.top().second;
      queue_.pop();
      if (nodes_[at].settled) continue;
      nodes_[at].settled = true;
      if (is_end(nodes_[at])) return &nodes_[at];
      expand(at);
    }
    return nullptr;
  }

  Plan plan_to(const Node& end) const {
    Plan plan;
    std::vector<Step> reversed;
    const Node* node = &end;
    while (true) {
      const bool first = node->parent == SIZE_MAX;
      const Mask before = first ? rules_.start : nodes_[node->parent].live;
      const Mask made = node->op == SIZE_MAX ? 0 : rules_.ops[node->op].makes;
      const Mask all_gone = (before | made) & ~node->live;
      const Mask over =
          node->op == SIZE_MAX ? 0 : Rules::overwritten(rules_.ops[node->op], all_gone);
      for (Mask gone = all_gone & ~over; gone != 0; gone &= gone - 1)
        reversed.push_back(
            Step::free(rules_.tensors[static_cast<std::size_t>(std::countr_zero(gone))]));
      if (node->op != SIZE_MAX) {
        std::vector<TensorId> ids;
        for (Mask left = over; left != 0; left &= left - 1)
          ids.push_back(rules_.tensors[static_cast<std::size_t>(std::countr_zero(left))]);
        plan.add_compute(OpId(node->op), ids);
        reversed.push_back(plan.steps.back());
      }
      if (first) break;
      node = &nodes_[node->parent];
    }
    plan.steps.assign(reversed.rbegin(), reversed.rend());
    return plan;
  }

 private:
  bool may_compute(std::size_t i, Mask live, Mask computed) const {
    const OpRules& op = rules_.ops[i];
    const bool again = (computed & bit(i)) != 0;
    if (again && !op.again) return false;
    if (!again && !rules_.turn.empty() &&
        rules_.turn[static_cast<std::size_t>(std::popcount(computed))] != i)
      return false;
    return (op.needs & ~live) == 0 && (op.makes & live) == 0 && (op.after & ~computed) == 0 &&
           (op.barred_by & computed) == 0;
  }

  bool may_ever_read(std::size_t i, Mask computed) const {
    const OpRules& op = rules_.ops[i];
    return (op.barred_by & computed) == 0 && ((computed & bit(i)) == 0 || op.again);
  }

  Mask without_dead(Mask live, Mask computed) const {
    if (frees_ == Frees::anywhere) return live;
    Mask rest = live;
    for (Mask left = live & ~rules_.kept; left != 0; left &= left - 1) {
      const auto t = static_cast<std::size_t>(std::countr_zero(left));
      bool useful = false;
      for (Mask ops = rules_.readers[t]; ops != 0 && !useful; ops &= ops - 1)
        useful = may_ever_read(static_cast<std::size_t>(std::countr_zero(ops)), computed);
      if (!useful) rest &= ~bit(t);
    }
    return rest;
  }

  bool is_end(const Node& node) const {
    return node.computed == bit(rules_.ops.size()) - 1 && (rules_.kept & ~node.live) == 0;
  }

  void expand(std::size_t at) {
    const Node from = nodes_[at];
    for (std::size_t i = 0; i < rules_.ops.size(); ++i) {
      if (!may_compute(i, from.live, from.computed)) continue;
      const OpRules& op = rules_.ops[i];
      Node to;
      to.computed = from.computed | bit(i);
      const Bytes most = rules_.live_bytes(from.live) + op.made_bytes + op.workspace;
      to.label.duration = timeless_ ? Ticks(0) : from.label.duration + op.time;
      to.parent = at;
      to.op = i;
      const Mask live = without_dead(from.live | op.makes, to.computed);
      Mask candidates = live & (op.needs | op.makes);
      if (frees_ == Frees::anywhere) {
        candidates = 0;
        for (const OpRules::Place& place : op.in_place) candidates |= place.inputs;
      }
      // Every subset of the candidates, the empty one last.
      for (Mask gone = candidates;; gone = (gone - 1) & candidates) {
        to.live = live & ~gone;
        const Mask died = from.live & ~to.live;
        to.label.peak = std::max(from.label.peak, most - Rules::saved(op, died));
        // Anywhere: what is freed after the op is a step of its own.
        const bool one_step = frees_ == Frees::sparing || Rules::overwritten(op, died) == died;
        if (to.label.peak <= budget_ && one_step) reach(to);
        if (gone == 0) break;
      }
    }
    if (frees_ == Frees::sparing) return;
    for (Mask left = from.live; left != 0; left &= left - 1) {
      Node to = from;
      to.live &= ~(left & -left);
      to.parent = at;
      to.op = SIZE_MAX;
      to.settled = false;
      reach(to);
    }
  }

  void reach(const Node& node) {
    const Mask key = (node.live << kMostOps) | node.computed;
    const auto [known, fresh] = index_.try_emplace(key, nodes_.size());
    if (fresh) {
      nodes_.push_back(node);
    } else {
      Node& old = nodes_[known->second];
      if (old.settled || old.label <= node.label) return;
      old = node;
    }
    queue_.emplace(node.label, known->second);
  }

  const Rules& rules_;
  Bytes budget_;
  Frees frees_;
  bool timeless_;
  std::vector<Node> nodes_;
  std::unordered_map<Mask, std::size_t> index_;
  using Entry = std::pair<Label, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

std::optional<Schedule> fastest(const Rules& rules, Bytes budget, Frees frees) {
  Search search(rules, budget, frees, false);
  const Node* end = search.run();
  if (end == nullptr) return std::nullopt;
  return Schedule{end->label.peak, end->label.duration, search.plan_to(*end)};
}

}  // namespace

std::optional<Schedule> fastest(const Graph& graph, Order order, Bytes budget, Frees frees) {
  return fastest(Rules(graph, order), budget, frees);
}

Bytes smallest_peak(const Graph& graph, Order order, Frees frees) {
  const Rules rules(graph, order);
  const Node* end = nullptr;
  Search search(rules, Bytes::max(), frees, true);
  end = search.run();
  check(end != nullptr, "every graph has a schedule: all ops once in its own order, no frees");
  return end->label.peak;
}

std::vector<Schedule> all_tradeoffs(const Graph& graph, Order order) {
  const Rules rules(graph, order);
  std::vector<Schedule> curve;
  Bytes budget = Bytes::max();
  while (auto next = fastest(rules, budget, Frees::sparing)) {
    budget = next->peak - Bytes(1);
    curve.push_back(std::move(*next));
  }
  return curve;
}

std::optional<Ticks> least_duration(const std::vector<Schedule>& curve, Bytes budget) {
  for (const Schedule& schedule : curve)
    if (schedule.peak <= budget) return schedule.duration;
  return std::nullopt;
}

std::optional<Bytes> least_peak(const std::vector<Schedule>& curve, Ticks limit) {
  std::optional<Bytes> least;
  for (const Schedule& schedule : curve)
    if (schedule.duration <= limit) least = schedule.peak;
  return least;
}

}  // namespace lowtide::oracle
