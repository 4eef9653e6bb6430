// Problem: each inner block may be run in several ways. Choose an option for each, so that all
// together keep the budget with the least time.
//
// Idea: each half of each block runs once. The bytes in use while a node runs are the saved bytes
// of the blocks whose forward half has run and whose backward half has not, plus bytes that hardly
// depend on the choice. Backward halves follow in reverse order, so from the last backward node to
// the first the set of these blocks only grows, and likewise over the forward nodes from the first
// to the last. These are limits on sums over nested sets. Go through the sets; while a limit is
// exceeded, take the step that costs the least time per byte, over all blocks in the set. For
// options on convex hulls this is optimal except for the last step. The other bytes in use are
// measured by a simulation of the choice, and the choice is repeated a few times.
//
// If equal blocks repeat, this is equivalent to one price of a byte for all blocks. It is
// near-linear, also for a million ops.
//
// Loses: at budgets so tight that a forward half must run more than once, as from a checkpoint
// before several blocks. Then larger blocks are needed, or a solver that recomputes halves.
#include "lowtide/solve/hierarchy/block/choice.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::solve::hierarchy {

namespace {

constexpr int kRounds = 6;  // of choosing and measuring
// The last round is the one that gains less than this share of the overhead.
constexpr double kLittle = 0.002;

using Step = std::pair<double, std::size_t>;  // price of a byte, and the block

}  // namespace

Choice::Choice(const BlockTask& task, Limits& limits) : task_(task), limits_(limits) {
  // Equal blocks have the same options.
  std::unordered_map<const BlockOption*, Hull> known;
  for (const Child& child : task.level.children) {
    Hull& hull = known[child.options.data()];
    if (hull.empty())
      for (const std::size_t i : convex_hull(child.options))
        hull.emplace_back(i, &child.options[i]);
    hulls_.push_back(hull);
  }
  first_.resize(hulls_.size());
  last_.resize(hulls_.size());
  for (std::size_t i = 0; i < nodes().size(); ++i) {
    const LevelNode& node = nodes()[i];
    if (node.kind == LevelNode::Kind::forward) first_[node.child] = last_[node.child] = i;
    if (node.kind == LevelNode::Kind::backward) last_[node.child] = i;
    if (node.kind == LevelNode::Kind::rest) rest_ = i;
  }
  if (!rest_) return;
  const Graph& graph = task.block.graph();
  border_at_rest_ = graph.input_bytes();
  for (const TensorId id : graph.inputs(task.block.rest())) border_at_rest_ += graph.bytes(id);
  for (const TensorId id : graph.outputs(task.block.rest())) border_at_rest_ += graph.bytes(id);
}

bool Choice::has_choice() const {
  return std::ranges::any_of(hulls_, [](const Hull& hull) { return hull.size() > 1; });
}

// The time of one byte less.
double Choice::price(const Hull::value_type& from, const Hull::value_type& to) {
  return static_cast<double>((to.second->time() - from.second->time()).count()) /
         static_cast<double>((from.second->saved - to.second->saved).count());
}

bool Choice::run(const BlockBudget& budget) {
  std::optional<Graph> limited;
  const Bytes most = task_.block.problem({budget.peak, Bytes::max()}, limited).budget;
  found_.clear();
  at_.assign(hulls_.size(), 0);
  bool within = false;
  Ticks best = Ticks::max();
  Bytes nearest = Bytes::max();
  const double base = static_cast<double>(task_.block.graph().total_time().count());
  for (int round = 0; round < kRounds && !limits_.stopped(); ++round) {
    const std::vector<std::size_t> before = at_;
    bool little = false;
    if (round == 0 && take_once()) {
      // Measured by the code that made the level.
    } else {
      if (!measure()) break;
      const auto& [live, used, duration] = now_;
      const bool fits = used <= most && (!rest_ || budget.saved > Bytes::max() - border_at_rest_ ||
                                         live[*rest_] <= budget.saved + border_at_rest_);
      if (fits ? duration < best : !within && used < nearest) {
        const double lost = static_cast<double>(duration.count()) - base;
        little = within && static_cast<double>((best - duration).count()) < kLittle * lost;
        if (fits)
          best = duration;
        else
          nearest = used;
        within = within || fits;
        found_ = chosen_sequence();
        found_options_.clear();
        for (std::size_t i = 0; i < hulls_.size(); ++i)
          found_options_.push_back(hulls_[i][at_[i]].first);
      } else if (within) {
        little = fits;
      }
      if (little || (fits && round == 0)) break;
    }
    choose(most, budget.saved);
    if (at_ == before && round > 0) break;
  }
  return within;
}

std::vector<OpId> Choice::chosen_sequence() const {
  std::vector<LevelStep> steps;
  for (std::size_t i = 0; i < nodes().size(); ++i) {
    const LevelNode& node = nodes()[i];
    steps.push_back({i, node.op.valid() ? 0 : hulls_[node.child][at_[node.child]].first});
  }
  return task_.level.sequence(steps);
}

// Returns false if there is no time for it.
bool Choice::measure() {
  if (const auto known = measured_.find(at_); known != measured_.end()) {
    now_ = known->second;
    return true;
  }
  const std::vector<OpId> sequence = chosen_sequence();
  if (limits_.spend_all(static_cast<std::int64_t>(sequence.size()))) return false;
  const Plan plan = plan_from_sequence(task_.block.graph(), sequence);
  const Timeline timeline = simulate(task_.block.graph(), plan);
  check(!timeline.violation, "what a level says is a plan");
  now_ = {std::vector<Bytes>(nodes().size()), timeline.cost.peak, timeline.cost.duration};
  std::size_t node = 0, left = length(0);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (!plan.steps[i].is_compute()) continue;
    while (left == 0) left = length(++node);
    --left;
    now_.live[node] = std::max(now_.live[node], timeline.live[i]);
  }
  measured_.emplace(at_, now_);
  return true;
}

