// Parts are split and stripped of their bottom again and again, while that removes enough to be
// worth a pass over the rest.
#include "lowtide/layout/parts.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lowtide::layout {

namespace {

struct Stretch {
  std::vector<std::int32_t> ids;  // by their first section
  std::int64_t base = 0;
  int depth = 0;
};

constexpr int kDeepest = 32;

const Item& item_of(const Sections& sections, std::int32_t id) { return sections.items[at(id)]; }

Part part_of(const Sections& sections, Stretch stretch) {
  Part part;
  part.base = stretch.base;
  std::ranges::sort(stretch.ids);
  part.ids = std::move(stretch.ids);
  std::int32_t first = sections.count, last = 0;
  for (const std::int32_t id : part.ids) {
    first = std::min(first, item_of(sections, id).first);
    last = std::max(last, item_of(sections, id).last);
  }
  part.sections = last - first;
  part.items.reserve(part.ids.size());
  for (const std::int32_t id : part.ids) {
    part.items.push_back(item_of(sections, id));
    part.items.back().first -= first;
    part.items.back().last -= first;
  }
  return part;
}

// Stretches that no item crosses the borders of.
std::vector<Stretch> split(const Sections& sections, const Stretch& whole) {
  std::vector<Stretch> parts;
  std::int32_t end = -1;
  for (const std::int32_t id : whole.ids) {
    const Item& item = item_of(sections, id);
    if (item.first >= end) parts.push_back({{}, whole.base, whole.depth + 1});
    parts.back().ids.push_back(id);
    end = std::max(end, item.last);
  }
  return parts;
}

// Places what is live throughout, and says whether anything is.
bool strip(const Sections& sections, Stretch& stretch, std::vector<std::int64_t>& offsets) {
  const std::int32_t first = item_of(sections, stretch.ids.front()).first;
  std::int32_t last = 0;
  for (const std::int32_t id : stretch.ids) last = std::max(last, item_of(sections, id).last);
  const std::size_t removed = std::erase_if(stretch.ids, [&](std::int32_t id) {
    const Item& item = item_of(sections, id);
    if (item.first != first || item.last != last) return false;
    offsets[at(id)] = stretch.base;
    stretch.base += item.size;
    return true;
  });
  return removed > 0;
}

}  // namespace

std::vector<Part> split_into_parts(const Sections& sections, std::vector<std::int64_t>& offsets) {
  Stretch all;
  all.ids.resize(sections.items.size());
  std::iota(all.ids.begin(), all.ids.end(), 0);
  std::erase_if(all.ids, [&](std::int32_t id) { return item_of(sections, id).size == 0; });
  std::ranges::stable_sort(all.ids, {},
                           [&](std::int32_t id) { return item_of(sections, id).first; });
  std::vector<Part> parts;
  std::vector<Stretch> open = split(sections, all);
  while (!open.empty()) {
    Stretch stretch = std::move(open.back());
    open.pop_back();
    if (stretch.depth < kDeepest && strip(sections, stretch, offsets)) {
      for (Stretch& part : split(sections, stretch)) open.push_back(std::move(part));
    } else {
      parts.push_back(part_of(sections, std::move(stretch)));
    }
  }
  return parts;
}

}  // namespace lowtide::layout
