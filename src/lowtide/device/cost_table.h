// Measured costs of operator calls on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/ops/call.h"

namespace lowtide {

// The cost of one call. ns may be 0.
struct CallCost {
  std::int64_t ns = 0;
  Bytes workspace;
  bool operator==(const CallCost&) const = default;
};

// Calls are distinguished by kind, by shapes, strides and number types of their operands, and by
// their literal arguments. The order of arguments and offsets do not matter.
class CostTable {
 public:
  struct Entry {
    std::string kind;
    std::vector<Operand> operands;  // `tensor` and `offset` are ignored
    std::vector<Argument> arguments;
    CallCost cost;
  };

  // Returns false, and changes nothing, if the call is present.
  bool add(Entry entry);
  const CallCost* find(const Call& call) const;  // null: not measured
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
};

// The table in which each op with operands has the cost that the graph states, the first of equal
// calls; for graphs with measured times. Throws InputError (place: "graph") if the tick is no time.
CostTable costs_of(const Graph& graph);

}  // namespace lowtide
