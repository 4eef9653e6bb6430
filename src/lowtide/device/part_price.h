// Prices calls that no graph contains yet: parts of ops, and the copies that join them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lowtide/base/units.h"
#include "lowtide/device/cost_table.h"
#include "lowtide/device/device.h"
#include "lowtide/graph/graph.h"
#include "lowtide/ops/call.h"

namespace lowtide {

// The prices of parts of ops in a search for transforms: measured ones in the table, otherwise
// estimates for the device.
struct Prices {
  std::optional<Device> device;            // absent: an A100
  std::shared_ptr<const CostTable> table;  // overrides the device; absent: none

  const Device& device_or_default() const;
};

// The ns and the workspace of one call on a device: from the table, if there is one and it has the
// call; else small_kernel_ns (roofline.h) and no workspace. Throws InputError (place: `label`) for
// a kind whose operations cannot be counted (operations.h).
CallCost price(const Device& device, const CostTable* table, const Call& call,
               const std::string& label);

// Prices in the graph's own ticks, measured or estimated. Without an entry in the table, the part
// of an op takes the share of the op's time that `price` gives for the part relative to the whole.
// So the parts of an op together take at least its time, and more the smaller they are. In a graph
// in flop parts share the operations instead. The workspace is shared by bytes moved, rounded up,
// which is an estimate if a kernel's workspace is not proportional. It loses if small operands fit
// into a cache and large ones do not.
class PartPricer {
 public:
  struct Cost {
    Ticks time;
    Bytes workspace;
    bool operator==(const Cost&) const = default;
  };

  // All three must outlive this object; `table` may be null.
  PartPricer(const Graph& graph, const Device& device, const CostTable* table);
  PartPricer(const Graph&, const Device&&, const CostTable*) = delete;  // it must outlive this

  // The price of `part`, a call of the op's kind on parts of its operands. Throws InputError
  // (place: the op) if the graph does not state the op's operands or operations.
  Cost part(OpId op, const Call& part) const;

  // The price of moving so many bytes: copying a part of n bytes to its place moves 2 n, adding it
  // 3 n. The rate is that of the graph's ops that only move bytes; of all ops if there are no such
  // ops. In a graph in flop it takes no time.
  Cost copy(std::int64_t moved) const;

 private:
  const Graph& graph_;
  const Device& device_;
  const CostTable* table_;
  double ticks_per_ns_ = 0;
};

}  // namespace lowtide
