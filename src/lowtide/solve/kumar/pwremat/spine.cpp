// Problem: an order of the nodes to which a path decomposition can be fitted without much growth.
//
// Idea: depth first. When a node is done, those that it was the last to be waited for come next, in
// the order in which their intervals end. The node that the path has come to is put into the bags
// between itself and where the next one begins, all of which have the node of which both are
// children, so a bag gains at most one for each node that it has.
//
// Source: Kumar et al., NeurIPS 2019, appendix A.1, Algorithm 2 and Theorem 8. There intervals are
// only extended to the right. That does not do where the path has come to a node that lies
// altogether to the right of the next one; then it is extended to the left here. docs/why/
// tree-width.md has an example.
//
// Invariant: of two nodes in a row some bag has both.
//
// Loses: nothing of note.
#include "lowtide/solve/kumar/pwremat/spine.h"

#include <algorithm>

namespace lowtide::solve::kumar::pwremat {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

class Adder {
 public:
  Adder(const Csr<OpId>& makers, PathDecomposition path)
      : path_(std::move(path)), original_(path_), readers_(makers.rows()), missing_(makers.rows()) {
    for (std::size_t i = 0; i < makers.rows(); ++i) {
      missing_[i] = makers[i].size();
      for (OpId maker : makers[i]) readers_[maker.index()].push_back(static_cast<Node>(i));
    }
  }

  Spine run() {
    Frame root;
    for (std::size_t i = 0; i < missing_.size(); ++i)
      if (missing_[i] == 0) root.ready.push_back(static_cast<Node>(i));
    root.right = path_.bags - 1;
    sort(root.ready);
    std::vector<Frame> frames{std::move(root)};
    Node end = -1;  // the paper's x
    while (!frames.empty()) {
      Frame& frame = frames.back();
      if (frame.next < frame.ready.size()) {
        const Node node = frame.ready[frame.next];
        if (frame.next++ > 0) meet(end, original_.first[at(node)], original_.last[at(node)]);
        end = node;
        frames.push_back(enter(node));
        continue;
      }
      if (frames.size() > 1) path_.last[at(end)] = std::max(path_.last[at(end)], frame.right);
      frames.pop_back();
    }
    return {std::move(order_), std::move(path_)};
  }

 private:
  struct Frame {
    std::vector<Node> ready;
    std::size_t next = 0;
    std::int32_t right = 0;  // where the node's own interval ends
  };

  void sort(std::vector<Node>& nodes) const {
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](Node a, Node b) { return original_.last[at(a)] < original_.last[at(b)]; });
  }

  Frame enter(Node node) {
    order_.push_back(node);
    Frame frame;
    frame.right = original_.last[at(node)];
    for (Node reader : readers_[at(node)])
      if (--missing_[at(reader)] == 0) frame.ready.push_back(reader);
    sort(frame.ready);
    return frame;
  }

  // Extends the node's interval until it has a bag of [low, high].
  void meet(Node node, std::int32_t low, std::int32_t high) {
    if (path_.last[at(node)] < low) path_.last[at(node)] = low;
    if (path_.first[at(node)] > high) path_.first[at(node)] = high;
  }

  PathDecomposition path_;
  const PathDecomposition original_;
  std::vector<std::vector<Node>> readers_;
  std::vector<std::size_t> missing_;  // makers that have not been explored
  std::vector<Node> order_;
};

}  // namespace

Spine add_spine(const Csr<OpId>& makers, PathDecomposition path) {
  return Adder(makers, std::move(path)).run();
}

Spine along_order(std::vector<Node> order, PathDecomposition path) {
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::size_t a = at(order[i - 1]), b = at(order[i]);
    path.last[a] = std::max(path.last[a], path.first[b]);
    path.first[a] = std::min(path.first[a], path.last[b]);
  }
  return {std::move(order), std::move(path)};
}

}  // namespace lowtide::solve::kumar::pwremat
