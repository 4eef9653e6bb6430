// The forward is cut wherever few data cross. Each backward node then goes to a stage whose data it
// reads, as early in the backward as possible, but not before the stage of the forward nodes that
// read the same graph inputs. If the data and the dependencies of a node allow no stage, the stages
// between are joined.
#include "lowtide/solve/hierarchy/block/chain_cuts.h"

#include <cstdint>
#include <utility>

namespace lowtide::solve::hierarchy {

namespace {

constexpr std::size_t kMostCrossing = 3;  // most tensors between two stages

}  // namespace

ChainCuts::ChainCuts(const BlockProblem& block, const Level& level, const LevelView& view,
                     std::size_t most_stages)
    : block_(block), graph_(block.graph()), level_(level), view_(view) {
  bool has_backward = false;
  for (std::size_t k = 0; k < view_.node_count(); ++k) {
    if (k == view_.rest()) continue;
    view_.is_forward(k) ? forward_.push_back(k) : backward_.push_back(k);
    has_backward = has_backward || !view_.is_forward(k);
  }
  if (!has_backward || forward_.empty()) {
    reason_ = "there are no forward and backward halves, between which a chain is held";
    return;
  }
  find_readers();
  find_cuts();
  while (!find_stages()) {
  }
  if (stage_count() > most_stages) {
    join(most_stages);
    find_stages();
  }
  if (cuts_.empty())
    reason_ = "its forward nodes are no chain: nowhere do " + std::to_string(kMostCrossing) +
              " tensors or fewer cross";
}

std::vector<OpId> ChainCuts::ops_of(std::size_t node) const {
  const LevelNode& it = level_.nodes[node];
  if (it.op.valid()) return {it.op};
  std::vector<OpId> ops;
  for (const OpId op : level_.children[it.child].ops)
    if (block_.is_forward(op) == view_.is_forward(node)) ops.push_back(op);
  return ops;
}

void ChainCuts::find_readers() {
  place_.assign(view_.node_count(), 0);
  for (std::size_t i = 0; i < forward_.size(); ++i) place_[forward_[i]] = i;
  last_forward_.assign(view_.data().size(), 0);
  reads_.resize(view_.node_count());
  for (std::size_t d = 0; d < view_.data().size(); ++d)
    last_forward_[d] = place_[view_.data()[d].maker];
  for (std::size_t k = 0; k < view_.node_count(); ++k) {
    if (k == view_.rest()) continue;
    for (const NodeRun& run : view_.runs(k))
      reads_[k].insert(reads_[k].end(), run.reads.begin(), run.reads.end());
    std::ranges::sort(reads_[k]);
    const auto again = std::ranges::unique(reads_[k]);
    reads_[k].erase(again.begin(), again.end());
    if (!view_.is_forward(k)) continue;
    for (const std::size_t d : reads_[k]) last_forward_[d] = std::max(last_forward_[d], place_[k]);
  }
  // Ops that a backward op follows although it reads none of their data.
  node_of_.assign(graph_.op_count(), kNone);
  for (std::size_t k = 0; k < view_.node_count(); ++k) {
    const LevelNode& node = level_.nodes[k];
    if (node.op.valid())
      node_of_[node.op.index()] = k;
    else
      for (const OpId op : level_.children[node.child].ops)
        if (block_.is_forward(op) == view_.is_forward(k)) node_of_[op.index()] = k;
  }
}

void ChainCuts::find_cuts() {
  std::vector<std::ptrdiff_t> change(forward_.size() + 1, 0);
  for (std::size_t d = 0; d < last_forward_.size(); ++d) {
    if (!by_forward(d)) continue;
    ++change[place_[view_.data()[d].maker]];
    --change[last_forward_[d]];
  }
  std::ptrdiff_t crossing = 0;
  for (std::size_t i = 0; i + 1 < forward_.size(); ++i) {
    crossing += change[i];
    if (crossing <= static_cast<std::ptrdiff_t>(kMostCrossing)) cuts_.push_back(i);
  }
}

// Each new stage is a range of old stages, and all assignments stay valid.
void ChainCuts::join(std::size_t most_stages) {
  const std::size_t count = stage_count();
  std::vector<std::size_t> left;
  for (std::size_t i = 1; i < count; ++i)
    if (i * most_stages / count > (i - 1) * most_stages / count) left.push_back(cuts_[i - 1]);
  cuts_ = std::move(left);
}

// The last stage whose forward reads an input of the graph; the last stage if none does.
std::size_t ChainCuts::last_reading(TensorId input) const {
  std::size_t last = kNone;
  for (const OpId reader : graph_.consumers(input)) {
    const std::size_t node = node_of_[reader.index()];
    if (node == kNone || node == view_.rest() || !view_.is_forward(node)) continue;
    last = last == kNone ? stage_[node] : std::max(last, stage_[node]);
  }
  return last == kNone ? cuts_.size() : last;
}

// Returns false if stages had to be joined.
bool ChainCuts::find_stages() {
  stage_.assign(view_.node_count(), 0);
  for (std::size_t i = 0; i < forward_.size(); ++i) stage_[forward_[i]] = stage_at(i);
  std::vector<std::uint8_t> joined(cuts_.size(), 0);
  for (const std::size_t b : backward_) {
    std::size_t low = 0, high = cuts_.size(), most = cuts_.size();
    for (const std::size_t d : reads_[b]) {
      if (!by_forward(d)) continue;
      low = std::max(low, stage_[view_.data()[d].maker]);
      high = std::min(high, stage_at(last_forward_[d]));
    }
    if (const std::size_t f = view_.partner(b); f != kNone) {
      low = std::max(low, stage_[f]);
      high = std::min(high, stage_[f]);
    }
    std::size_t mirrored = cuts_.size();
    for (const OpId op : ops_of(b)) {
      for (const TensorId id : graph_.inputs(op))
        if (graph_.is_input(id)) mirrored = std::min(mirrored, last_reading(id));
      for (const OpId before : graph_.predecessors(op)) {
        const std::size_t node = node_of_[before.index()];
        if (node != kNone && node != b && node != view_.rest() && !view_.is_forward(node))
          most = std::min(most, stage_[node]);
      }
    }
    stage_[b] = std::min({high, most, std::max(low, mirrored)});
    for (std::size_t cut = stage_[b]; cut < low; ++cut) joined[cut] = 1;
  }
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < cuts_.size(); ++i)
    if (joined[i] == 0) left.push_back(cuts_[i]);
  const bool done = left.size() == cuts_.size();
  cuts_ = std::move(left);
  return done;
}

}  // namespace lowtide::solve::hierarchy
