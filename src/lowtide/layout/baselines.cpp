#include "lowtide/layout/baselines.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "lowtide/layout/sections.h"

namespace lowtide::layout {

namespace {

bool meet(const Item& a, const Item& b) { return a.first < b.last && b.first < a.last; }

// Items that have a size, in order.
template <class Key>
std::vector<Item> ordered(const Sections& sections, Key key) {
  std::vector<Item> items;
  for (const Item& item : sections.items)
    if (item.size > 0) items.push_back(item);
  std::ranges::stable_sort(items, std::greater<>(), key);
  return items;
}

std::int64_t best_fit(const std::vector<Item>& items) {
  struct Placed {
    Item item;
    std::int64_t offset;
  };
  std::vector<Placed> placed;  // by offset
  std::int64_t height = 0;
  for (const Item& item : items) {
    std::int64_t end = 0, offset = -1, gap = INT64_MAX;
    for (const Placed& other : placed) {
      if (!meet(item, other.item)) continue;
      const std::int64_t free = other.offset - end;
      if (free >= item.size && free < gap) {
        gap = free;
        offset = end;
      }
      end = std::max(end, other.offset + other.item.size);
    }
    if (offset < 0) offset = end;
    height = std::max(height, offset + item.size);
    const auto behind = std::ranges::upper_bound(placed, offset, {}, &Placed::offset);
    placed.insert(behind, {item, offset});
  }
  return height;
}

std::int64_t shared_objects(const std::vector<Item>& items) {
  struct Object {
    std::int64_t size;
    std::vector<Item> items;
  };
  std::vector<Object> objects;  // the largest first, so the last that is free is the smallest
  std::int64_t height = 0;
  for (const Item& item : items) {
    const auto is_free = [&](const Object& object) {
      return std::ranges::none_of(object.items,
                                  [&](const Item& other) { return meet(item, other); });
    };
    const auto found = std::find_if(objects.rbegin(), objects.rend(), is_free);
    if (found != objects.rend()) {
      found->items.push_back(item);
    } else {
      objects.push_back({item.size, {item}});
      height += item.size;
    }
  }
  return height;
}

}  // namespace

std::string_view to_string(Baseline baseline) {
  switch (baseline) {
    case Baseline::by_size: return "by_size";
    case Baseline::by_duration: return "by_duration";
    case Baseline::shared_objects: return "shared_objects";
  }
  return "";
}

Bytes baseline_height(Baseline baseline, std::span<const Buffer> buffers, Bytes alignment) {
  const Sections sections = make_sections(buffers, alignment.count());
  const auto by_size = [](const Item& item) { return item.size; };
  const auto by_duration = [](const Item& item) { return std::pair(item.duration, item.size); };
  switch (baseline) {
    case Baseline::by_size: return Bytes(best_fit(ordered(sections, by_size)));
    case Baseline::by_duration: return Bytes(best_fit(ordered(sections, by_duration)));
    case Baseline::shared_objects: return Bytes(shared_objects(ordered(sections, by_size)));
  }
  return Bytes(0);
}

}  // namespace lowtide::layout
