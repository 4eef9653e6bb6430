// One sweep over the moments finds the sections, a table of ranges the largest load over each item.
#include "lowtide/layout/sections.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/base/units.h"

namespace lowtide::layout {

namespace {

std::int64_t rounded_up(std::int64_t size, std::int64_t alignment) {
  const std::int64_t over = size % alignment;
  return over == 0 ? size : checked_add(Bytes(size), Bytes(alignment - over)).count();
}

// The last moment before a buffer ends, of each stretch of moments in which buffers only begin.
std::vector<std::int64_t> section_moments(std::span<const Buffer> buffers) {
  std::vector<std::int64_t> begins, ends;
  begins.reserve(buffers.size());
  ends.reserve(buffers.size());
  for (const Buffer& buffer : buffers) {
    begins.push_back(buffer.begin);
    ends.push_back(buffer.end);
  }
  std::ranges::sort(begins);
  std::ranges::sort(ends);
  std::vector<std::int64_t> moments;
  for (std::size_t begun = 0, ended = 0; begun < begins.size();) {
    while (begun < begins.size() && begins[begun] < ends[ended]) ++begun;
    moments.push_back(begins[begun - 1]);
    if (begun < begins.size())
      while (ends[ended] <= begins[begun]) ++ended;
  }
  return moments;
}

std::int32_t place_of(const std::vector<std::int64_t>& moments, std::int64_t moment) {
  return static_cast<std::int32_t>(std::ranges::lower_bound(moments, moment) - moments.begin());
}

}  // namespace

Sections make_sections(std::span<const Buffer> buffers, std::int64_t alignment) {
  Bytes sum;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto refuse = [&](const std::string& why) {
      throw InputError("buffers/" + std::to_string(i), why);
    };
    if (buffers[i].begin >= buffers[i].end) refuse("it must end after it begins");
    if (buffers[i].bytes < Bytes(0)) refuse("it must have 0 bytes or more");
    try {
      sum = checked_add(sum, Bytes(rounded_up(buffers[i].bytes.count(), alignment)));
    } catch (const OverflowError&) {
      refuse("the sizes up to this one add up to 2^63 bytes or more");
    }
  }
  const std::vector<std::int64_t> moments = section_moments(buffers);
  Sections sections;
  sections.count = static_cast<std::int32_t>(moments.size());
  sections.items.reserve(buffers.size());
  for (const Buffer& buffer : buffers)
    sections.items.push_back({place_of(moments, buffer.begin), place_of(moments, buffer.end),
                              rounded_up(buffer.bytes.count(), alignment),
                              static_cast<double>(buffer.end) - static_cast<double>(buffer.begin)});
  return sections;
}

std::vector<std::int64_t> loads(std::span<const Item> items, std::int32_t sections) {
  std::vector<std::int64_t> change(at(sections) + 1, 0);
  for (const Item& item : items) {
    change[at(item.first)] += item.size;
    change[at(item.last)] -= item.size;
  }
  for (std::size_t s = 1; s < change.size(); ++s) change[s] += change[s - 1];
  change.pop_back();
  return change;
}

std::vector<std::int64_t> load_over(std::span<const Item> items,
                                    std::span<const std::int64_t> loads) {
  // Level k has the largest of 2^k loads from each section on.
  std::vector<std::vector<std::int64_t>> levels{{loads.begin(), loads.end()}};
  for (std::size_t width = 1; 2 * width <= loads.size(); width *= 2) {
    const std::vector<std::int64_t>& below = levels.back();
    std::vector<std::int64_t> level(loads.size() - 2 * width + 1);
    for (std::size_t s = 0; s < level.size(); ++s) level[s] = std::max(below[s], below[s + width]);
    levels.push_back(std::move(level));
  }
  std::vector<std::int64_t> most;
  most.reserve(items.size());
  for (const Item& item : items) {
    const std::size_t width = std::bit_floor(at(item.last - item.first));
    const std::vector<std::int64_t>& level = levels[at(std::countr_zero(width))];
    most.push_back(std::max(level[at(item.first)], level[at(item.last) - width]));
  }
  return most;
}

}  // namespace lowtide::layout
