// A link is planned with as if others used a tenth of it: plans sit on its limit, and where it
// turns out slower than it was said to be they lose far more than the tenth costs them.
#include "lowtide/plan/terms.h"

#include "lowtide/base/error.h"
#include "lowtide/plan/budget.h"

namespace lowtide {

namespace {

constexpr std::string_view kDerate = "10%";

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

// A device is named for its link, and where transforms are looked for, for the prices of parts.
bool is_for_prices_alone(const AskedTerms& asked) {
  if (asked.link || !asked.device || asked.device->host_link) return false;
  const Techniques named = parse_techniques(asked.techniques, false);
  return named.split || named.hoist || named.substitute;
}

std::optional<Machine> machine_of(const AskedTerms& asked, TickUnit tick) {
  if ((!asked.device && !asked.link) || is_for_prices_alone(asked)) return std::nullopt;
  const auto speed = asked.link ? parse_link(*asked.link) : asked.device->host_link;
  const std::string place =
      asked.link ? "link " + quoted(*asked.link) : "device " + quoted(asked.device->name);
  if (!speed) throw InputError(place, "has no link to the host; give one (link 25GB/s,10us)");
  try {
    return machine_of(*speed, tick);
  } catch (const InputError& error) {
    throw InputError(place, error.reason());
  }
}

Machine derated(const Machine& full, std::string_view text) {
  const Share share = parse_percentage(text, "derate");
  const auto refuse = [&](const std::string& why) {
    throw InputError("derate " + quoted(text), why);
  };
  if (share.numerator >= share.denominator)
    refuse("leaves nothing of the link; write a percentage from 0 to below 100 (10%)");
  try {
    return derated(full, share);
  } catch (const OverflowError&) {
    refuse("has too many digits for this link; write fewer (10%)");
  }
  return full;
}

}  // namespace

std::vector<std::string_view> names_of(const Terms& terms) {
  Techniques usable = terms.techniques;
  if (!terms.machine) usable.offload = false;
  return names_of(usable);
}

Terms terms_of(const AskedTerms& asked, const Graph& graph) {
  Terms terms;
  terms.order = asked.order;
  const std::optional<Machine> full = machine_of(asked, graph.tick());
  terms.techniques = parse_techniques(asked.techniques, full.has_value());
  terms.transforms = asked.transforms;
  terms.prices = {asked.device, asked.costs};
  for (const Transform& transform : asked.transforms)
    add_technique(terms.techniques, kind_of(transform));
  const auto demand_link = [&](const std::optional<std::string>& given, const std::string& name,
                               const std::string& why) {
    if (given && !full)
      throw InputError(name + " " + quoted(*given),
                       why + ": name a link to the host with device or link, or leave this out");
  };
  demand_link(asked.derate, "derate", "there is no link to derate");
  demand_link(asked.host_budget, "host_budget", "nothing is copied to the host");
  if (asked.host_budget) terms.host_budget = parse_size(*asked.host_budget, "host_budget");
  if (!full) return terms;
  terms.machine = derated(*full, asked.derate ? std::string_view(*asked.derate) : kDerate);
  if (terms.machine != full) terms.full_link = full;
  return terms;
}

}  // namespace lowtide
