// Computes the options of each stage: the ways to run its halves, their memory, and the bytes held
// between them, with and without the border before the stage.
#include "lowtide/solve/hierarchy/block/chain_view.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lowtide/solve/hierarchy/block/chain_cuts.h"

namespace lowtide::solve::hierarchy {

namespace {

constexpr std::size_t kMostStageOptions = 48;  // for each stage, in the given order
constexpr std::size_t kMostReordered = 16;     // most backward nodes of a stage that are reordered

class StageMaker : private ChainCuts {
 public:
  StageMaker(ChainCuts cuts, Order order, Limits& limits, ChainView& chain)
      : ChainCuts(std::move(cuts)), order_(order), limits_(limits), chain_(chain) {}

  void make() {
    const std::size_t count = stage_count();
    chain_.stages.resize(count);
    nodes_.resize(count);
    border_.resize(count + 1);
    for (const auto* half : {&forward_, &backward_})
      for (const std::size_t k : *half) nodes_[stage_[k]].push_back(k);
    // By data: the last stage whose backward needs tensors of a backward; kNone if none does.
    std::vector<std::size_t> until(view_.data().size(), kNone);
    for (const std::size_t b : backward_)
      for (const std::size_t d : reads_[b])
        if (!by_forward(d)) until[d] = std::min(until[d], stage_[b]);
    for (std::size_t d = 0; d < view_.data().size(); ++d) {
      const LevelData& data = view_.data()[d];
      const std::size_t maker = stage_[data.maker];
      if (by_forward(d)) {
        if (data.kept) chain_.outputs += data.bytes;
        if (data.kept || data.given) chain_.stages[maker].lasting += data.bytes;
        for (std::size_t s = maker; s < last_forward_stage(d); ++s) {
          border_[s + 1].push_back(d);
          if (data.kept) continue;
          chain_.stages[s].border.again += data.bytes;
          if (!data.given) chain_.stages[s].border.first += data.bytes;
        }
        continue;
      }
      const std::size_t last = data.kept ? 0 : until[d];
      if (last == kNone) continue;
      needed_until_.resize(view_.data().size(), kNone);
      needed_until_[d] = last;
      for (std::size_t s = last; s < maker; ++s) chain_.stages[s].in_use += data.bytes;
    }
    needed_until_.resize(view_.data().size(), kNone);
    data_of_.assign(graph_.tensor_count(), kNone);
    for (std::size_t d = 0; d < view_.data().size(); ++d) data_of_[view_.data()[d].id.index()] = d;
    for (std::size_t s = 0; s < count && !limits_.stopped(); ++s) make_stage(s);
    if (limits_.stopped()) chain_.reason = "there was no time to look at it";
  }

 private:
  // The steps of a half of a stage, in which each child uses its option of this rank among `count`.
  std::vector<LevelStep> steps(std::size_t s, bool forward, std::size_t rank,
                               std::size_t ranks) const {
    std::vector<LevelStep> result;
    for (const std::size_t k : nodes_[s]) {
      if (view_.is_forward(k) != forward) continue;
      std::size_t option = 0;
      if (!level_.nodes[k].op.valid()) {
        const auto options = ranked(level_.nodes[k].child);
        option = options[ranks == 1 ? 0 : rank * (options.size() - 1) / (ranks - 1)];
      }
      result.push_back({k, option});
    }
    return result;
  }

  // All options, since the table grows only with their sum; from the most saved bytes to the
  // fewest.
  std::vector<std::size_t> ranked(std::size_t child) const {
    const Child& it = level_.children[child];
    std::vector<std::size_t> order(it.options.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return std::pair(it.options[a].saved, it.options[b].time()) >
             std::pair(it.options[b].saved, it.options[a].time());
    });
    return order;
  }

  static Bytes most(const std::vector<Bytes>& along) {
    return along.empty() ? Bytes(0) : *std::ranges::max_element(along);
  }

  void make_stage(std::size_t s) {
    add_options(s);
    add_pass(s);
  }

  void add_options(std::size_t s) {
    std::size_t ranks = 1;
    for (const std::size_t k : nodes_[s])
      if (!level_.nodes[k].op.valid())
        ranks = std::max(ranks, ranked(level_.nodes[k].child).size());
    ranks = std::min(ranks, kMostStageOptions);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto forward = steps(s, true, rank, ranks), backward = steps(s, false, rank, ranks);
      add_option(s, forward, backward);
      if (order_ == Order::free && backward.size() <= kMostReordered)
        add_option(s, forward, leanest(s, backward));
    }
  }

