#include "lowtide/solve/hierarchy/partition/layer_dag.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lowtide/graph/make_partition.h"

namespace lowtide::solve::partition {

namespace {

constexpr Node kNone = UINT32_MAX;

// Links by their ends, in two passes of counting sort: each row ascending, without duplicates.
Csr<Node> rows_of(std::size_t rows, const std::vector<std::pair<Node, Node>>& links) {
  std::vector<std::size_t> first(rows + 1, 0);
  for (const auto& [row, item] : links) ++first[row + 1];
  for (std::size_t i = 0; i < rows; ++i) first[i + 1] += first[i];
  std::vector<Node> items(links.size());
  std::vector<std::size_t> next(first.begin(), first.end() - 1);
  for (const auto& [row, item] : links) items[next[row]++] = item;
  Csr<Node> csr;
  csr.reserve(rows, links.size());
  for (std::size_t row = 0; row < rows; ++row) {
    const auto begin = items.begin() + static_cast<std::ptrdiff_t>(first[row]);
    const auto end = items.begin() + static_cast<std::ptrdiff_t>(first[row + 1]);
    std::sort(begin, end);
    for (auto item = begin; item != end; ++item)
      if (item == begin || *item != *(item - 1)) csr.push(*item);
    csr.end_row();
  }
  return csr;
}

class DagMaker {
 public:
  explicit DagMaker(std::size_t nodes) : nodes_(nodes) {}

  void link(Node before, Node behind) {
    if (before != behind) links_.emplace_back(behind, before);
  }
  // A value may be read many times by one node, and by its maker.
  void value(Node maker, Bytes bytes, bool leaves, std::vector<Node>& readers) {
    std::ranges::sort(readers);
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    std::erase(readers, maker);
    if (readers.empty() && !leaves) return;
    dag_.values.push_back({maker, bytes, leaves});
    for (const Node reader : readers) dag_.readers.push(reader);
    dag_.readers.end_row();
  }
  LayerDag make() {
    dag_.before = rows_of(nodes_, links_);
    for (auto& [row, item] : links_) std::swap(row, item);
    dag_.behind = rows_of(nodes_, links_);
    links_.clear();
    for (std::uint32_t i = 0; i < dag_.values.size(); ++i)
      links_.emplace_back(dag_.values[i].maker, i);
    dag_.made = rows_of(nodes_, links_);
    links_.clear();
    for (std::uint32_t i = 0; i < dag_.values.size(); ++i)
      for (const Node reader : dag_.readers[i]) links_.emplace_back(reader, i);
    dag_.read = rows_of(nodes_, links_);
    return std::move(dag_);
  }

 private:
  std::size_t nodes_;
  LayerDag dag_;
  std::vector<std::pair<Node, Node>> links_;
};

}  // namespace

namespace {

// Numbers the layers in the given order, and for `flow` finds the neighbour into which each is
// merged.
class LayerNodes {
 public:
  LayerNodes(const Graph& graph, const Phases& phases)
      : graph_(graph), phases_(phases), number_(graph.op_count(), kNone) {
    for (const OpId op : graph.order()) {
      if (phases.layer[op] != op) continue;
      number_[op] = static_cast<Node>(layers_.size());
      layers_.push_back(op);
    }
    count_ = layers_.size();
    node_.resize(count_);
    std::iota(node_.begin(), node_.end(), Node{0});
  }

  // The node of an op, forward or backward; kNone for an op without layer.
  Node of(OpId op) const {
    const OpId layer = phases_.layer[op];
    return layer.valid() ? node_[number_[layer]] : kNone;
  }
  std::size_t count() const { return count_; }
  // Whether only its own node reads the op's tensors.
  bool is_side(OpId op) const { return !side_.empty() && side_[number_[op]] != 0; }

