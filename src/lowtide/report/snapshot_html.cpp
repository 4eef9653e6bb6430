// The page is snapshot_page.html with the style, the scripts and the data put into it; see page.h.
#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "lowtide/report/page.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/report_page.h"
#include "lowtide/report/snapshot_text.h"

namespace lowtide::report {

namespace {

using PageJson = nlohmann::ordered_json;

constexpr std::size_t kMostPoints = 4000, kMostOwners = 400, kLongestPlace = 200, kTextOwners = 30;

// Of each stretch of events the moment with the most bytes, where there are too many.
PageJson points_of(const layout::Record& record) {
  const std::vector<Bytes> allocated = layout::allocated_after(record);
  const std::size_t stretch = allocated.size() / kMostPoints + 1;
  PageJson points = PageJson::array();
  for (std::size_t first = 0; first < allocated.size(); first += stretch) {
    Bytes most = allocated[first];
    for (std::size_t i = first; i < std::min(first + stretch, allocated.size()); ++i)
      most = std::max(most, allocated[i]);
    points.push_back({static_cast<std::int64_t>(first) - 1, most.count()});
  }
  return points;
}

PageJson device_json(const RecordedDevice& one) {
  const layout::RecordedPeak& peak = one.peak;
  PageJson owners = PageJson::array(), replays = PageJson::array();
  for (std::size_t i = 0; i < std::min(kMostOwners, peak.owners.size()); ++i)
    owners.push_back({peak.owners[i].bytes.count(), peak.owners[i].blocks,
                      shorten(owner_text(peak.owners[i]), kLongestPlace)});
  const auto name = [](const std::string& settings) {
    return settings.empty() ? std::string("the default settings") : settings;
  };
  replays.push_back({name(one.savings.settings) + " (the job's)", one.savings.reserved.count()});
  for (const layout::OtherSettings& other : one.savings.others)
    replays.push_back({name(other.settings), other.reserved.count()});
  replays.push_back({"planned offsets", one.savings.arenas.count()});
  PageJson parts = PageJson::array();
  parts.push_back({"allocated before the peak, freed after it", peak.passing.count()});
  parts.push_back({"there before the record, freed after the peak", peak.from_start.count()});
  parts.push_back({"allocated in the record, never freed in it", peak.to_end.count()});
  parts.push_back({"there from before the record to its end", peak.throughout.count()});
  return {{"device", one.device},
          {"events", one.record.events},
          {"allocated", points_of(one.record)},
          {"peak", peak.allocated.count()},
          {"reserved", one.record.reserved_peak.count()},
          {"parts", parts},
          {"owners", owners},
          {"replays", replays}};
}

}  // namespace

std::string snapshot_html(std::span<const RecordedDevice> devices, std::string_view name) {
  PageJson list = PageJson::array();
  for (const RecordedDevice& one : devices) list.push_back(device_json(one));
  const std::string title = shorten(name, kLongestPlace);
  const PageJson data = {{"name", title}, {"tick", "none"}, {"devices", list}};
  return make_page({.title = title + ": memory of a job",
                    .text = snapshot_text(devices, kTextOwners, TerminalStyle{.width = 100}),
                    .main = kSnapshotMain,
                    .style = {},
                    .data = data.dump(-1, ' ', false, PageJson::error_handler_t::replace),
                    .script = std::string(kSnapshotScript)});
}

}  // namespace lowtide::report