  void add_pass(std::size_t s) {
    Stage& stage = chain_.stages[s];
    stage.may_pass = true;
    for (const std::size_t k : nodes_[s]) {
      if (!view_.is_forward(k)) continue;
      stage.may_pass = stage.may_pass && view_.recomputable(k);
      stage.pass.push_back({k, view_.runs(k).front().option});
    }
    const auto ops = level_.sequence(stage.pass);
    for (const OpId op : ops) stage.pass_time += graph_.time(op);
    std::vector<TensorId> border;
    for (const std::size_t d : border_[s]) border.push_back(view_.data()[d].id);
    for (const bool first : {false, true}) {
      const auto kept = [&](TensorId id) { return outlasts(id, s, first); };
      const auto counted = [&](TensorId id) { return first || !is_output(id); };
      stage.pass_peak.of(first) = most(bytes_along(graph_, ops, {}, counted, kept));
      std::vector<TensorId> before;
      add_held_here(before, border, first);
      stage.pass_peak_with_border.of(first) = most(bytes_along(graph_, ops, before, counted, kept));
    }
  }

  bool is_output(TensorId id) const {
    const std::size_t d = data_of_[id.index()];
    return d != kNone && view_.data()[d].kept && by_forward(d);
  }
  // Counted elsewhere than where it is held between stages.
  bool free(TensorId id, bool first) const {
    const std::size_t d = data_of_[id.index()];
    return d != kNone && by_forward(d) &&
           (view_.data()[d].kept || (first && view_.data()[d].given));
  }
  // Whether forward data cross the border after a stage.
  bool crosses(std::size_t d, std::size_t s) const {
    return stage_[view_.data()[d].maker] <= s && s < last_forward_stage(d);
  }
  // Whether tensors of the forward of a stage exist after it, whatever is saved.
  bool outlasts(TensorId id, std::size_t s, bool first) const {
    const std::size_t d = data_of_[id.index()];
    if (d == kNone || !by_forward(d)) return false;
    return crosses(d, s) || (first && (view_.data()[d].kept || view_.data()[d].given));
  }
  bool crosses(TensorId id, std::size_t s) const {
    const std::size_t d = data_of_[id.index()];
    return d != kNone && crosses(d, s);
  }
  void add_held_here(std::vector<TensorId>& list, const std::vector<TensorId>& more,
                     bool first) const {
    for (const TensorId id : more)
      if (!free(id, first)) list.push_back(id);
  }

  // Whether tensors of a backward are needed after the backward of a stage.
  bool outlives(std::size_t d, std::size_t s) const {
    return view_.data()[d].kept || (needed_until_[d] != kNone && needed_until_[d] < s);
  }

