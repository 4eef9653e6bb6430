// Problem: several stages keep more bytes than there is room. How much recomputation does that
// need?
//
// Idea: a price on the bytes kept at each stage replaces the limit, which leaves one minimum cut
// over all stages (stage_model.h). Decisions of the branch and bound are drains and supplies that
// no cut pays for. Residual capacities give a lower bound on the cost of deciding against the cut.
//
// Source: Lagrangian relaxation of the knapsack rows of a closure problem; J.-C. Picard, Maximal
// closure of a graph, Management Science 1976.
//
// Invariant: prices are rounded down and the price of the room is rounded up, all in integers. So
// every value is a bound, for any multipliers.
//
// Loses: like every relaxation with fractional runs; stage_branch.h closes that gap.
#include "lowtide/solve/bounds/stage/stage_bound.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "lowtide/solve/bounds/common/index.h"

namespace lowtide::solve::bounds {

namespace {

__extension__ using Wide = __int128;

// The bytes that a stage keeps, in a network of its own or in the priced one. `place`: the flow
// node of each node; holds refer to nodes of the flow.

template <class Wants, class Holds>
bool countable(const Wants& wants, const Holds& holds) {
  Wide bytes = 0;
  for (const auto& want : wants) bytes += want.bytes;
  for (const auto& hold : holds) bytes += hold.bytes;
  return bytes <= Wide{1} << 60;
}

template <class Wants, class Holds, class Place>
void weigh(MaxFlow& flow, const Wants& wants, const Holds& holds, Place place) {
  for (const auto& want : wants) flow.grow_supply(place(want.node), want.bytes);
  for (const auto& hold : holds) {
    if (hold.arc >= 0)
      flow.grow_capacity(hold.arc, hold.bytes);
    else
      flow.grow_drain(hold.reader, hold.bytes);
  }
}

// By stage, for the cut.
template <class Wants, class Holds, class Place>
void tally(const MaxFlow& flow, const Wants& wants, const Holds& holds, Place place,
           std::vector<std::int64_t>& kept) {
  const auto taken = [&](std::int32_t node) { return node >= 0 && flow.on_source_side(node); };
  std::ranges::fill(kept, 0);
  for (const auto& want : wants)
    if (!taken(place(want.node))) kept[index(want.stage)] += want.bytes;
  for (const auto& hold : holds)
    if (taken(hold.reader) && !taken(hold.maker)) kept[index(hold.stage)] += hold.bytes;
}

}  // namespace

// At each stage a tensor has one price, and its op may have a decision for its turn and its cell.
StageBound::StageBound(const Problem& problem, std::span<const std::size_t> stages)
    : problem_(problem),
      model_(problem, stages),
      scale_(problem.graph, 4 * static_cast<std::int64_t>(stages.size())),
      runs_(model_.decisions(), Decision::open),
      heeded_(stages.size(), 0),
      left_(model_.room),
      turns_of_(model_.cells.size()),
      wants_of_(model_.decisions()) {
  for (std::size_t i = 0; i < model_.turns.size(); ++i)
    turns_of_[index(model_.turns[i].cell)].push_back(small(cells() + i));
  for (std::size_t i = 0; i < model_.wants.size(); ++i)
    wants_of_[index(model_.wants[i].node)].push_back(small(i));
  over_.resize(stages.size());
  multiplier_.resize(stages.size());
  kept_.resize(stages.size());
  build();
}

// Nodes that may be on the source's side: only wanted and decided nodes draw others in.
void StageBound::find_places() {
  std::vector<std::uint8_t> drawn(model_.nodes, 0);
  std::vector<std::vector<std::int32_t>> draws(model_.nodes);
  std::vector<std::int32_t> queue;
  const auto draw = [&](std::int32_t node) {
    if (drawn[index(node)] != 0) return;
    if (index(node) < runs_.size() && runs_[index(node)] == Decision::no) return;
    drawn[index(node)] = 1;
    queue.push_back(node);
  };
  for (const StageModel::Join& join : model_.joins) draws[index(join.from)].push_back(join.to);
  for (const StageModel::Hold& hold : model_.holds)
    if (hold.maker >= 0) draws[index(hold.reader)].push_back(hold.maker);
  for (const StageModel::Want& want : model_.wants)
    if (heeded(index(want.stage))) draw(want.node);
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i] == Decision::yes) draw(small(i));
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const std::int32_t node : draws[index(queue[i])]) draw(node);
  place_.assign(model_.nodes, -1);
  for (std::size_t i = 0; i < model_.nodes; ++i)
    if (drawn[i] != 0) place_[i] = flow_.add_node();
}

