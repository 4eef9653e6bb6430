#include <nlohmann/json.hpp>

#include "lowtide/report/snapshot_text.h"

namespace lowtide::report {

namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson json_of(const layout::PeakOwner& owner) {
  OrderedJson frames = OrderedJson::array();
  for (const layout::StackFrame& frame : owner.frames)
    frames.push_back({{"filename", frame.filename}, {"line", frame.line}, {"name", frame.name}});
  return {{"bytes", owner.bytes.count()}, {"blocks", owner.blocks}, {"frames", frames}};
}

OrderedJson json_of(const RecordedDevice& one) {
  const layout::RecordedPeak& peak = one.peak;
  OrderedJson owners = OrderedJson::array(), others = OrderedJson::array();
  for (const layout::PeakOwner& owner : peak.owners) owners.push_back(json_of(owner));
  for (const layout::OtherSettings& other : one.savings.others)
    others.push_back({{"allocator", other.settings}, {"reserved", other.reserved.count()}});
  OrderedJson peak_json = {{"event", peak.event},
                           {"allocated", peak.allocated.count()},
                           {"requested", peak.requested.count()},
                           {"movable", peak.passing.count()},
                           {"from_start", peak.from_start.count()},
                           {"to_end", peak.to_end.count()},
                           {"throughout", peak.throughout.count()},
                           {"owners", owners}};
  OrderedJson replay = {{"allocator", one.savings.settings},
                        {"reserved", one.savings.reserved.count()},
                        {"others", others},
                        {"arena", one.savings.arenas.count()},
                        {"load", one.savings.loads.count()}};
  if (!one.savings.settings_refused.empty()) replay["refused"] = one.savings.settings_refused;
  return {{"device", one.device},
          {"events", one.record.events},
          {"contradictions", one.record.contradictions},
          {"reserved", one.record.reserved_peak.count()},
          {"peak", peak_json},
          {"replay", replay}};
}

}  // namespace

std::string snapshot_json(std::span<const RecordedDevice> devices) {
  OrderedJson list = OrderedJson::array();
  for (const RecordedDevice& one : devices) list.push_back(json_of(one));
  const OrderedJson json = {{"devices", list}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace lowtide::report