  // The steps of the backward of a stage, each time the step after which the fewest bytes are in
  // use. So a weight gradient, after which the layer's input can be freed, comes before the ops
  // that the next backward reads.
  std::vector<LevelStep> leanest(std::size_t s, std::vector<LevelStep> steps) const {
    std::unordered_map<std::size_t, std::size_t> readers;  // by data, among the remaining steps
    for (const LevelStep& step : steps)
      for (const std::size_t d : reads_[step.node]) ++readers[d];
    const auto more = [&](std::size_t node) {
      Bytes bytes;
      for (const std::size_t d : view_.makes(node))
        if (readers.contains(d) || outlives(d, s)) bytes += view_.data()[d].bytes;
      for (const std::size_t d : reads_[node])
        if (readers.at(d) == 1 && !(!by_forward(d) && outlives(d, s)))
          bytes -= view_.data()[d].bytes;
      return bytes;
    };
    const auto waits = [&](std::size_t node, std::span<const LevelStep> others) {
      for (const OpId op : ops_of(node))
        for (const OpId before : graph_.predecessors(op)) {
          const std::size_t other = node_of_[before.index()];
          if (other != node && std::ranges::count(others, other, &LevelStep::node) > 0) return true;
        }
      return false;
    };
    std::vector<LevelStep> result;
    while (!steps.empty()) {
      std::size_t best = steps.size();
      for (std::size_t i = 0; i < steps.size(); ++i)
        if (!waits(steps[i].node, steps) &&
            (best == steps.size() || more(steps[i].node) < more(steps[best].node)))
          best = i;
      for (const std::size_t d : reads_[steps[best].node]) --readers.at(d);
      result.push_back(steps[best]);
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(best));
    }
    return result;
  }

  // The computations of the halves of a stage, and the earlier tensors that its backward reads.
  struct Halves {
    std::vector<OpId> forward, backward;
    std::unordered_set<TensorId> read;  // by the backward, before the backward makes it, if it does
    std::unordered_set<TensorId> saved;  // of these, tensors of the forward
    // Of these: tensors of backward nodes of other stages, and tensors that cross into the stage.
    std::vector<TensorId> gradients, border_read;
    std::vector<TensorId> border;  // all tensors that cross into the stage
    std::vector<TensorId> begun;   // tensors that a barrier here made for later backwards
  };

  void add_option(std::size_t s, std::vector<LevelStep> forward_steps,
                  std::vector<LevelStep> backward_steps) {
    StageOption option;
    option.forward = std::move(forward_steps);
    option.backward = std::move(backward_steps);
    Halves halves;
    halves.forward = level_.sequence(option.forward);
    halves.backward = level_.sequence(option.backward);
    const std::size_t ops = halves.forward.size() + halves.backward.size();
    if (limits_.spend_all(static_cast<std::int64_t>(2 * ops))) return;
    find_reads(s, halves);
    for (const OpId op : halves.forward) option.forward_time += graph_.time(op);
    for (const OpId op : halves.backward) option.backward_time += graph_.time(op);
    option.needs_forward = !halves.saved.empty();
    option.needs_inside =
        std::ranges::any_of(halves.saved, [&](TensorId id) { return !crosses(id, s); });
    option.needs_border = std::ranges::any_of(
        border_[s + 1], [&](std::size_t d) { return halves.read.contains(view_.data()[d].id); });
    for (const bool first : {false, true}) {
      set_forward_peaks(s, halves, first, option);
      set_held(s, halves, first, option);
      set_backward_peaks(s, halves, first, option);
    }
    std::vector<StageOption>& options = chain_.stages[s].options;
    for (const StageOption& other : options)
      if (other.forward == option.forward && other.backward == option.backward) return;
    options.push_back(std::move(option));
  }

  void find_reads(std::size_t s, Halves& halves) const {
    std::unordered_set<TensorId> made, seen;
    for (const OpId op : halves.forward)
      for (const TensorId id : graph_.outputs(op)) made.insert(id);
    for (const OpId op : halves.backward) {
      for (const TensorId id : graph_.inputs(op)) {
        if (!seen.insert(id).second) continue;
        halves.read.insert(id);
        if (made.contains(id)) halves.saved.insert(id);
        const std::size_t d = data_of_[id.index()];
        if (d != kNone && !by_forward(d) && stage_[view_.data()[d].maker] != s)
          halves.gradients.push_back(id);
      }
      for (const TensorId id : graph_.outputs(op)) seen.insert(id);
    }
    for (const TensorId id : made) {
      const std::size_t d = data_of_[id.index()];
      if (d != kNone && !by_forward(d) && !halves.saved.contains(id) && outlives(d, s))
        halves.begun.push_back(id);
    }
    for (const std::size_t d : border_[s]) {
      halves.border.push_back(view_.data()[d].id);
      if (halves.read.contains(view_.data()[d].id))
        halves.border_read.push_back(view_.data()[d].id);
    }
  }

  void set_forward_peaks(std::size_t s, const Halves& halves, bool first,
                         StageOption& option) const {
    const auto peak = [&](const std::vector<TensorId>& before) {
      return most(bytes_along(
          graph_, halves.forward, before, [&](TensorId id) { return first || !is_output(id); },
          [&](TensorId id) { return halves.read.contains(id) || outlasts(id, s, first); }));
    };
    option.forward_peak.of(first) = peak({});
    std::vector<TensorId> border;
    add_held_here(border, halves.border, first);
    option.forward_peak_with_border.of(first) = peak(border);
  }

  void set_held(std::size_t s, const Halves& halves, bool first, StageOption& option) const {
    Bytes& held = option.held.of(first);
    if (option.needs_border) held = chain_.stages[s].border.of(first);
    for (const TensorId id : halves.saved)
      if (!free(id, first) && !crosses(id, s)) held += graph_.bytes(id);
    for (const TensorId id : halves.border_read)
      if (!free(id, first)) option.held_before.of(first) += graph_.bytes(id);
  }

  void set_backward_peaks(std::size_t s, const Halves& halves, bool first,
                          StageOption& option) const {
    Bytes beside = chain_.stages[s].in_use + chain_.outputs;
    for (const TensorId id : halves.gradients) beside -= graph_.bytes(id);
    const auto peak = [&](const std::vector<TensorId>& before) {
      return beside +
             most(bytes_along(
                 graph_, halves.backward, before, [&](TensorId id) { return !is_output(id); },
                 [&](TensorId id) {
                   const std::size_t d = data_of_[id.index()];
                   return d != kNone && !by_forward(d) && outlives(d, s);
                 }));
    };
    std::vector<TensorId> before = halves.gradients;
    before.insert(before.end(), halves.begun.begin(), halves.begun.end());
    for (const TensorId id : halves.saved)
      if (!free(id, first)) before.push_back(id);
    option.backward_peak.of(first) = peak(before);
    add_held_here(before, halves.border_read, first);
    option.backward_peak_with_border.of(first) = peak(before);
  }

  Order order_;
  Limits& limits_;
  ChainView& chain_;
  std::vector<std::size_t> needed_until_;  // by data of a backward: the last stage that needs them
  std::vector<std::size_t> data_of_;       // by tensor
  std::vector<std::vector<std::size_t>> nodes_;   // by stage
  std::vector<std::vector<std::size_t>> border_;  // before each stage
};

}  // namespace

ChainView::ChainView(const BlockProblem& block, const Level& level, const LevelView& view,
                     std::size_t most_stages, Order order, Limits* limits) {
  ChainCuts cuts(block, level, view, most_stages);
  reason = cuts.reason();
  if (reason.empty() && limits != nullptr)
    StageMaker(std::move(cuts), order, *limits, *this).make();
}

}  // namespace lowtide::solve::hierarchy
