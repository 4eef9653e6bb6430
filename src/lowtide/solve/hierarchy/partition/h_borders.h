// The bytes that cross the borders of nodes, or of sets of nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/solve/hierarchy/partition/layer_dag.h"
#include "lowtide/solve/hierarchy/partition/marks.h"

namespace lowtide::solve::partition {

// A value has ends: its producer, its readers, and one more if it leaves the network. A value
// crosses the border of a set of nodes if the set has some of its ends, but not all.
class Borders {
 public:
  // A node with more values than this is large.
  Borders(const LayerDag& dag, std::size_t large);
  explicit Borders(const LayerDag& dag);

  // The bytes of a set. The time grows with the values of the nodes that were not in the previous
  // set; large nodes are counted once for each set of large nodes.
  Bytes around(std::span<const Node> nodes);
  // Merges the nodes into one of them, `into`.
  void merge(std::span<const Node> nodes, Node into);

 private:
  using List = std::vector<Node>;
  using Values = std::unordered_set<std::uint32_t>;
  struct Value {
    Bytes bytes;
    std::uint32_t ends;        // total
    std::uint32_t inside = 0;  // in the present set; valid if known_
    bool crosses() const { return inside > 0 && inside < ends; }
  };

  bool is_large(Node node) const { return index_[node] != nullptr; }
  void index_if_large(Node node);
  void begin(const List& large);
  Bytes around_large(const List& large);
  void add(Node node);
  void remove(Node node);
  Value& known(std::uint32_t value);

  std::size_t large_;
  std::vector<Value> values_;
  // The values of which each node has an end. Values that have become internal stay until the list
  // is compacted.
  std::vector<List> values_of_;
  std::vector<Bytes> border_;                   // by node
  std::vector<std::unique_ptr<Values>> index_;  // by large node: its values as a set

  // The present set: the one of the last call.
  List current_large_, current_;
  Bytes bytes_;
  Marks known_, asked_, in_;
  std::map<List, Bytes> together_;  // borders of sets of large nodes
};

}  // namespace lowtide::solve::partition