void StageBound::build() {
  flow_ = MaxFlow();
  find_places();
  for (auto* list : {&in_question_, &present_, &unbounded_}) list->clear();
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (place_[i] < 0) continue;
    present_.push_back(small(i));
    if (runs_[i] == Decision::open) in_question_.push_back(small(i));
  }
  for (const StageModel::Join& join : model_.joins)
    if (place_[index(join.from)] >= 0)
      unbounded_.push_back(flow_.add_arc(place_[index(join.from)], place_[index(join.to)]));
  prices_.clear();
  for (const StageModel::Hold& hold : model_.holds) {
    const std::int32_t reader = place_[index(hold.reader)];
    const std::int32_t maker = hold.maker < 0 ? -1 : place_[index(hold.maker)];
    if (reader < 0 || !heeded(index(hold.stage))) continue;
    const std::int32_t arc = maker < 0 ? -1 : flow_.add_arc(reader, maker);
    prices_.push_back({reader, maker, arc, hold.stage, hold.bytes});
  }
  wants_.clear();
  for (const StageModel::Want& want : model_.wants)
    if (heeded(index(want.stage)) && place_[index(want.node)] >= 0) wants_.push_back(want);
  room_ = left_;
  flow_.build();
}

std::size_t StageBound::cell_of(std::size_t node) const {
  return node < cells() ? node : index(model_.turns[node - cells()].cell);
}

void StageBound::set(std::size_t node, Decision run) {
  runs_[node] = run;
  trail_.push_back(node);
  if (run == Decision::no)
    for (const std::int32_t want : wants_of_[node])
      left_[index(model_.wants[index(want)].stage)] -= model_.wants[index(want)].bytes;
}

void StageBound::undo(std::size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const std::size_t node = trail_.back();
    if (runs_[node] == Decision::no)
      for (const std::int32_t want : wants_of_[node])
        left_[index(model_.wants[index(want)].stage)] += model_.wants[index(want)].bytes;
    runs_[node] = Decision::open;
  }
}

void StageBound::decide(std::size_t node, Decision run) {
  set(node, run);
  const std::size_t cell = cell_of(node);
  if (node >= cells()) {
    if (run == Decision::yes && runs_[cell] == Decision::open) set(cell, run);
  } else if (run == Decision::no) {
    for (const std::int32_t turn : turns_of_[cell])
      if (runs_[index(turn)] == Decision::open) set(index(turn), run);
  }
}

bool StageBound::propagate() {
  for (const StageModel::Want& want : wants_) {
    if (left_[index(want.stage)] < 0) return false;
    if (runs_[index(want.node)] == Decision::open && want.bytes > left_[index(want.stage)])
      decide(index(want.node), Decision::yes);
  }
  return std::all_of(left_.begin(), left_.end(), [](std::int64_t left) { return left >= 0; });
}

std::int64_t StageBound::price_of(std::int32_t stage, std::int64_t bytes) const {
  const Wide price = Wide{multiplier_[index(stage)]} * bytes >> scale_.price_shift;
  return price < scale_.most ? static_cast<std::int64_t>(price) : scale_.most;
}

double StageBound::scaled(Ticks time) const {
  return std::ldexp(static_cast<double>(time.count()), scale_.time_shift);
}

void StageBound::join() {
  flow_.clear();
  for (const std::int32_t arc : unbounded_) flow_.grow_capacity(arc, MaxFlow::kUnbounded);
}

void StageBound::price(std::span<const double> multipliers) {
  Wide constant = 0;
  for (std::size_t i = 0; i < stages(); ++i) {
    multiplier_[i] = static_cast<std::int64_t>(std::clamp(multipliers[i], 0.0, 0x1p60));
    const Wide room = Wide{multiplier_[i]} * room_[i];
    constant -= (room + (Wide{1} << scale_.price_shift) - 1) >> scale_.price_shift;
  }
  join();
  for (const std::int32_t node : present_) {
    const std::size_t i = index(node);
    const std::int64_t pays = i < cells() ? scale_.scaled(time(i)) : 0;
    if (runs_[i] == Decision::no)
      flow_.grow_drain(place_[i], scale_.most);
    else if (runs_[i] == Decision::open)
      flow_.grow_drain(place_[i], pays);
    else if (i < cells())
      constant += pays;
    else
      flow_.grow_supply(place_[i], scale_.most);
  }
  for (const StageModel::Want& want : wants_)
    flow_.grow_supply(place_[index(want.node)], price_of(want.stage, want.bytes));
  for (const Price& hold : prices_) {
    const std::int64_t price = price_of(hold.stage, hold.bytes);
    if (hold.arc >= 0)
      flow_.grow_capacity(hold.arc, price);
    else
      flow_.grow_drain(hold.reader, price);
  }
  constant_ = static_cast<std::int64_t>(std::clamp(constant, -(Wide{1} << 62), Wide{1} << 61));
}

