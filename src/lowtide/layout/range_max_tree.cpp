#include "lowtide/layout/range_max_tree.h"

#include <bit>

namespace lowtide::layout {

void RangeMaxTree::reset(std::span<const std::int64_t> values) {
  leaves_ = std::bit_ceil(values.empty() ? 1 : values.size());
  nodes_.assign(2 * leaves_, Node{});
  for (std::size_t s = 0; s < values.size(); ++s)
    nodes_[leaves_ + s] = {values[s], 0, static_cast<std::int32_t>(s)};
  for (std::size_t node = leaves_ - 1; node > 0; --node) join(node);
}

void RangeMaxTree::join(std::size_t index) {
  const Node &lower = nodes_[2 * index], &upper = nodes_[2 * index + 1];
  const Node& larger = upper.largest > lower.largest ? upper : lower;
  Node& node = nodes_[index];
  node.section = larger.section;
  node.largest = larger.section < 0 ? INT64_MIN : larger.largest + node.raised;
}

void RangeMaxTree::raise(std::int32_t first, std::int32_t last, std::int64_t by) {
  raise(1, 0, leaves_, at(first), at(last), by);
}

void RangeMaxTree::raise(std::size_t index, std::size_t begin, std::size_t end, std::size_t first,
                         std::size_t last, std::int64_t by) {
  if (last <= begin || end <= first || nodes_[index].section < 0) return;
  if (first <= begin && end <= last) {
    nodes_[index].largest += by;
    nodes_[index].raised += by;
    return;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  raise(2 * index, begin, middle, first, last, by);
  raise(2 * index + 1, middle, end, first, last, by);
  join(index);
}

RangeMaxTree::Largest RangeMaxTree::largest(std::int32_t first, std::int32_t last) const {
  return look(1, 0, leaves_, at(first), at(last));
}

RangeMaxTree::Largest RangeMaxTree::look(std::size_t index, std::size_t begin, std::size_t end,
                                         std::size_t first, std::size_t last) const {
  const Node& node = nodes_[index];
  if (last <= begin || end <= first || node.section < 0) return {};
  if (first <= begin && end <= last) return {node.largest, node.section};
  const std::size_t middle = begin + (end - begin) / 2;
  const Largest lower = look(2 * index, begin, middle, first, last),
                upper = look(2 * index + 1, middle, end, first, last);
  Largest larger = upper.section >= 0 && upper.value > lower.value ? upper : lower;
  if (larger.section >= 0) larger.value += node.raised;
  return larger;
}

}  // namespace lowtide::layout
