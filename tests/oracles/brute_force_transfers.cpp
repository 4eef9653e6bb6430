// Problem: the least duration within a budget over all schedules with transfers.
// Idea: what may still happen depends on four sets (live tensors, computed ops, valid host copies,
// space taken on the host) and on clocks: those of the lanes, and of each live tensor when it
// exists, when its last copy ends and when the last network op that reads or makes it ends. Every
// clock only ever enters a maximum, so of two states with the same sets the one that is later in no
// clock is at least as good: A* over states, with the clocks of the compute and the network lane
// and what each has still to compute first as the estimate, keeping for each four sets the states
// that no other one dominates. Clocks are rounded where that changes nothing: an existence that
// neither the compute lane nor the lane out has yet to wait for, an ended copy. Sparing: a free may
// as well wait until the step that needs its bytes, or its tensor's absence: it takes no time,
// holds the compute lane no longer than before, and starts no copy later. So frees come only right
// before a computation or a prefetch, and of those no more than it needs; of a tensor that an op
// overwrites without need the same holds. A second copy of what the host has already, a prefetch of
// what nothing may read and the end does not want, and a repeated computation of the same kind only
// lengthen a schedule. Loses: exponential in tensors and ops.
#include "oracles/brute_force_transfers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide::oracle {

namespace {

using Mask = std::uint32_t;
using Clock = std::int64_t;

constexpr Mask bit(std::size_t i) { return Mask{1} << i; }

template <class Body>
void for_each(Mask mask, Body body) {
  for (; mask != 0; mask &= mask - 1) body(static_cast<std::size_t>(std::countr_zero(mask)));
}

struct OpRules {
  Mask reads = 0, makes = 0, mutates = 0;  // tensors
  Mask after = 0;                          // ops that must have been computed
  Mask barred_by = 0;                      // ops after which it is illegal
  Bytes workspace;
  Clock time = 0;
  bool again = true, barrier = false, network = false;
  std::vector<std::pair<Mask, Mask>> in_place;  // input and output, a bit each
};

struct Rules {
  std::vector<OpRules> ops;
  std::vector<Bytes> bytes;
  std::vector<Clock> out, in;  // what a copy takes
  std::vector<Mask> readers;   // ops
  std::vector<std::size_t> turn;
  Mask start = 0, on_host = 0, stays = 0;
  Mask free_uncopied = 0;  // may be freed without a host copy
  Mask end_live = 0;       // must be live at the end
  Bytes resident;
  std::optional<Bytes> host_budget;

  Rules(const Graph& graph, const Link& link);
  Bytes sum(Mask mask) const {
    Bytes total;
    for_each(mask, [&](std::size_t t) { total += bytes[t]; });
    return total;
  }
};

Clock copy_time(const lowtide::Link& link, Bytes bytes) {
  const Clock product = bytes.count() * link.ticks.count();
  return link.latency.count() + (product + link.bytes.count() - 1) / link.bytes.count();
}

Rules::Rules(const Graph& graph, const Link& link)
    : resident(graph.resident()), host_budget(link.host_budget) {
  if (graph.op_count() > kMostOpsWithTransfers || graph.tensor_count() > kMostTensorsWithTransfers)
    throw InputError("", "the graph is too large for brute force with transfers");
  for (std::size_t t = 0; t < graph.tensor_count(); ++t) {
    const TensorId id(t);
    const Tensor& tensor = graph.tensor(id);
    const bool is_input = !graph.producer(id).valid();
    bytes.push_back(tensor.bytes);
    out.push_back(copy_time(link.machine.device_to_host, tensor.bytes));
    in.push_back(copy_time(link.machine.host_to_device, tensor.bytes));
    if (!is_input) {
      free_uncopied |= bit(t);
    } else if (tensor.home == Home::host) {
      on_host |= bit(t);
    } else {
      start |= bit(t);
      if (tensor.releasable && !tensor.stays)
        free_uncopied |= bit(t);
      else
        end_live |= bit(t);
    }
    if (is_input && tensor.stays) stays |= bit(t);
  }
  for (TensorId id : graph.outputs()) end_live |= bit(id.index());
  std::vector<Mask> mutators(graph.tensor_count(), 0);
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    for (TensorId id : graph.mutates(OpId(i))) mutators[id.index()] |= bit(i);
  readers.assign(graph.tensor_count(), 0);
  Mask outputs = 0;
  for (TensorId id : graph.outputs()) outputs |= bit(id.index());
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId id(i);
    OpRules op;
    for (TensorId t : graph.inputs(id)) {
      op.reads |= bit(t.index());
      op.barred_by |= mutators[t.index()];
      readers[t.index()] |= bit(i);
    }
    for (TensorId t : graph.outputs(id)) {
      op.makes |= bit(t.index());
      if ((outputs & bit(t.index())) != 0) op.barred_by |= mutators[t.index()];
    }
    for (TensorId t : graph.mutates(id)) op.mutates |= bit(t.index());
    for (OpId before : graph.after(id)) op.after |= bit(before.index());
    op.barrier = graph.op(id).kind == kBarrierKind;
    op.network = graph.op(id).lane == Lane::network;
    op.workspace = graph.op(id).workspace;
    op.time = graph.op(id).time.count();
    op.again = graph.op(id).recomputable && !op.barrier && op.makes != 0;
    if (!op.barrier)
      for (const InPlacePair& pair : graph.in_place(id)) {
        const Mask input = bit(pair.input.index());
        if ((input & free_uncopied & ~outputs) != 0)
          op.in_place.emplace_back(input, bit(pair.output.index()));
      }
    ops.push_back(op);
  }
  if (link.order == Order::given)
    for (OpId id : graph.order()) turn.push_back(id.index());
}

