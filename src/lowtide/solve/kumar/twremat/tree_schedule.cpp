// Problem: write down the schedule of Algorithm 1 without a copy of the decomposition at each call.
//
// Idea: a call is determined by the component and by the op outside it for which it is made, the
// reader. The paper's set S is the producers, in the component, of the reader's inputs. So there
// are at most as many calls as links times levels. Each call is examined once, innermost first: the
// ops of its separator that it needs, the ops of separators above that it reads, the calls that it
// makes, and the length of its schedule. Then the schedule is written in one pass.
//
// Source: Kumar et al., NeurIPS 2019, Algorithm 1. There a call schedules its whole separator. That
// is not a valid schedule if the separator has descendants of ops that are not computed yet (the
// gradients of a layer, when the next layer's activations are needed). Here a call schedules only
// ancestors of S. docs/why/tree-width.md has the example.
//
// Invariant: when a call for a reader begins, all ops of `outside` are computed, and the callers
// hold them: these ops are ancestors of the reader in separators above, where they come before it.
//
// Loses: a component that is called for many readers in a row is recomputed for each of them.
#include "lowtide/solve/kumar/twremat/tree_schedule.h"

#include <algorithm>

#include "lowtide/base/error.h"

namespace lowtide::solve::kumar::twremat {

namespace {
std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
}  // namespace

TreeSchedule::TreeSchedule(const OpGraph& graph, const Division& division,
                           const std::vector<std::int32_t>& positions,
                           const std::function<bool(std::int64_t)>& spend)
    : graph_(graph),
      division_(division),
      positions_(positions),
      outermost_(positions.size() + 1),
      mark_(positions.size(), 0) {
  find_calls(spend);
}

void TreeSchedule::find_calls(const std::function<bool(std::int64_t)>& spend) {
  const auto count = static_cast<Node>(positions_.size());
  std::vector<std::int32_t> call_of(division_.parts.size(), -1), touched;
  for (Node reader = 0; reader <= count; ++reader) {
    const std::int32_t home = reader == count ? -1 : division_.part_of[at(reader)];
    const auto makers =
        reader == count ? std::span<const OpId>(graph_.finals) : graph_.makers[at(reader)];
    const std::int32_t level = home < 0 ? -1 : division_.parts[at(home)].depth;
    for (OpId maker : makers) {
      const std::int32_t part = division_.part_of[maker.index()];
      if (division_.parts[at(part)].depth <= level) continue;
      std::int32_t inner = -1;
      for (std::int32_t p = part; p != home; p = division_.parts[at(p)].parent) {
        std::int32_t& call = call_of[at(p)];
        const bool is_new = call < 0;
        if (is_new) {
          call = static_cast<std::int32_t>(calls_.size());
          calls_.push_back(
              {.reader = reader, .part = p, .needed = {}, .outside = {}, .within = {}});
          seeds_.emplace_back();
          touched.push_back(p);
          if (division_.parts[at(p)].parent == home) outermost_[at(reader)].push_back(call);
        }
        if (p == part) seeds_[at(call)].push_back(static_cast<Node>(maker.index()));
        if (inner >= 0) calls_[at(call)].within.push_back(inner);
        if (!is_new) break;
        inner = call;
      }
    }
    for (std::int32_t p : touched) call_of[at(p)] = -1;
    if (spend(1 + static_cast<std::int64_t>(touched.size()) / 4)) return;
    touched.clear();
  }
  std::vector<std::int32_t> inner_first(calls_.size());
  for (std::size_t i = 0; i < calls_.size(); ++i) inner_first[i] = static_cast<std::int32_t>(i);
  std::stable_sort(inner_first.begin(), inner_first.end(), [&](std::int32_t a, std::int32_t b) {
    return division_.parts[at(calls_[at(a)].part)].depth >
           division_.parts[at(calls_[at(b)].part)].depth;
  });
  for (std::int32_t i : inner_first) {
    Call& call = calls_[at(i)];
    ++stamp_;
    for (Node seed : seeds_[at(i)]) need(seed, call);
    fill(call);
    if (spend(1 + static_cast<std::int64_t>(call.needed.size() + call.outside.size()) / 8)) return;
  }
  double length = 0;
  for (std::int32_t call : outermost_[at(count)]) length += calls_[at(call)].length;
  length_ = length;
}

void TreeSchedule::need(Node node, Call& call) {
  if (mark_[at(node)] == stamp_) return;
  mark_[at(node)] = stamp_;
  const std::int32_t part = division_.part_of[at(node)];
  if (part == call.part)
    call.needed.push_back(node);
  else if (division_.parts[at(part)].depth < division_.parts[at(call.part)].depth)
    call.outside.push_back(node);
}

// The seeds are needed, and all their ancestors.
void TreeSchedule::fill(Call& call) {
  for (std::int32_t within : call.within) {
    call.length += calls_[at(within)].length;
    for (Node node : calls_[at(within)].outside) need(node, call);
  }
  for (std::size_t i = 0; i < call.needed.size(); ++i) {
    const Node node = call.needed[i];
    for (OpId maker : graph_.makers[at(node)]) {
      const auto other = static_cast<Node>(maker.index());
      if (division_.parts[at(division_.part_of[at(other)])].depth <=
          division_.parts[at(call.part)].depth)
        need(other, call);
    }
    call.length += 1;
    for (std::int32_t within : outermost_[at(node)]) {
      call.length += calls_[at(within)].length;
      for (Node other : calls_[at(within)].outside) need(other, call);
    }
  }
  std::sort(call.needed.begin(), call.needed.end(),
            [&](Node a, Node b) { return positions_[at(a)] < positions_[at(b)]; });
}

void TreeSchedule::emit(const Call& call, std::vector<OpId>& sequence) const {
  for (Node node : call.needed) {
    for (std::int32_t within : outermost_[at(node)]) emit(calls_[at(within)], sequence);
    sequence.emplace_back(at(node));
  }
  for (std::int32_t within : call.within) emit(calls_[at(within)], sequence);
}

std::vector<OpId> TreeSchedule::emit() const {
  check(length_.has_value(), "a schedule is to be written of which not all calls were looked at");
  std::vector<OpId> sequence;
  sequence.reserve(static_cast<std::size_t>(*length_));
  for (std::int32_t call : outermost_.back()) emit(calls_[at(call)], sequence);
  return sequence;
}

}  // namespace lowtide::solve::kumar::twremat
