// Problem: suffix additions and suffix maxima over a growing row.
// Idea: keep differences. Adding from a place on changes one of them; the number at a place is the
// sum of those before it, so the largest from a place on is a largest prefix sum, which a segment
// tree joins from its halves. Leaves beyond the end are 0 and repeat the last number, which harms
// no maximum. Invariant: the sum of all differences is the last number. Loses: to a plain array
// while rows are short or changes lie near the end.
#include "lowtide/solve/greedy/profile.h"

#include <algorithm>

namespace lowtide::solve::greedy {

Profile::Node Profile::join(const Node& left, const Node& right) {
  return {left.sum + right.sum, std::max(left.best, left.sum + right.best)};
}

void Profile::set(std::size_t at, std::int64_t difference) {
  std::size_t node = capacity_ + at;
  nodes_[node] = {difference, difference};
  for (node /= 2; node > 0; node /= 2) nodes_[node] = join(nodes_[2 * node], nodes_[2 * node + 1]);
}

void Profile::grow() {
  const std::size_t capacity = std::max<std::size_t>(1024, 2 * capacity_);
  std::vector<Node> nodes(2 * capacity);
  for (std::size_t i = 0; i < size_; ++i) nodes[capacity + i] = nodes_[capacity_ + i];
  for (std::size_t i = capacity - 1; i > 0; --i) nodes[i] = join(nodes[2 * i], nodes[2 * i + 1]);
  nodes_ = std::move(nodes);
  capacity_ = capacity;
}

void Profile::append(Bytes value) {
  if (size_ == capacity_) grow();
  set(size_++, value.count() - last_);
  last_ = value.count();
}

void Profile::add_from(std::size_t begin, Bytes change) {
  if (begin >= size_) return;
  set(begin, nodes_[capacity_ + begin].sum + change.count());
  last_ += change.count();
}

Bytes Profile::max_from(std::size_t begin) const {
  std::size_t node = capacity_ + begin;
  Node joined = nodes_[node];
  std::int64_t before = 0;
  for (; node > 1; node /= 2) {
    if (node % 2 == 0)
      joined = join(joined, nodes_[node + 1]);
    else
      before += nodes_[node - 1].sum;
  }
  return Bytes(before + joined.best);
}

}  // namespace lowtide::solve::greedy
