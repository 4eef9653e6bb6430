#include "lowtide/layout/check_placement.h"

#include <algorithm>
#include <map>
#include <vector>

namespace lowtide::layout {

namespace {

struct Moment {
  std::int64_t at;
  bool begins;  // ends come first
  std::size_t buffer;
  auto operator<=>(const Moment&) const = default;
};

std::string name(std::size_t buffer) { return "buffer " + std::to_string(buffer); }

std::string range(const Buffer& buffer, Bytes offset) {
  return "[" + std::to_string(offset.count()) + ", " +
         std::to_string(offset.count() + buffer.bytes.count()) + ")";
}

}  // namespace

std::optional<std::string> check_placement(std::span<const Buffer> buffers,
                                           std::span<const Bytes> offsets, Bytes alignment,
                                           Bytes height) {
  if (offsets.size() != buffers.size())
    return "there are " + std::to_string(offsets.size()) + " offsets for " +
           std::to_string(buffers.size()) + " buffers";
  std::vector<Moment> moments;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Bytes offset = offsets[i];
    const std::string its = name(i) + " at offset " + std::to_string(offset.count());
    if (offset < Bytes(0)) return its + ": it is negative";
    if (offset.count() % alignment.count() != 0)
      return its + ": it is no multiple of " + std::to_string(alignment.count());
    if (offset > height - buffers[i].bytes)
      return its + ": its " + std::to_string(buffers[i].bytes.count()) + " bytes end beyond " +
             std::to_string(height.count());
    if (buffers[i].bytes == Bytes(0)) continue;
    moments.push_back({buffers[i].begin, true, i});
    moments.push_back({buffers[i].end, false, i});
  }
  std::ranges::sort(moments);
  std::map<Bytes, std::size_t> live;  // by offset
  for (const Moment& moment : moments) {
    const std::size_t i = moment.buffer;
    if (!moment.begins) {
      live.erase(offsets[i]);
      continue;
    }
    const auto above = live.lower_bound(offsets[i]);
    std::optional<std::size_t> other;
    if (above != live.end() && above->first < offsets[i] + buffers[i].bytes) other = above->second;
    if (above != live.begin()) {
      const auto below = std::prev(above);
      if (below->first + buffers[below->second].bytes > offsets[i]) other = below->second;
    }
    if (other)
      return name(*other) + " lies at " + range(buffers[*other], offsets[*other]) + " and " +
             name(i) + " at " + range(buffers[i], offsets[i]) + ", and both are live at moment " +
             std::to_string(moment.at);
    live.emplace(offsets[i], i);
  }
  return std::nullopt;
}

}  // namespace lowtide::layout