void StageBound::look() {
  tally(
      flow_, wants_, prices_, [&](std::int32_t node) { return place_[index(node)]; }, kept_);
  fits_ = true;
  for (std::size_t i = 0; i < stages(); ++i) {
    const std::int64_t over = heeded(i) ? kept_[i] - room_[i] : 0;
    fits_ &= over <= 0;
    over_[i] = std::ldexp(static_cast<double>(over), -scale_.price_shift);
  }
  cost_ = Ticks(0);
  for (const std::int32_t node : present_)
    if (index(node) < cells() && runs(index(node))) add_cost(index(node));
}

bool StageBound::evaluate(std::span<const double> multipliers, Limits& limits) {
  price(multipliers);
  const auto terms = wants_.size() + prices_.size() + present_.size();
  if (limits.spend(static_cast<std::int64_t>(terms) / 64)) return false;
  if (!flow_.run(limits)) return false;
  value_ = flow_.value() + constant_;
  look();
  return true;
}

// Runs are free here, so the stages are independent: a cut with bytes as prices keeps the fewest
// bytes at each of them. Decided turns follow from the memory.
bool StageBound::can_fit(Limits& limits) {
  cost_ = Ticks(0);
  for (std::size_t i = 0; i < cells(); ++i)
    if (runs_[i] == Decision::yes) add_cost(i);
  if (!countable(wants_, prices_)) return true;
  join();
  for (const std::int32_t node : present_)
    if (runs_[index(node)] == Decision::no)
      flow_.grow_drain(place_[index(node)], MaxFlow::kUnbounded / 2);
  weigh(flow_, wants_, prices_, [&](std::int32_t node) { return place_[index(node)]; });
  if (!flow_.run(limits)) return true;
  look();
  return fits_;
}

std::int32_t StageBound::most_over(Limits& limits) {
  if (!countable(model_.wants, model_.holds)) return -1;
  if (whole_.node_count() == 0) {
    for (std::size_t i = 0; i < model_.nodes; ++i) whole_.add_node();
    for (const StageModel::Join& join : model_.joins)
      whole_joins_.push_back(whole_.add_arc(join.from, join.to));
    for (const StageModel::Hold& hold : model_.holds)
      whole_holds_.push_back({.reader = hold.reader,
                              .maker = hold.maker,
                              .arc = hold.maker < 0 ? -1 : whole_.add_arc(hold.reader, hold.maker),
                              .stage = hold.stage,
                              .bytes = hold.bytes});
    whole_.build();
  }
  const std::size_t arcs = whole_joins_.size() + whole_holds_.size();
  if (limits.spend(static_cast<std::int64_t>(model_.nodes + arcs) / 64)) return -1;
  whole_.clear();
  for (const std::int32_t arc : whole_joins_) whole_.grow_capacity(arc, MaxFlow::kUnbounded);
  for (std::size_t i = 0; i < cells(); ++i)
    if (!runs(i)) whole_.grow_drain(small(i), MaxFlow::kUnbounded / 2);
  weigh(whole_, model_.wants, whole_holds_, std::identity());
  if (!whole_.run(limits)) return -1;
  tally(whole_, model_.wants, whole_holds_, std::identity(), kept_);
  std::int32_t most = -1;
  std::int64_t by = 0;
  for (std::size_t i = 0; i < stages(); ++i)
    if (kept_[i] - model_.room[i] > by) {
      by = kept_[i] - model_.room[i];
      most = small(i);
    }
  return most;
}

Ticks StageBound::proven_against(std::size_t cell) const {
  std::int64_t more = 0;
  if (runs(cell)) {
    more = flow_.excess(place_[cell]);
    for (const std::int32_t turn : turns_of_[cell])
      if (place_[index(turn)] >= 0) more += flow_.excess(place_[index(turn)]);
  } else {
    more = flow_.drain_left(place_[cell]);
  }
  return scale_.ticks(value_ + more);
}

}  // namespace lowtide::solve::bounds