// Which steps came last on the way to a state: the frees first.
struct Move {
  Mask frees = 0;
  StepKind kind = StepKind::free;  // `free`: nothing but the frees
  std::size_t index = 0;
  Mask over = 0;
};

struct State {
  Mask live = 0, host = 0, space = 0, computed = 0;
  Clock compute = 0, out = 0, in = 0, network = 0;
  std::array<Clock, kMostTensorsWithTransfers> exists{}, settled{}, sent{};
  Move move;
  std::size_t parent = SIZE_MAX;
  bool dominated = false;
};

struct Sets {
  Mask live, host, space, computed;
  bool operator==(const Sets&) const = default;
};
struct HashSets {
  std::size_t operator()(const Sets& sets) const {
    std::uint64_t hash = sets.live;
    for (const Mask mask : {sets.host, sets.space, sets.computed})
      hash = (hash ^ (hash >> 29)) * 0x9e3779b97f4a7c15u + mask;
    return static_cast<std::size_t>(hash ^ (hash >> 32));
  }
};

class Search {
 public:
  // Timeless: only whether there is a schedule at all.
  Search(const Rules& rules, Bytes budget, Frees frees, bool timeless)
      : rules_(rules), budget_(budget), sparing_(frees == Frees::sparing), timeless_(timeless) {}

  bool run() {
    State first;
    first.live = rules_.start;
    first.host = first.space = rules_.on_host;
    if (bytes_in_use(first) > budget_ || !host_holds(first)) return false;
    reach(first);
    while (!queue_.empty()) {
      const std::size_t at = queue_.top().second;
      queue_.pop();
      if (states_[at].dominated) continue;
      if (is_end(states_[at])) {
        end_ = at;
        return true;
      }
      expand(at);
    }
    return false;
  }

