// The four rules that change which nodes of an F-Tree are enabled.
#include <algorithm>

#include "lowtide/rewrite/fission_tree.h"

namespace lowtide::rewrite {

namespace {

class Moves {
 public:
  Moves(const FissionTree& tree, const Fission& now, bool nest)
      : tree_(tree), now_(now), nest_(nest) {}

  std::vector<FissionMove> take() { return std::move(found_); }

  void enable(Enable where) {
    for (std::size_t node = 0; node < now_.size(); ++node) {
      if (is_enabled(node)) continue;
      const bool may = where == Enable::any || tree_.nodes[node].children.empty() ||
                       std::ranges::any_of(tree_.nodes[node].children,
                                           [&](std::size_t child) { return is_enabled(child); });
      // The parent of a topmost enabled node is itself without enabled ancestors.
      if (may && (tree_.nodes[node].children.empty() || where == Enable::any ||
                  !has_enabled_ancestor(node)))
        add(FissionRule::enable, node, FissionNode::kNone);
    }
  }
  void lift() {
    for (std::size_t node = 0; node < now_.size(); ++node) {
      const std::size_t parent = tree_.nodes[node].parent;
      if (is_enabled(node) && parent != FissionNode::kNone && !has_enabled_ancestor(node))
        add(FissionRule::lift, parent, node);
    }
  }
  void disable() {
    for (std::size_t node = 0; node < now_.size(); ++node)
      if (is_enabled(node) && !has_enabled_descendant(node)) {
        Fission after = now_;
        after[node] = 1;
        found_.push_back({FissionRule::disable, node, std::move(after)});
      }
  }
  void mutate() {
    for (std::size_t node = 0; node < now_.size(); ++node) {
      if (!is_enabled(node)) continue;
      const auto& numbers = tree_.nodes[node].numbers;
      const auto next = std::ranges::upper_bound(numbers, now_[node]);
      if (next == numbers.end()) continue;
      Fission after = now_;
      after[node] = *next;
      found_.push_back({FissionRule::mutate, node, std::move(after)});
    }
  }

 private:
  bool is_enabled(std::size_t node) const { return now_[node] > 1; }
  bool has_enabled_ancestor(std::size_t node) const {
    for (std::size_t at = tree_.nodes[node].parent; at != FissionNode::kNone;
         at = tree_.nodes[at].parent)
      if (is_enabled(at)) return true;
    return false;
  }
  bool has_enabled_descendant(std::size_t node) const {
    for (std::size_t other = node + 1; other < now_.size(); ++other)
      if (is_enabled(other) && tree_.is_above(node, other)) return true;
    return false;
  }

  // Enables the node after `instead` is disabled.
  void add(FissionRule rule, std::size_t node, std::size_t instead) {
    Fission after = now_;
    if (instead != FissionNode::kNone) after[instead] = 1;
    for (std::size_t other = 0; other < after.size(); ++other) {
      if (after[other] == 1 || other == node) continue;
      if (tree_.is_across(node, other)) return;
      if (!nest_ && (tree_.is_above(node, other) || tree_.is_above(other, node))) return;
    }
    after[node] = tree_.nodes[node].numbers.front();
    found_.push_back({rule, node, std::move(after)});
  }

  const FissionTree& tree_;
  const Fission& now_;
  bool nest_;
  std::vector<FissionMove> found_;
};

}  // namespace

std::string_view to_string(FissionRule rule) {
  switch (rule) {
    case FissionRule::enable: return "enable";
    case FissionRule::lift: return "lift";
    case FissionRule::disable: return "disable";
    case FissionRule::mutate: return "mutate";
  }
  return "?";
}

std::vector<FissionMove> fission_moves(const FissionTree& tree, const Fission& now, Enable enable,
                                       bool nest) {
  Moves moves(tree, now, nest);
  moves.enable(enable);
  moves.lift();
  moves.disable();
  moves.mutate();
  return moves.take();
}

}  // namespace lowtide::rewrite
