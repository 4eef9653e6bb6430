// Problem: memory polylogarithmic in the size of a graph, and length nearly linear, where its
// path-width is small.
//
// Idea: cut the path decomposition in the middle. The boundary depends on the far half only through
// the middle bag. In the near half, nodes that come before the last node of the middle bag are
// computed without this last node, in bags that all lack a node. So each step either halves the
// number of bags or makes them smaller by one node.
//
// Source: Kumar et al., NeurIPS 2019, appendix A.4: PWRemat (`compute`), InterleavedSchedule
// (`interleave`), Condense and Flatten. Three things are ours. Known nodes are omitted, where the
// paper recomputes them. A tuple contains only those earlier stretches that its node reads from,
// where the paper's contains all; their separators are known, and omitted. The limit is ours, as in
// TWRemat(k). docs/why/tree-width.md explains what the paper leaves open.
//
// Invariant (checked by the tests): the result of `compute` is valid if the known set and all nodes
// outside the range exist; so is each tuple that `interleave` returns.
//
// Loses: wherever bags are not small. The length has a factor that is exponential in their size.
#include "lowtide/solve/kumar/pwremat/path_schedule.h"

#include <algorithm>
#include <iterator>

namespace lowtide::solve::kumar::pwremat {

namespace {

constexpr Ropes::Rope kSingle = -2;
constexpr std::size_t kMostRopes = 20'000'000;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

bool contains(const std::vector<Node>& nodes, Node node) {
  return std::binary_search(nodes.begin(), nodes.end(), node);
}

std::vector<Node> united(const std::vector<Node>& a, const std::vector<Node>& b) {
  std::vector<Node> result;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

}  // namespace

Ropes::Rope Ropes::single(Node node) {
  left_.push_back(node);
  right_.push_back(kSingle);
  length_.push_back(1);
  return static_cast<Rope>(length_.size()) - 1;
}

Ropes::Rope Ropes::join(Rope a, Rope b) {
  if (a == kEmpty) return b;
  if (b == kEmpty) return a;
  left_.push_back(a);
  right_.push_back(b);
  length_.push_back(length(a) + length(b));
  return static_cast<Rope>(length_.size()) - 1;
}

void Ropes::append(Rope rope, std::vector<Node>& schedule) const {
  if (rope == kEmpty) return;
  std::vector<Rope> stack{rope};
  while (!stack.empty()) {
    const Rope top = stack.back();
    stack.pop_back();
    if (right_[at(top)] == kSingle) {
      schedule.push_back(left_[at(top)]);
      continue;
    }
    stack.push_back(right_[at(top)]);
    stack.push_back(left_[at(top)]);
  }
}

PathSchedule::PathSchedule(const SpinedGraph& graph, std::size_t limit,
                           const std::function<bool(std::int64_t)>& spend)
    : graph_(graph),
      limit_(limit),
      spend_(spend),
      bags_(graph.path.bag_contents()),
      mark_(graph.inputs.rows(), 0) {}

std::optional<std::vector<Node>> PathSchedule::schedule(std::size_t most) {
  std::vector<Node> result;
  if (graph_.inputs.rows() == 0) return result;
  const auto end = static_cast<Node>(graph_.inputs.rows()) - 1;
  const Rope rope = compute({0, graph_.path.bags - 1}, end, {});
  if (stopped_) return std::nullopt;
  length_ = ropes_.length(rope);
  if (*length_ > static_cast<double>(most)) return std::nullopt;
  result.reserve(static_cast<std::size_t>(*length_));
  ropes_.append(rope, result);
  return result;
}

bool PathSchedule::stopped(std::size_t looked_at) {
  const auto units = 1 + static_cast<std::int64_t>(looked_at / 16);
  if (!stopped_) stopped_ = spend_(units) || ropes_.size() > kMostRopes;
  return stopped_;
}

bool PathSchedule::within(Node node, const Range& range) const {
  return graph_.path.first[at(node)] <= range.high && graph_.path.last[at(node)] >= range.low;
}

PathSchedule::Nodes PathSchedule::bag(std::int32_t index, Node bound) const {
  const Nodes& all = bags_[at(index)];
  return {all.begin(), std::upper_bound(all.begin(), all.end(), bound)};
}

// Path-width 1: no bag has more than two nodes.
bool PathSchedule::thin(const Range& range, Node bound) {
  for (std::int32_t index = range.low; index <= range.high; ++index) {
    const Nodes& all = bags_[at(index)];
    if (all.size() > 2 && all[2] <= bound) return false;
    if (index % 32 == 31) stopped();
  }
  return true;
}

// All ancestors of the node, each once.
PathSchedule::Rope PathSchedule::straight(const Range& range, Node node, const Nodes& known) {
  Nodes needed{node};
  mark_[at(node)] = ++stamp_;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    for (Node input : graph_.inputs[at(needed[i])]) {
      if (mark_[at(input)] == stamp_ || !within(input, range) || contains(known, input)) continue;
      mark_[at(input)] = stamp_;
      needed.push_back(input);
    }
    if (i % 8 == 7) stopped();
  }
  std::sort(needed.begin(), needed.end());
  // Joined in halves, so that ropes do not get deep.
  const auto join = [&](auto&& self, std::size_t begin, std::size_t end) -> Rope {
    if (end - begin == 1) return ropes_.single(needed[begin]);
    const std::size_t middle = begin + (end - begin) / 2;
    const Rope left = self(self, begin, middle);
    return ropes_.join(left, self(self, middle, end));
  };
  return join(join, 0, needed.size());
}

PathSchedule::Rope PathSchedule::compute(const Range& range, Node node, const Nodes& known) {
  if (stopped() || !within(node, range) || contains(known, node)) return Ropes::kEmpty;
  const auto inputs = graph_.inputs[at(node)];
  const bool ready = std::all_of(inputs.begin(), inputs.end(), [&](Node input) {
    return !within(input, range) || contains(known, input);
  });
  Rope result = Ropes::kEmpty;
  if (ready) {
    result = ropes_.single(node);
  } else if (at(range.bags()) < limit_ || thin(range, node)) {
    result = straight(range, node, known);
  } else {
    const std::int32_t middle =
        std::clamp(range.low + range.bags() / 2, std::max(range.low, graph_.path.first[at(node)]),
                   std::min(range.high, graph_.path.last[at(node)]));
    const Nodes nodes = bag(middle, node);
    const auto left = interleave(nodes, {range.low, middle - 1}, false, node, known);
    const auto right = interleave(nodes, {middle + 1, range.high}, true, node, known);
    // Flatten.
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (contains(known, nodes[i])) continue;
      result = ropes_.join(result, ropes_.join(left.before[i], right.before[i]));
      result = ropes_.join(result, ropes_.single(nodes[i]));
    }
  }
  if (on_schedule && !stopped_) on_schedule({range.low, range.high, node, known}, result);
  return result;
}

