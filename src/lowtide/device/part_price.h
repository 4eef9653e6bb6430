// What calls cost that no graph has yet: parts of ops, and the copies that join them.
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

// What the prices of slices of ops come from, where transforms are looked for.
struct Prices {
  std::optional<Device> device;            // absent: an A100
  std::shared_ptr<const CostTable> table;  // counts before the device; absent: none

  const Device& device_or_default() const;
};

// ns and workspace of one call on a device: what the table says, if there is one and it knows the
// call; else small_kernel_ns (roofline.h) and no workspace. InputError (place: `label`) for a kind
// whose operations cannot be counted (operations.h).
CallCost price(const Device& device, const CostTable* table, const Call& call,
               const std::string& label);

// Prices in a graph's own ticks, whoever priced it. Without a figure of the table, the part of an
// op takes the share of the op's time that `price` gives the part beside the whole: parts of an op
// together take at least what it takes, and the more the smaller they are. A graph in flop shares
// operations instead. The workspace is shared by bytes moved, rounded up, which is an estimate
// where a kernel's workspace is not proportional. It loses where small operands fit into a cache
// and large ones do not.
class PartPricer {
 public:
  struct Cost {
    Ticks time;
    Bytes workspace;
    bool operator==(const Cost&) const = default;
  };

  // All three must live as long; `table` may be null.
  PartPricer(const Graph& graph, const Device& device, const CostTable* table);
  PartPricer(const Graph&, const Device&&, const CostTable*) = delete;  // it would not live as long

  // Of `part`, a call of the op's kind on parts of its operands. InputError (place: the op) if the
  // graph says nothing of the op's operands, or of what it does.
  Cost part(OpId op, const Call& part) const;

  // Of reading and writing so many bytes together: to put a part of n bytes in its place moves 2 n,
  // to add it 3 n. The pace is that of the graph's ops that compute nothing, beside the device's;
  // of all ops if there are none such. In a graph of flop it takes nothing.
  Cost copy(std::int64_t moved) const;

 private:
  const Graph& graph_;
  const Device& device_;
  const CostTable* table_;
  double ticks_per_ns_ = 0;
};

}  // namespace lowtide