  // After `run` has found an end.
  Schedule schedule(const Machine& machine) const {
    std::vector<Move> moves;
    for (std::size_t at = end_; states_[at].parent != SIZE_MAX; at = states_[at].parent)
      moves.push_back(states_[at].move);
    Schedule schedule;
    schedule.duration = Ticks(estimate(states_[end_]));
    Plan& plan = schedule.plan;
    Mask live = rules_.start;
    schedule.peak = rules_.resident + rules_.sum(live);
    const auto use = [&](Bytes more) {
      schedule.peak = std::max(schedule.peak, rules_.resident + rules_.sum(live) + more);
    };
    for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
      for_each(move->frees, [&](std::size_t t) { plan.steps.push_back(Step::free(TensorId(t))); });
      live &= ~move->frees;
      if (move->kind == StepKind::offload)
        plan.steps.push_back(Step::offload(TensorId(move->index)));
      if (move->kind == StepKind::prefetch) {
        plan.steps.push_back(Step::prefetch(TensorId(move->index)));
        live |= bit(move->index);
        use(Bytes(0));
      }
      if (move->kind != StepKind::compute) continue;
      const OpRules& op = rules_.ops[move->index];
      std::vector<TensorId> over;
      for_each(move->over, [&](std::size_t t) { over.emplace_back(t); });
      plan.add_compute(OpId(move->index), over);
      live = (live & ~move->over) | op.makes;
      use(op.workspace);
    }
    if (transfers(plan)) plan.machine = machine;
    return schedule;
  }

 private:
  Bytes bytes_in_use(const State& state) const { return rules_.resident + rules_.sum(state.live); }
  bool host_holds(const State& state) const {
    return !rules_.host_budget || rules_.sum(state.space) <= *rules_.host_budget;
  }
  Clock estimate(const State& state) const {
    Clock compute = state.compute, network = state.network;
    for (std::size_t i = 0; i < rules_.ops.size(); ++i)
      if ((state.computed & bit(i)) == 0)
        (rules_.ops[i].network ? network : compute) += rules_.ops[i].time;
    return std::max({compute, network, state.out, state.in});
  }
  bool is_end(const State& state) const {
    return state.computed == bit(rules_.ops.size()) - 1 && (rules_.end_live & ~state.live) == 0 &&
           (rules_.on_host & ~state.host) == 0;
  }
  bool may_compute(std::size_t i, Mask computed) const {
    const OpRules& op = rules_.ops[i];
    const bool again = (computed & bit(i)) != 0;
    return (op.barred_by & computed) == 0 && (!again || op.again);
  }
  bool useful(std::size_t t, Mask computed) const {
    bool use = (rules_.end_live & bit(t)) != 0;
    for_each(rules_.readers[t], [&](std::size_t i) { use = use || may_compute(i, computed); });
    return use;
  }
  Mask freeable(const State& state) const {
    return state.live & (rules_.free_uncopied | state.host) & ~rules_.stays;
  }

  // Calls back with every set of frees among the candidates, beside those that are due, that makes
  // room for so many bytes, and of which none could be left out.
  void make_room(const State& state, Mask due, Mask candidates, Bytes needed,
                 const std::function<void(Mask)>& take) const {
    const Bytes missing = bytes_in_use(state) - rules_.sum(due) + needed - budget_;
    if (missing <= Bytes(0)) return take(due);
    if (!sparing_) return;
    const auto choose = [&](auto& self, Mask chosen, Mask left, Bytes freed, Bytes least) -> void {
      if (freed >= missing) {
        if (freed - least < missing) take(due | chosen);
        return;
      }
      while (left != 0) {
        const Mask next = left & -left;
        left &= left - 1;
        const Bytes size = rules_.sum(next);
        if (size > Bytes(0)) self(self, chosen | next, left, freed + size, std::min(least, size));
      }
    };
    choose(choose, 0, candidates & ~due, Bytes(0), Bytes::max());
  }

  void free(State& state, Mask gone) const {
    for_each(gone, [&](std::size_t t) {
      state.compute = std::max({state.compute, state.settled[t], state.sent[t]});
    });
    state.live &= ~gone;
  }

  void expand(std::size_t at) {
    const State from = states_[at];
    const auto next = [&](Move move) {
      State to = from;
      to.parent = at;
      to.move = move;
      free(to, move.frees);
      return to;
    };
    for (std::size_t i = 0; i < rules_.ops.size(); ++i) compute(from, i, next);
    for (std::size_t t = 0; t < rules_.bytes.size(); ++t) {
      const Mask one = bit(t);
      if ((from.live & one) != 0) {
        if (!sparing_ && (freeable(from) & one) != 0) reach(next({one}));
        if (sparing_ && (from.host & one) != 0) continue;
        State to = next({0, StepKind::offload, t});
        to.out = to.settled[t] = std::max(to.out, to.exists[t]) + rules_.out[t];
        to.host |= one;
        to.space |= one;
        if (host_holds(to)) reach(to);
      } else if ((from.host & one) != 0 && (!sparing_ || useful(t, from.computed))) {
        make_room(from, 0, freeable(from), rules_.bytes[t], [&](Mask gone) {
          State to = next({gone, StepKind::prefetch, t});
          to.in = to.settled[t] = to.exists[t] = std::max(to.in, to.compute) + rules_.in[t];
          to.live |= one;
          reach(to);
        });
      }
    }
  }

  template <class Next>
  void compute(const State& from, std::size_t i, const Next& next) {
    const OpRules& op = rules_.ops[i];
    const bool again = (from.computed & bit(i)) != 0;
    if (!may_compute(i, from.computed) || (op.reads & ~from.live) != 0 ||
        (op.after & ~from.computed) != 0)
      return;
    if (!again && !rules_.turn.empty() &&
        rules_.turn[static_cast<std::size_t>(std::popcount(from.computed))] != i)
      return;
    bool wanted = !again || !sparing_;
    for_each(op.makes, [&](std::size_t t) { wanted = wanted || useful(t, from.computed); });
    const Mask due = from.live & op.makes;
    if (!wanted || (due != 0 && !sparing_) || (due & ~freeable(from)) != 0) return;
    const auto in_place = [&](auto& self, std::size_t pair, Mask over, Mask placed) -> void {
      if (pair < op.in_place.size()) {
        self(self, pair + 1, over, placed);
        const auto [input, output] = op.in_place[pair];
        if ((placed & output) == 0) self(self, pair + 1, over | input, placed | output);
        return;
      }
      const Bytes made = rules_.sum(op.makes & ~placed) + op.workspace;
      make_room(from, due, freeable(from) & ~op.reads, made, [&](Mask gone) {
        State to = next({gone, StepKind::compute, i, over});
        Clock start = op.network ? std::max(to.compute, to.network) : to.compute;
        for_each(op.reads, [&](std::size_t t) {
          start = std::max(start, to.exists[t]);
          if ((over & bit(t)) != 0) start = std::max(start, to.settled[t]);
          if (((over | op.mutates) & bit(t)) != 0) start = std::max(start, to.sent[t]);
        });
        if (op.barrier) start = std::max({start, to.out, to.in, to.network});
        const Clock end = start + op.time;
        (op.network ? to.network : to.compute) = end;
        if (op.barrier) to.out = to.in = end;
        if (op.network) for_each(op.reads | op.makes, [&](std::size_t t) { to.sent[t] = end; });
        to.live = (to.live & ~over) | op.makes;
        to.host &= ~op.mutates;
        for_each(op.makes | op.mutates, [&](std::size_t t) { to.exists[t] = end; });
        to.computed |= bit(i);
        reach(to);
      });
    };
    in_place(in_place, 0, 0, 0);
  }

  // Copies of a tensor and network ops on it hold back whoever frees it, also those before it was
  // made anew.
  void round(State& state) const {
    for (std::size_t t = 0; t < rules_.bytes.size(); ++t) {
      if (timeless_) state.exists[t] = state.settled[t] = state.sent[t] = 0;
      if (state.settled[t] <= state.compute) state.settled[t] = 0;
      if (state.sent[t] <= state.compute) state.sent[t] = 0;
      if ((state.live & bit(t)) == 0 || state.exists[t] <= std::min(state.compute, state.out))
        state.exists[t] = 0;
    }
    if (timeless_) state.compute = state.out = state.in = state.network = 0;
  }

  static bool no_later(const State& a, const State& b) {
    if (a.compute > b.compute || a.out > b.out || a.in > b.in || a.network > b.network)
      return false;
    for (std::size_t t = 0; t < kMostTensorsWithTransfers; ++t)
      if (a.exists[t] > b.exists[t] || a.settled[t] > b.settled[t] || a.sent[t] > b.sent[t])
        return false;
    return true;
  }

  void reach(State state) {
    round(state);
    std::vector<std::size_t>& same =
        index_[{state.live, state.host, rules_.host_budget ? state.space : 0, state.computed}];
    for (const std::size_t other : same)
      if (no_later(states_[other], state)) return;
    std::erase_if(same, [&](std::size_t other) {
      return states_[other].dominated = no_later(state, states_[other]);
    });
    same.push_back(states_.size());
    queue_.emplace(std::pair(estimate(state), -std::popcount(state.computed)), states_.size());
    states_.push_back(state);
  }

  const Rules& rules_;
  Bytes budget_;
  bool sparing_, timeless_;
  std::vector<State> states_;
  std::unordered_map<Sets, std::vector<std::size_t>, HashSets> index_;
  using Entry = std::pair<std::pair<Clock, int>, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::size_t end_ = SIZE_MAX;
};

}  // namespace

Link no_link(Order order) {
  // Only tensors without bytes fit on such a host, and a copy of one takes too long to be worth it.
  const lowtide::Link slow{Ticks(1'000'000'000), Bytes(1), Ticks(0)};
  return {order, {slow, slow}, Bytes(0)};
}

std::optional<Schedule> fastest(const Graph& graph, const Link& link, Bytes budget, Frees frees) {
  const Rules rules(graph, link);
  if (!Search(rules, budget, frees, true).run()) return std::nullopt;
  Search search(rules, budget, frees, false);
  check(search.run(), "what is possible is possible in time");
  return search.schedule(link.machine);
}

std::vector<Schedule> all_tradeoffs(const Graph& graph, const Link& link) {
  std::vector<Schedule> curve;
  Bytes budget = Bytes::max();
  while (auto next = fastest(graph, link, budget)) {
    budget = next->peak - Bytes(1);
    if (!curve.empty() && curve.back().duration == next->duration) curve.pop_back();
    curve.push_back(std::move(*next));
  }
  return curve;
}

}  // namespace lowtide::oracle