  void join_sides() {
    side_.assign(layers_.size(), 0);
    std::vector<Node> with(node_);
    std::vector<Near> before, behind;
    for (Node layer = 0; layer < layers_.size(); ++layer) {
      before.push_back(makers(layer));
      behind.push_back(readers(layer));
    }
    std::vector<std::uint8_t> is_on_way;  // whether it reads a layer that reads other layers
    for (Node layer = 0; layer < layers_.size(); ++layer)
      is_on_way.push_back(reads_reader(layer, before) ? 1 : 0);
    for (Node layer = 0; layer < layers_.size(); ++layer) {
      const Node maker = before[layer].first, reader = behind[layer].first;
      if (before[layer].count == 0 && reader != kNone && is_on_way[reader] != 0) {
        with[layer] = reader;
        side_[layer] = 1;
      } else if (behind[layer].count == 0 && before[layer].count == 1 && behind[maker].count > 1 &&
                 before[maker].count > 0) {
        with[layer] = maker;
      }
    }
    Node next = 0;
    for (Node layer = 0; layer < layers_.size(); ++layer)
      if (with[layer] == layer) node_[layer] = next++;
    for (Node layer = 0; layer < layers_.size(); ++layer)
      if (with[layer] != layer) node_[layer] = node_[with[layer]];
    count_ = next;
  }
  Csr<OpId> ops() const {
    std::vector<std::pair<Node, Node>> links;
    for (Node layer = 0; layer < layers_.size(); ++layer) links.emplace_back(node_[layer], layer);
    const Csr<Node> rows = rows_of(count_, links);
    Csr<OpId> ops;
    for (Node node = 0; node < count_; ++node) {
      for (const Node layer : rows[node]) ops.push(layers_[layer]);
      ops.end_row();
    }
    return ops;
  }

 private:
  // The neighbouring layers: the first of them, and whether there are none, one or more.
  struct Near {
    Node first = kNone;
    int count = 0;
    void add(Node layer) {
      if (layer == first) return;
      count = std::min(count + 1, 2);
      first = std::min(first, layer);
    }
  };
  Node forward_layer(OpId op) const {
    return op.valid() && phases_.layer[op] == op ? number_[op] : kNone;
  }
  Near makers(Node layer) const {
    Near near;
    for (const TensorId tensor : graph_.inputs(layers_[layer]))
      if (const Node other = forward_layer(graph_.producer(tensor)); other != kNone)
        near.add(other);
    return near;
  }
  Near readers(Node layer) const {
    Near near;
    for (const TensorId tensor : graph_.outputs(layers_[layer]))
      for (const OpId reader : graph_.consumers(tensor))
        if (const Node other = forward_layer(reader); other != kNone) near.add(other);
    return near;
  }
  bool reads_reader(Node layer, const std::vector<Near>& before) const {
    return std::ranges::any_of(graph_.inputs(layers_[layer]), [&](TensorId tensor) {
      const Node other = forward_layer(graph_.producer(tensor));
      return other != kNone && before[other].count > 0;
    });
  }