// The paper's I_inner: what each of the nodes needs of the range, which lies before the last of
// them.
Interleaved PathSchedule::inner(const Nodes& nodes, const Range& range, const Nodes& known) {
  Interleaved result{nodes, Nodes(nodes.size(), Ropes::kEmpty)};
  if (range.empty() || nodes.empty()) return result;
  // For each node, the stretches between nodes that it reads from.
  std::vector<std::vector<std::size_t>> reads(nodes.size());
  std::vector<std::uint8_t> wanted(nodes.size(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (contains(known, nodes[i])) continue;
    for (Node input : graph_.inputs[at(nodes[i])]) {
      if (!within(input, range) || contains(known, input) || contains(nodes, input)) continue;
      const auto stretch = static_cast<std::size_t>(
          std::upper_bound(nodes.begin(), nodes.end(), input) - nodes.begin());
      if (reads[i].empty() || reads[i].back() != stretch) reads[i].push_back(stretch);
      wanted[stretch] = 1;
    }
  }
  Nodes held;
  for (Node node : known)
    if (within(node, range)) held.push_back(node);
  std::vector<Rope> stretches(nodes.size(), Ropes::kEmpty);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (wanted[i] != 0) stretches[i] = compute(range, nodes[i] - 1, held);
    if (within(nodes[i], range) && !contains(held, nodes[i]))
      held.insert(std::lower_bound(held.begin(), held.end(), nodes[i]), nodes[i]);
    for (std::size_t stretch : reads[i])
      result.before[i] = ropes_.join(result.before[i], stretches[stretch]);
  }
  return result;
}

Interleaved PathSchedule::interleave(const Nodes& nodes, const Range& range, bool rightwards,
                                     Node bound, const Nodes& known) {
  Interleaved result{nodes, std::vector<Rope>(nodes.size(), Ropes::kEmpty)};
  const auto is_known = [&](Node node) { return contains(known, node); };
  const bool needs =
      !range.empty() && !stopped() && std::any_of(nodes.begin(), nodes.end(), [&](Node node) {
        if (is_known(node)) return false;
        const auto inputs = graph_.inputs[at(node)];
        return std::any_of(inputs.begin(), inputs.end(), [&](Node input) {
          return within(input, range) && !is_known(input) && !contains(nodes, input);
        });
      });
  if (!needs) return result;
  const std::int32_t half = (range.bags() - 1) / 2;
  const std::int32_t middle = rightwards ? range.low + half : range.high - half;
  const Range left{range.low, middle - 1}, right{middle + 1, range.high};
  const Range &near = rightwards ? left : right, &far = rightwards ? right : left;
  const Nodes cut = bag(middle, bound);
  Nodes early;  // the paper's X'
  for (Node node : nodes)
    if (!cut.empty() && node < cut.back()) early.push_back(node);
  const Nodes both = united(early, cut);
  Nodes late;
  std::set_difference(nodes.begin(), nodes.end(), both.begin(), both.end(),
                      std::back_inserter(late));
  const Interleaved parts[] = {inner(both, near, known),
                               interleave(cut, far, rightwards, bound, known),
                               interleave(late, near, rightwards, bound, united(known, both))};
  // Condense.
  Rope before = Ropes::kEmpty;
  std::size_t out = 0, next[] = {0, 0, 0};
  for (Node node : united(both, late)) {
    Rope here = Ropes::kEmpty;
    for (std::size_t p = 0; p < 3; ++p) {
      if (next[p] >= parts[p].nodes.size() || parts[p].nodes[next[p]] != node) continue;
      here = ropes_.join(here, parts[p].before[next[p]++]);
    }
    const bool is_asked = out < nodes.size() && nodes[out] == node;
    if (!is_known(node)) before = ropes_.join(before, here);
    if (is_asked && !is_known(node)) {
      result.before[out] = before;
      before = Ropes::kEmpty;
    } else if (!is_known(node)) {
      before = ropes_.join(before, ropes_.single(node));
    }
    out += is_asked ? 1 : 0;
  }
  if (on_interleaved && !stopped_) on_interleaved({range.low, range.high, bound, known}, result);
  return result;
}

}  // namespace lowtide::solve::kumar::pwremat