// The figures that the level has for computing everything once with all tensors saved. Returns
// false if it has none, or if other options are chosen: the fastest option of a block may compute
// an op of no duration twice.
bool Choice::take_once() {
  std::vector<std::size_t> lengths;
  std::size_t all = 0;
  for (std::size_t node = 0; node < nodes().size(); ++node) {
    lengths.push_back(length(node));
    all += lengths.back();
    if (nodes()[node].op.valid()) continue;
    const Hull& hull = hulls_[nodes()[node].child];
    const BlockOption& option = *hull[at_[nodes()[node].child]].second;
    if (option.forward.size() + option.backward.size() !=
        task_.level.children[nodes()[node].child].ops.size())
      return false;
  }
  if (all != task_.level.once.size()) return false;
  now_.live.assign(nodes().size(), Bytes());
  std::size_t at = 0;
  for (std::size_t node = 0; node < nodes().size(); ++node)
    for (std::size_t i = lengths[node]; i > 0; --i)
      now_.live[node] = std::max(now_.live[node], task_.level.once[at++]);
  return true;
}

std::size_t Choice::length(std::size_t i) const {
  const LevelNode& node = nodes()[i];
  if (node.op.valid()) return 1;
  const BlockOption& option = *hulls_[node.child][at_[node.child]].second;
  return node.kind == LevelNode::Kind::forward ? option.forward.size() : option.backward.size();
}

// Of a half, with its present option.
Bytes Choice::own_peak(std::size_t i) const {
  const LevelNode& node = nodes()[i];
  if (node.op.valid()) return {};
  const BlockOption& option = *hulls_[node.child][at_[node.child]].second;
  return node.kind == LevelNode::Kind::forward ? option.forward_peak : option.backward_peak;
}

// Chooses again, starting from the most saved bytes, such that each sum is within its limit.
void Choice::choose(Bytes most, Bytes most_saved) {
  // The bytes in use at each node, without the saved bytes of counted blocks and the needs of its
  // own block.
  std::vector<Bytes> other = now_.live;
  for_each_set([&](std::size_t node, Bytes sum, auto&&) { other[node] -= sum + own_peak(node); },
               false);
  std::ranges::fill(at_, std::size_t{0});
  for_each_set(
      [&](std::size_t node, Bytes sum, auto&& cheapest) {
        Bytes limit = most;
        if (rest_ == node && most_saved < Bytes::max() - border_at_rest_)
          limit = std::min(limit, most_saved + border_at_rest_);
        while (other[node] + sum + own_peak(node) > limit) {
          if (const std::optional<Bytes> less = cheapest())
            sum -= *less;
          else if (!step_own(node))
            break;
        }
      },
      true);
}

// Takes the next option of the half's own block that needs less while this half runs. Returns
// whether there was one.
bool Choice::step_own(std::size_t i) {
  const LevelNode& node = nodes()[i];
  if (node.op.valid()) return false;
  const std::size_t before = at_[node.child];
  const Bytes peak = own_peak(i);
  const Hull& hull = hulls_[node.child];
  while (++at_[node.child] < hull.size())
    if (own_peak(i) < peak) return true;
  at_[node.child] = before;
  return false;
}

// Calls `visit` for each node with the sum of the saved bytes of the blocks held there: backward
// nodes from the last, then the others from the first. With `steps`, the third argument takes the
// cheapest step of these blocks, and returns by how much it lowers the sum.
template <class Visit>
void Choice::for_each_set(Visit visit, bool steps) {
  const auto pass = [&](std::ptrdiff_t begin, std::ptrdiff_t end,
                        const std::vector<std::size_t>& enters) {
    std::vector<std::vector<std::size_t>> entering(nodes().size());
    for (std::size_t child = 0; child < hulls_.size(); ++child)
      if (first_[child] != last_[child]) entering[enters[child]].push_back(child);
    std::priority_queue<Step, std::vector<Step>, std::greater<>> heap;
    Bytes sum;
    const auto push = [&](std::size_t child) {
      const Hull& hull = hulls_[child];
      if (steps && at_[child] + 1 < hull.size())
        heap.emplace(price(hull[at_[child]], hull[at_[child] + 1]), child);
    };
    const auto cheapest = [&]() -> std::optional<Bytes> {
      if (heap.empty()) return std::nullopt;
      const std::size_t child = heap.top().second;
      heap.pop();
      const Bytes before = saved_by(child);
      ++at_[child];
      push(child);
      sum -= before - saved_by(child);
      return before - saved_by(child);
    };
    for (std::ptrdiff_t at = begin; at != end; at += begin < end ? 1 : -1) {
      const auto node = static_cast<std::size_t>(at);
      visit(node, sum, cheapest);
      for (const std::size_t child : entering[node]) {
        sum += saved_by(child);
        push(child);
      }
    }
  };
  const std::size_t count = nodes().size();
  std::size_t middle = count;
  for (std::size_t child = 0; child < hulls_.size(); ++child)
    if (first_[child] != last_[child]) middle = std::min(middle, last_[child]);
  const auto end = static_cast<std::ptrdiff_t>(count), half = static_cast<std::ptrdiff_t>(middle);
  if (half < end) pass(end - 1, half - 1, last_);
  pass(0, half, first_);
}

}  // namespace lowtide::solve::hierarchy
