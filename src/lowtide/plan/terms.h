// The terms of planning that do not depend on the budget, and how users write them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/device/device.h"
#include "lowtide/device/part_price.h"
#include "lowtide/plan/problem.h"
#include "lowtide/transforms/transform.h"

namespace lowtide {

struct Terms {
  Order order = Order::free;
  std::optional<Machine> machine = std::nullopt;  // absent: no transfers
  Techniques techniques = {};
  std::optional<Bytes> host_budget = std::nullopt;
  // The machine before derating, if it was derated: plans also have their duration over it.
  std::optional<Machine> full_link = std::nullopt;
  std::vector<Transform> transforms = {};  // applied before planning
  Prices prices = {};                      // for a search for transforms
};

// The names of the allowed techniques; without a machine, `offload` is not among them.
std::vector<std::string_view> names_of(const Terms& terms);

// The terms as the command line and Python receive them. Absent: not given.
struct AskedTerms {
  Order order = Order::free;
  std::optional<Device> device = std::nullopt;     // its link to the host and its prices are used
  std::optional<std::string> link = std::nullopt;  // overrides the device's; see parse_link
  std::string techniques = "default";
  std::optional<std::string> derate =
      std::nullopt;  // a share of the link's bytes a second; 10% if absent
  std::optional<std::string> host_budget = std::nullopt;  // bytes
  std::vector<Transform> transforms = {};            // a listed transform also allows its technique
  std::shared_ptr<const CostTable> costs = nullptr;  // overrides the device's prices
};

// Throws InputError (place: the member, and its text if it has one) for text that cannot be parsed,
// a device without a link, a graph whose tick is no time, and for terms that need a link if there
// is none.
Terms terms_of(const AskedTerms& asked, const Graph& graph);

}  // namespace lowtide
