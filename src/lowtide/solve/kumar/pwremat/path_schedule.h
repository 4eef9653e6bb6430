// Algorithm 3 of Kumar et al.: a schedule from a path decomposition of a graph with a spine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/solve/kumar/pwremat/path_decomposition.h"

namespace lowtide::solve::kumar::pwremat {

// Nodes are numbered along the spine: each node but the first has its predecessor as an input.
struct SpinedGraph {
  Csr<Node> inputs;  // ascending
  PathDecomposition path;
};

// Schedules, stored as the two that they are concatenated from, since they share a lot.
class Ropes {
 public:
  using Rope = std::int32_t;
  static constexpr Rope kEmpty = -1;

  Rope single(Node node);
  Rope join(Rope a, Rope b);
  double length(Rope rope) const {
    return rope == kEmpty ? 0 : length_[static_cast<std::size_t>(rope)];
  }
  std::size_t size() const { return length_.size(); }
  void append(Rope rope, std::vector<Node>& schedule) const;

 private:
  std::vector<Rope> left_, right_;  // a single node: the node and -2
  std::vector<double> length_;
};

// <sigma, x> for each x of a bag: what to compute before x, when all earlier nodes of the bag
// exist.
struct Interleaved {
  std::vector<Node> nodes;  // ascending
  std::vector<Ropes::Rope> before;
};

class PathSchedule {
 public:
  // Stretches of fewer than `limit` bags are computed without recomputation. `spend` is charged
  // with work; if it says stop, or if there are too many ropes, the schedule is empty.
  PathSchedule(const SpinedGraph& graph, std::size_t limit,
               const std::function<bool(std::int64_t)>& spend);

  // The schedule of the whole graph, up to the last node of the spine; empty if it is longer than
  // `most`.
  std::optional<std::vector<Node>> schedule(std::size_t most);
  // The number of computations, as far as it is known.
  std::optional<double> length() const { return length_; }

  // For tests: each result of the two functions, with its arguments.
  struct Asked {
    std::int32_t low, high;  // bags
    Node bound;              // nodes above it do not exist
    std::span<const Node> known;
  };
  std::function<void(const Asked&, Ropes::Rope)> on_schedule;
  std::function<void(const Asked&, const Interleaved&)> on_interleaved;
  const Ropes& ropes() const { return ropes_; }

 private:
  using Rope = Ropes::Rope;
  using Nodes = std::vector<Node>;

  struct Range {
    std::int32_t low, high;
    bool empty() const { return low > high; }
    std::int32_t bags() const { return high - low + 1; }
  };

  bool within(Node node, const Range& range) const;
  Nodes bag(std::int32_t index, Node bound) const;
  bool thin(const Range& range, Node bound);
  Rope compute(const Range& range, Node node, const Nodes& known);
  Rope straight(const Range& range, Node node, const Nodes& known);
  Interleaved interleave(const Nodes& nodes, const Range& range, bool rightwards, Node bound,
                         const Nodes& known);
  Interleaved inner(const Nodes& nodes, const Range& range, const Nodes& known);
  bool stopped(std::size_t looked_at = 0);

  const SpinedGraph& graph_;
  std::size_t limit_;
  const std::function<bool(std::int64_t)>& spend_;
  std::vector<Nodes> bags_;
  Ropes ropes_;
  std::optional<double> length_;
  std::vector<std::uint32_t> mark_;
  std::uint32_t stamp_ = 0;
  bool stopped_ = false;
};

}  // namespace lowtide::solve::kumar::pwremat
