// What calls of operators were seen to take on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/ops/call.h"

namespace lowtide {

// Of one call. ns may be 0 for what takes no time of its own.
struct CallCost {
  std::int64_t ns = 0;
  Bytes workspace;
  bool operator==(const CallCost&) const = default;
};

// Calls are told apart by kind, by shapes, strides and number types of their operands, and by their
// literal arguments, whose order is nothing. Offsets are nothing either.
class CostTable {
 public:
  struct Entry {
    std::string kind;
    std::vector<Operand> operands;  // `tensor` and `offset` mean nothing
    std::vector<Argument> arguments;
    CallCost cost;
  };

  // False if that call is there already; what is there stays.
  bool add(Entry entry);
  const CallCost* find(const Call& call) const;  // null: never measured
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
};

// The table in which each op of a graph with operands costs what the graph says, the first of equal
// calls; for graphs whose times were measured. InputError (place: "graph") if its tick is no time.
CostTable costs_of(const Graph& graph);

}  // namespace lowtide