  const Graph& graph_;
  const Phases& phases_;
  IdVector<OpId, Node> number_;
  std::vector<OpId> layers_;
  std::vector<Node> node_;          // by layer
  std::vector<std::uint8_t> side_;  // by layer
  std::size_t count_ = 0;
};

}  // namespace

Layers layers_of(const Graph& graph, const Phases& phases, Links links) {
  LayerNodes nodes(graph, phases);
  if (links == Links::flow) nodes.join_sides();
  DagMaker maker(nodes.count());
  std::vector<Node> readers;
  for (const OpId op : graph.order()) {
    const Node mine = nodes.of(op);
    if (mine == kNone) continue;
    const bool forward = phases.of[op] == Phase::forward;
    if (links == Links::all)
      for (const OpId next : graph.successors(op)) {
        const Node other = nodes.of(next);
        if (other == kNone || phases.of[next] != phases.of[op]) continue;
        forward ? maker.link(mine, other) : maker.link(other, mine);
      }
    if (!forward) continue;
    const bool side = nodes.is_side(op);
    for (const TensorId tensor : graph.outputs(op)) {
      bool leaves = graph.is_output(tensor);
      readers.clear();
      for (const OpId reader : graph.consumers(tensor)) {
        if (phases.of[reader] == Phase::backward) continue;
        const Node other = nodes.of(reader);
        if (other == kNone) {
          leaves = true;
          continue;
        }
        readers.push_back(other);
        if (links == Links::flow && !side) maker.link(mine, other);
      }
      maker.value(mine, graph.bytes(tensor), leaves, readers);
    }
  }
  return {nodes.ops(), maker.make()};
}

LayerDag contract(const LayerDag& dag, std::span<const Node> group, std::size_t groups) {
  DagMaker maker(groups);
  for (Node node = 0; node < dag.size(); ++node)
    for (const Node before : dag.before[node]) maker.link(group[before], group[node]);
  std::vector<Node> readers;
  for (std::uint32_t i = 0; i < dag.values.size(); ++i) {
    readers.clear();
    for (const Node reader : dag.readers[i]) readers.push_back(group[reader]);
    const LayerDag::Value& value = dag.values[i];
    maker.value(group[value.maker], value.bytes, value.leaves, readers);
  }
  return maker.make();
}

LayerDag induced(const LayerDag& dag, std::span<const Node> nodes) {
  const auto number = [&](Node node) {
    const auto found = std::ranges::lower_bound(nodes, node);
    return found != nodes.end() && *found == node ? static_cast<Node>(found - nodes.begin())
                                                  : kNone;
  };
  DagMaker maker(nodes.size());
  std::vector<Node> readers;
  for (Node i = 0; i < nodes.size(); ++i) {
    for (const Node before : dag.before[nodes[i]])
      if (const Node other = number(before); other != kNone) maker.link(other, i);
    for (const std::uint32_t value : dag.made[nodes[i]]) {
      bool leaves = dag.values[value].leaves;
      readers.clear();
      for (const Node reader : dag.readers[value]) {
        if (const Node other = number(reader); other != kNone)
          readers.push_back(other);
        else
          leaves = true;
      }
      maker.value(i, dag.values[value].bytes, leaves, readers);
    }
  }
  return maker.make();
}

void add_runs(BlockTree& tree, std::span<const OpId> ops, std::size_t most) {
  if (ops.size() < 2) return;
  std::vector<std::size_t> lengths{most};
  while (lengths.back() < ops.size()) lengths.push_back(lengths.back() * most);
  std::vector<BlockId> open(lengths.size() + 1, Partition::root());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    for (std::size_t k = lengths.size(); k-- > 0;)
      if (i % lengths[k] == 0) open[k] = tree.add(open[k + 1]);
    tree.block_of[ops[i]] = open.front();
  }
}

Partition spread(const Graph& graph, Phases phases, const Layers& layers,
                 std::span<const BlockId> block_of, BlockTree tree, std::size_t most) {
  tree.block_of.assign(graph.op_count(), Partition::root());
  for (std::size_t i = 0; i < layers.ops.rows(); ++i)
    for (const OpId op : layers.ops[i]) tree.block_of[op] = block_of[i];
  std::vector<OpId> last, single;
  for (Node node = 0; node < layers.dag.size(); ++node) {
    const bool linked = !layers.dag.before[node].empty() || !layers.dag.behind[node].empty();
    const bool free = block_of[node] == Partition::root() && !linked;
    if (free) single.insert(single.end(), layers.ops[node].begin(), layers.ops[node].end());
  }
  add_runs(tree, single, most);
  for (const OpId op : graph.order()) {
    const OpId layer = phases.layer[op];
    if (layer.valid())
      tree.block_of[op] = tree.block_of[layer];
    else if (phases.of[op] == Phase::backward)
      last.push_back(op);
  }
  add_runs(tree, last, most);
  return make_partition(graph, std::move(phases), tree);
}

}  // namespace lowtide::solve::partition
