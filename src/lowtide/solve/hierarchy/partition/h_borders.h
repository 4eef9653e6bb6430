// Bytes that cross the borders of nodes, alone or together.
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

// Values have ends: the nodes that make and read them, and one more where they leave. A value
// crosses the border of some nodes if they have one of its ends and not all.
class Borders {
 public:
  // A node is large from more than so many values on.
  Borders(const LayerDag& dag, std::size_t large);
  explicit Borders(const LayerDag& dag);

  // Of all these together. In time that grows with the values of the nodes that were not asked for
  // the last time; large nodes count only where they come together for the first time.
  Bytes around(std::span<const Node> nodes);
  // The nodes become one of them, `into`.
  void merge(std::span<const Node> nodes, Node into);

 private:
  using List = std::vector<Node>;
  using Values = std::unordered_set<std::uint32_t>;
  struct Value {
    Bytes bytes;
    std::uint32_t ends;        // in all
    std::uint32_t inside = 0;  // those that the current nodes have, if that is known
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
  // Of each node, the values of which it has an end. Some that nothing else has stay until the list
  // is put in order.
  std::vector<List> values_of_;
  std::vector<Bytes> border_;                   // of each node
  std::vector<std::unique_ptr<Values>> index_;  // of a large node, its values once more

  // The current nodes: those asked for the last time.
  List current_large_, current_;
  Bytes bytes_;
  Marks known_, asked_, in_;
  std::map<List, Bytes> together_;  // borders of several large nodes
};

}  // namespace lowtide::solve::partition
